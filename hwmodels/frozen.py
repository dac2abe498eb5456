"""The two kinds of noun: what is `frozen` equals another of equal fields, an `entity` only itself.

Both are dataclasses with slots whose fields are given by name and never change.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Noun = TypeVar("Noun")

NamedTexts = tuple[tuple[str, str], ...]
"""Texts by name in their order, as a noun keeps a mapping."""

NamedNumbers = tuple[tuple[str, float], ...]

NamedCounts = tuple[tuple[str, int], ...]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(noun: type[Noun]) -> type[Noun]:
    """Make a class a frozen, slotted, keyword-only dataclass, compared and hashed by its fields."""
    return dataclass(frozen=True, slots=True, kw_only=True)(noun)


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True,
                     field_specifiers=(field,))
def entity(noun: type[Noun]) -> type[Noun]:
    """Make a class a frozen, slotted, keyword-only dataclass, compared and hashed by identity."""
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False)(noun)
