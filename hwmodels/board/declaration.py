"""Facts of a board declared once: what a key of its file may hold, and what it means.

    size_bytes: Annotated[int, Key(SIZE, "What it holds.")]

in a noun of `facts` is the whole declaration of a fact. Its validation, its way into the noun, the
units and bounds of a what-if, the parts it may name and its row in docs/boards.md come of it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from hwmodels.board.leaf import Quantity


@dataclass(frozen=True, slots=True)
class Plain:
    """A value written without kind and source: text, or a switch."""

    of: type


TEXT, SWITCH = Plain(str), Plain(bool)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words (or versions), without kind and source."""

    words: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of a part of the board: "clock", "cache", "bus", "memory", "master", "source"."""

    part: str


@dataclass(frozen=True, slots=True)
class Several:
    """A list."""

    of: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """Values, or whole parts, by name; `by` says what the names are."""

    of: Kind
    by: str


@dataclass(frozen=True, slots=True)
class ByScale:
    """A table by voltage scale; the noun has what holds at the scale in force."""

    of: Quantity


@dataclass(frozen=True, slots=True, init=False)
class Part:
    """A section: the keys of a noun, and of a class of what the noun is worked out from.

    Parameters
    ----------
    nouns : type
        Classes with declared keys; the first is what is read.
    section : str
        Of a noun whose keys stand in several sections, the one meant.
    """

    nouns: tuple[type, ...]
    section: str

    def __init__(self, *nouns: type, section: str = "") -> None:
        object.__setattr__(self, "nouns", nouns)
        object.__setattr__(self, "section", section)


Kind = Quantity | Plain | Choice | Reference | Several | Table | ByScale | Part
"""What a key may hold."""


@dataclass(frozen=True, slots=True)
class Key:
    """The declaration of a fact.

    Parameters
    ----------
    kind : Quantity, Plain, Choice, Reference, Several, Table, ByScale or Part
        What it may hold.
    doc : str
        What it means, for docs/boards.md.
    required : bool or None
        Whether a file must give it, False where it is worked out without; None: unless the noun
        has a default.
    name : str
        In the file, where it is not the noun's.
    section : str
        Section it stands in, of a noun whose keys stand in several.
    """

    kind: Kind
    doc: str
    _: dataclasses.KW_ONLY
    required: bool | None = None
    name: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared key with the field of the noun it is."""

    field: str
    name: str
    kind: Kind
    doc: str
    section: str
    required: bool
    default: object = None


@cache
def keys_of(noun: type) -> tuple[Declared, ...]:
    """Return the keys a class declares, in order.

    Parameters
    ----------
    noun : type
        A dataclass of facts, or a class of further keys.

    Returns
    -------
    tuple of Declared
        Fields without a `Key` are worked out, and left out here.
    """
    fields = getattr(noun, "__dataclass_fields__", {})
    keys = []
    for name, hint in get_type_hints(noun, include_extras=True).items():
        declared = [one for one in get_args(hint)[1:] if isinstance(one, Key)] if get_origin(
            hint) is Annotated else []
        if not declared:
            continue
        key = declared[0]
        default: Any = (fields[name].default if name in fields
                        else noun.__dict__.get(name, dataclasses.MISSING))
        stated = default is not dataclasses.MISSING
        keys.append(Declared(
            field=name, name=key.name or name, kind=key.kind, doc=key.doc, section=key.section,
            required=not stated if key.required is None else key.required,
            # What is worked out has no default of its own.
            default=default if stated and key.required is None else None))
    return tuple(keys)


def keys_of_part(part: Part) -> tuple[Declared, ...]:
    """Return the keys of a section of the file, in order."""
    return tuple(key for noun in part.nouns for key in keys_of(noun)
                 if key.section in ("", part.section))


SLOWEST_HZ = 32e3
"""No part computes below its watch crystal: a lower number lacks its unit."""

FREQUENCY = Quantity(dimension="hz", low=SLOWEST_HZ, high=20e9)
FREQUENCIES = Quantity(dimension="hz", low=SLOWEST_HZ, high=20e9, depth=1)
SIZE = Quantity(dimension="bytes", low=1, high=2**40, whole=True)
ADDRESS = Quantity(low=0, high=2**48, whole=True, bare=True)
COUNT = Quantity(low=1, high=65536, whole=True)
CYCLES = Quantity(low=0, high=1e6)
WHOLE_CYCLES = Quantity(low=0, high=1e6, whole=True)
RATE = Quantity(above=0, high=1e4)
SHARE = Quantity(low=0, high=1, null=True)
VOLTAGE = Quantity(dimension="v", above=0, high=60)
VOLTAGES = Quantity(dimension="v", above=0, high=60, depth=1)
EFFICIENCIES = Quantity(dimension="v", above=0, high=60, depth=2, null=True)
CURRENT = Quantity(dimension="ma", low=0, high=1e6, null=True)
CURRENT_PER_MHZ = Quantity(dimension="ma_per_mhz", low=0, high=1e4, null=True)
CHARGE = Quantity(dimension="pc", low=0, high=1e9, null=True)
ENERGY = Quantity(dimension="pj", low=0, high=1e12, null=True)
