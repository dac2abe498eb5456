"""Nouns read from YAML files: each key checked by the noun's types, errors naming file and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from hwmodels.errors import TwinError, did_you_mean
from hwmodels.files import DocumentError, JsonObject, read_yaml

CHECKED = ConfigDict(extra="forbid")
"""Configuration of nouns that are read: a key nobody knows is refused."""

UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
"""What pydantic calls a key nobody knows, of a model and of a dataclass."""

Noun = TypeVar("Noun")

Text = Annotated[str, BeforeValidator(
    lambda value: str(value).lower() if isinstance(value, bool) else
    value if value is None else str(value))]
"""A scalar as an option would have it."""

AS_LIST = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
"""One value may stand for a list of it."""

Words = Annotated[list[Text], AS_LIST]


def list_shipped(folder: Path) -> tuple[str, ...]:
    """Return the names of the files of a folder."""
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def find_file(name_or_path: str, folder: Path, what: str, refuse: type[TwinError]) -> Path:
    """Return a file, or a shipped one by name; raises `refuse` for no such name."""
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        return path
    path = folder / f"{name_or_path}.yaml"
    if path.parent != folder or not path.is_file():
        raise refuse(f"{name_or_path}: no such {what}; "
                     + did_you_mean(name_or_path, list_shipped(folder)) + " or a .yaml file")
    return path


def read_mapping(path: Path, refuse: type[TwinError], keys: str = "") -> JsonObject:
    """Return the mapping a file holds; raises `refuse` where it cannot be read or is none."""
    try:
        document = read_yaml(path)
    except (DocumentError, OSError) as error:
        raise refuse(f"{path}: cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise refuse(f"{path}: a mapping is expected{keys}")
    return document


def make_noun(noun: type[Noun], document: Mapping[str, Any], path: Path,
              refuse: type[TwinError], **given: object) -> Noun:
    """Return a noun of the keys of a file of schema 1, and of what no file gives.

    Raises
    ------
    TwinError
        `refuse`: `file:key: reason; accepted ...`.
    """
    keys = {key: value for key, value in document.items() if key != "schema"}
    if document.get("schema") != 1:
        raise refuse(f"{path.name}:schema: {document.get('schema')!r}; accepted: 1")
    for key in {*given} & {*keys}:
        raise refuse(f"{path.name}:{key}: unknown key")
    try:
        return TypeAdapter(noun).validate_python(keys | given)
    except ValidationError as error:
        first = min(error.errors(), key=lambda one: one["type"] not in UNKNOWN)
    *parents, last = first["loc"]
    reason = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] in UNKNOWN:
        reason = "unknown key; " + did_you_mean(str(last), _list_keys(noun, parents))
    elif first["type"] == "missing":
        reason = "is missing"
    raise refuse(f"{path.name}:{'.'.join(map(str, first['loc']))}: {reason}")


def one_of(words: Sequence[str]) -> AfterValidator:
    """Return what refuses any other word."""
    def check(word: str) -> str:
        if word not in words:
            raise ValueError(f"{word!r}; " + did_you_mean(word, words))
        return word

    return AfterValidator(check)


def _list_keys(noun: Any, parents: Sequence[str | int]) -> list[str]:
    """Return the keys of a noun, or of the one below some keys."""
    node = TypeAdapter(noun).json_schema()
    parts = node.get("$defs", {})
    for parent in parents:
        node = node["properties"][parent] if isinstance(parent, str) else node["items"]
        refers = next((one["$ref"] for one in (node, *node.get("anyOf", ())) if "$ref" in one), "")
        node = parts[refers.rpartition("/")[2]] if refers else node
    return list(node["properties"])
