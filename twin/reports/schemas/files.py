"""The published JSON Schemas, made from the shapes of the documents.

`python -m twin.reports.schemas.files` writes them once more after a shape changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

from twin.prediction.document import dump_document
from twin.reports.export import write_file

FOLDER = Path(__file__).parents[2] / "schema"

SHAPES: Mapping[str, str] = {
    "prediction": "prediction:Prediction", "comparison": "comparison:Comparison",
    "published": "comparison:PublishedOnes", "diagnosis": "comparison:Diagnosis",
    "study": "tables:Studies", "check": "tables:Check", "list": "lists:Lists",
    "outcome": "outcomes:Outcomes",
    **{name: f"decisions:{name.capitalize()}" for name in (
        "advice", "selection", "plan", "port", "cache", "series", "scenario")}}
"""Where the shape of each document is, "module:type" of this package."""


def make_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document, as its shape says.

    Parameters
    ----------
    name : str
        Of `SHAPES`.

    Notes
    -----
    The version in its `$id` is that of the key `schema`: it is raised when a reader of the old
    one would misread the new. New keys do not raise it.
    """
    from pydantic import TypeAdapter

    module, _, kind = SHAPES[name].partition(":")
    shape = getattr(import_module(f"twin.reports.schemas.{module}"), kind)
    one = (get_args(shape) or (shape,))[0]
    version, = get_args(get_type_hints(one)["schema"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:embedded-twin:{name}:{version}", "title": name.capitalize(),
            **_without_titles(TypeAdapter(shape).json_schema())}


def write_schemas(folder: Path = FOLDER) -> list[Path]:
    """Write every schema; returns the files."""
    written = []
    for name in SHAPES:
        written.append(write_file(folder / f"{name}.schema.json",
                                  dump_document(make_schema(name)).encode()))
    return written


def _without_titles(schema: Any) -> Any:
    """Leave out titles that only repeat a key."""
    if isinstance(schema, dict):
        return {key: _without_titles(one) for key, one in schema.items()
                if key != "title" or not isinstance(one, str)}
    return [_without_titles(one) for one in schema] if isinstance(schema, list) else schema


if __name__ == "__main__":
    for place in write_schemas():
        print(place)
