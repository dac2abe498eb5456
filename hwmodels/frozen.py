"""The kinds of noun: what is `frozen` equals another of equal fields, an `entity` only itself.

All are dataclasses whose fields never change, with slots unless a property is kept once computed.
Fields are given by name, those of a `record` by their place, too.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, dataclass_transform

Noun = TypeVar("Noun")

NamedTexts = tuple[tuple[str, str], ...]
"""Texts by name in their order, as a noun keeps a mapping."""

NamedNumbers = tuple[tuple[str, float], ...]

NamedCounts = tuple[tuple[str, int], ...]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(noun: type[Noun]) -> type[Noun]:
    """Make a class a frozen, keyword-only dataclass, compared and hashed by its fields."""
    return _freeze(noun)


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True,
                     field_specifiers=(field,))
def entity(noun: type[Noun]) -> type[Noun]:
    """Make a class a frozen, keyword-only dataclass, compared and hashed by identity."""
    return _freeze(noun, eq=False)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(noun: type[Noun]) -> type[Noun]:
    """Make a class a frozen dataclass, compared and hashed by its fields."""
    return _freeze(noun, kw_only=False)


def list_fields(noun: Any, *names: str) -> dict[str, Any]:
    """Return what a noun holds under some names, by name; of one with slots all it holds."""
    return {name: getattr(noun, name) for name in names or noun.__slots__}


def _freeze(noun: type[Noun], *, eq: bool = True, kw_only: bool = True) -> type[Noun]:
    slots = not any(isinstance(one, cached_property) for one in vars(noun).values())
    return dataclass(frozen=True, slots=slots, kw_only=kw_only, eq=eq)(noun)
