"""Documents: one type says which keys a noun has in JSON, where each comes from, and its schema.

A document is a TypedDict. Each key takes the attribute of its name, or what its `Of` says;
of a plain tuple what stands in its place. `fill` writes a noun so, `make_schema` returns the JSON
Schema of the same type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from functools import cache, reduce
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin

from annotated_types import Ge, Gt
from annotated_types import Interval as Within
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from hwmodels.counts import CAUSES
from hwmodels.errors import STEERING
from hwmodels.files import JsonObject

ABSENT = object()
"""Given for a key that need not be there: it is omitted."""


class Says:
    """Keywords of JSON Schema that Python's types have no word for, such as its description."""

    def __init__(self, description: str = "", **keywords: Any) -> None:
        self.keywords = ({"description": description} if description else {}) | keywords

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> JsonObject:
        """Add the keywords to what pydantic makes of the type."""
        return {**handler(core), **self.keywords}


class Of:
    """Where a key comes from: an attribute, as "board.name", or a function of the noun."""

    def __init__(self, source: str | Callable[[Any], Any]) -> None:
        self.take = source if callable(source) else _follow(source)


Count = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
Amount = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Says(maximum=1)]
Cause = Annotated[str, Says(enum=list(CAUSES))]


class Document(TypedDict):
    """What a file of JSON begins with, until a reader of it would misread a newer one."""

    schema: Literal[1]


class Interval(TypedDict):
    """Where a quantity is believed to be, in the unit of its key."""

    low: float
    high: float
    level: Annotated[float, Within(gt=0, lt=1)]


def fill(shape: Any, noun: Any, **given: Any) -> JsonObject:
    """Return a noun as its document: keys in the order of the type, `given` ones as they are.

    A key that is not required is omitted where the noun's attribute is empty.
    """
    written = {}
    for key, take, write, required in _fields(shape):
        if key in given:
            if given[key] is not ABSENT:
                written[key] = given[key]
            continue
        value = take(noun)
        if required or value:
            written[key] = write(value)
    return written


def dump_document(document: Mapping[str, Any]) -> str:
    """Write a document as text: the same document gives the same bytes; none steers a terminal."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return STEERING.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1],
                        text)


def make_schema(name: str, shape: Any) -> JsonObject:
    """Return the JSON Schema (draft 2020-12) of a document or of a union of documents.

    Notes
    -----
    The version in its `$id` is that of the key `schema`: it is raised when a reader of the old
    one would misread the new. New keys do not raise it.
    """
    from pydantic import TypeAdapter

    version = find_version((get_args(shape) or (shape,))[0])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:embedded-twin:{name}:{version}", "title": name.capitalize(),
            **_without_titles(TypeAdapter(shape).json_schema())}


def find_version(shape: Any) -> int:
    """Return the version of a document: what its key `schema` holds."""
    version, = get_args(get_type_hints(shape)["schema"])
    return int(version)


def whole(value: float) -> float:
    """Return a whole number as an integer."""
    return int(value) if float(value).is_integer() else value


_Field = tuple[str, Callable[[Any], Any], Callable[[Any], Any], bool]


@cache
def _fields(shape: Any) -> tuple[_Field, ...]:
    """Key, where its value comes from, how that is written, and whether it is always there."""
    hints = get_type_hints(shape, include_extras=True)
    fields = []
    leading = [key for key in ("schema", "kind") if "schema" in hints]
    for place, key in enumerate(dict.fromkeys((*leading, *hints))):
        hint: Any = hints[key]
        required = get_origin(hint) is not NotRequired
        if not required:
            hint = get_args(hint)[0]
        take = next((one.take for one in getattr(hint, "__metadata__", ())
                     if isinstance(one, Of)), None) or _follow(key, place)
        kind: Any = get_origin(hint)
        if kind is Literal and len(get_args(hint)) == 1:
            take = _always(get_args(hint)[0])
        fields.append((key, take, _writer(hint), required))
    return tuple(fields)


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda noun: value


def _follow(path: str, place: int = 0) -> Callable[[Any], Any]:
    """Return a reader of an attribute or key, or of one of what that is; None stays None.

    Of a plain tuple it reads what stands at a place.
    """
    def step(noun: Any, name: str) -> Any:
        if noun is None:
            return None
        if type(noun) is tuple:
            return noun[place]
        return noun[name] if isinstance(noun, Mapping) else getattr(noun, name)

    return lambda noun: reduce(step, path.split("."), noun)


@cache
def _writer(hint: Any) -> Callable[[Any], Any]:
    """Return what makes plain JSON types of a value as its type says; a dict is written already."""
    write = _write_known(hint)
    return lambda value: None if value is None else write(value)


def _write_known(hint: Any) -> Callable[[Any], Any]:
    kind: Any = get_origin(hint)
    parts = get_args(hint)
    if kind is Annotated:
        return _write_known(parts[0])
    if kind in (Union, UnionType) and type(None) in parts and len(parts) == 2:
        return _write_known(next(one for one in parts if one is not type(None)))
    if is_typeddict(hint):
        return lambda value: value if type(value) is dict else fill(hint, value)
    if kind is list:
        item = _writer(parts[0])
        return lambda values: [item(value) for value in values]
    if kind is dict:
        item = _writer(parts[1])
        return lambda values: {key: item(value) for key, value in dict(values).items()}
    return str if hint is str else _plain


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _without_titles(schema: Any) -> Any:
    """Leave out titles that only repeat a key."""
    if isinstance(schema, dict):
        return {key: _without_titles(one) for key, one in schema.items()
                if key != "title" or not isinstance(one, str)}
    return [_without_titles(one) for one in schema] if isinstance(schema, list) else schema
