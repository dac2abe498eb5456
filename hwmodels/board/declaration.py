"""Facts of a board declared once: what a key of its file may hold, and what it means.

    size_bytes: Annotated[int, Key(SIZE, "What it holds.")]

in a noun of `facts` is the whole declaration of a fact. Its validation, its way into the noun, the
units and bounds of a what-if, the parts it may name and its row in docs/boards.md come of it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeGuard, get_args, get_origin, get_type_hints

from hwmodels.errors import did_you_mean
from hwmodels.extensions import find_entries
from hwmodels.frozen import frozen, record
from hwmodels.isa import ISAS, read_name
from hwmodels.quantities import FASTEST_HZ, SLOWEST_HZ, UNITS, read_quantity, suggest_unit

KINDS = ("datasheet", "measured", "fitted", "derived", "assumed")
"""Where a number comes from."""


def is_stated(value: object) -> TypeGuard[list[Any]]:
    """Whether a value of a file is a number with its kind and source."""
    return isinstance(value, list) and len(value) == 3 and value[1] in KINDS


WHAT_IF = "what-if"
"""Source of a number that a what-if has set."""

PLAIN = ""
"""Source of a leaf the file writes plainly: an address, or the word "derived"."""


class RefusedValueError(ValueError):
    """A refusal of a value itself, or of one key inside it."""

    def __init__(self, reason: str, key: str = "") -> None:
        super().__init__(reason)
        self.reason, self.key = reason, key


@record
class Leaf:
    """A number of a board file (or a list of numbers) with where it comes from."""

    value: Any
    kind: str
    source: str
    rel_sd: float | None = None

    def plain(self) -> object:
        """Return the leaf as a board file writes it; without a source it was plain."""
        if self.source == PLAIN:
            return self.value
        if self.rel_sd is None:
            return [self.value, self.kind, self.source]
        return {"value": self.value, "kind": self.kind, "source": self.source,
                "rel_sd": self.rel_sd}


@frozen
class Quantity:
    """What a leaf may hold.

    Parameters
    ----------
    dimension
        Key of `hwmodels.quantities.UNITS`.
    low, high, above
        Bounds; `above` is itself excluded.
    whole, null
        Whether it is an integer; whether "not known" will do.
    depth
        1 for a list, 2 for a list of lists.
    bare
        Whether it may be written without kind and source.
    words
        Accepted beside numbers, or alone where it is not `numeric`.
    group
        Entry points of other packages whose names are accepted, too.
    """

    dimension: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    whole: bool = False
    null: bool = False
    depth: int = 0
    bare: bool = False
    words: tuple[str, ...] = ()
    numeric: bool = True
    group: str = ""

    def read(self, raw: object, sources: Iterable[str]) -> Leaf:
        """Read a leaf whose source is one of the file's.

        Raises
        ------
        RefusedValueError
            Saying what is accepted.
        """
        leaf = self._unpack(raw)
        value = self._read(leaf.value, self.depth)
        if leaf.source == PLAIN:
            return Leaf(value, leaf.kind, leaf.source)
        if leaf.kind not in KINDS:
            raise RefusedValueError(f"kind {leaf.kind!r} is not known; "
                                    + did_you_mean(str(leaf.kind), KINDS))
        known = [str(source) for source in sources]
        if leaf.source not in known:
            raise RefusedValueError(f"source {leaf.source!r} is not in the file's sources table; "
                                    + did_you_mean(str(leaf.source), known))
        if leaf.rel_sd is not None and not (
            isinstance(leaf.rel_sd, (int, float)) and 0 <= leaf.rel_sd < math.inf
        ):
            raise RefusedValueError(f"rel_sd {leaf.rel_sd!r} is not a standard deviation; "
                                    "accepted: >= 0")
        return Leaf(value, leaf.kind, leaf.source, leaf.rel_sd)

    def bounds(self) -> str:
        """Say what is accepted, units apart: "a whole number >= 1 <= 64"."""
        if not self.numeric:
            names = find_entries(self.group) if self.group else ()
            return ", ".join((*self.words, *names))
        bounds = [f"{sign} {bound:g}" for sign, bound in
                  ((">=", self.low), (">", self.above), ("<=", self.high)) if bound is not None]
        return ("a list, each " if self.depth else "") + " ".join(
            ["a whole number" if self.whole else "a number", *bounds])

    def accepted(self) -> str:
        """Say what is accepted: "a whole number >= 1, or with a unit of B, KiB, MiB, GiB"."""
        units = ", ".join(UNITS[self.dimension])
        return self.bounds() + (f", or with a unit of {units}" if units else "") + (
            ", or null for not known" if self.null else "")

    def _unpack(self, raw: object) -> Leaf:
        if isinstance(raw, Leaf):
            return raw
        if isinstance(raw, dict) and {"value", "kind", "source"} <= set(raw) <= {
            "value", "kind", "source", "rel_sd"
        }:
            return Leaf(raw["value"], raw["kind"], raw["source"], raw.get("rel_sd"))
        if isinstance(raw, list) and len(raw) == 3 and isinstance(raw[1], str):
            return Leaf(*raw)
        if (self.bare and not isinstance(raw, (list, dict))) or raw in self.words:
            return Leaf(raw, "derived", PLAIN)
        raise RefusedValueError(f"{shorten(raw)} has no kind and source; "
                                "accepted: [value, kind, source] or {value, kind, source, rel_sd}, "
                                "kind one of " + ", ".join(KINDS))

    def _read(self, value: object, depth: int) -> object:
        if value is None:
            if not self.null:
                raise RefusedValueError(
                    f"null (not known) will not do; accepted: {self.accepted()}")
            return None
        if isinstance(value, str) and (value in self.words or (
                self.group and value in find_entries(self.group))):
            return value
        if depth:
            if not isinstance(value, list) or not value:
                raise RefusedValueError(
                    f"{shorten(value)} is not a list; accepted: {self.accepted()}")
            return [self._read(item, depth - 1) for item in value]
        number = self._parse(value)
        if (not math.isfinite(number) or (self.whole and number != int(number))
                or (self.low is not None and number < self.low)
                or (self.above is not None and number <= self.above)
                or (self.high is not None and number > self.high)):
            unit = (f"; did you mean {number:g}MHz?" if self.dimension == "hz"
                    and self.low is not None and 1 <= number < self.low else "")
            raise RefusedValueError(
                f"{shorten(value)} is impossible; accepted: {self.accepted()}{unit}")
        return int(number) if self.whole else number

    def _parse(self, value: object) -> float:
        if isinstance(value, bool):
            raise RefusedValueError(f"{value} is not a number; accepted: {self.accepted()}")
        if isinstance(value, (int, float)) and self.numeric:
            return value if abs(value) < 2**64 else math.inf
        if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value):
            return int(value, 16)
        read = read_quantity(value, self.dimension) if isinstance(value, str) else None
        if read is None or not self.numeric:
            reason = "not a number of this unit" if self.numeric else "not known here"
            raise RefusedValueError(
                f"{shorten(value)} is {reason}; accepted: {self.accepted()}"
                f"{suggest_unit(str(value), self.dimension)}")
        return read[0]


def shorten(value: object) -> str:
    """Return a value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@record
class Plain:
    """A value written without kind and source: text, or a switch; `read` takes names of before."""

    of: type
    read: Callable[[Any], Any] | None = None


TEXT, SWITCH, CORE = Plain(str), Plain(bool), Plain(str, read_name)


@record
class Choice:
    """One of some words (or versions), without kind and source; `read` takes names of before."""

    words: tuple[str | int, ...]
    read: Callable[[Any], Any] | None = None


ISA = Choice(ISAS, read_name)


@record
class Reference:
    """The name of a part of the board: "clock", "cache", "bus", "memory", "master", "source"."""

    part: str


@record
class Several:
    """A list."""

    of: Kind


@record
class Table:
    """Values, or whole parts, by name; `by` says what the names are."""

    of: Kind
    by: str


@record
class ByScale:
    """A table by voltage scale; the noun has what holds at the scale in force."""

    of: Quantity


@dataclass(frozen=True, slots=True, init=False)
class Part:
    """A section: the keys of a noun, and of a class of what the noun is worked out from.

    Parameters
    ----------
    nouns
        Classes with declared keys; the first is what is read.
    section
        Of a noun whose keys stand in several sections, the one meant.
    """

    nouns: tuple[type, ...]
    section: str

    def __init__(self, *nouns: type, section: str = "") -> None:
        object.__setattr__(self, "nouns", nouns)
        object.__setattr__(self, "section", section)


Kind = Quantity | Plain | Choice | Reference | Several | Table | ByScale | Part
"""What a key may hold."""


@record
class Key:
    """The declaration of a fact.

    Parameters
    ----------
    doc
        What it means, for docs/boards.md.
    required
        Whether a file must give it, False where it is worked out without; None: unless the noun
        has a default.
    name
        In the file, where it is not the noun's.
    section
        Section it stands in, of a noun whose keys stand in several.
    """

    kind: Kind
    doc: str
    _: dataclasses.KW_ONLY
    required: bool | None = None
    name: str = ""
    section: str = ""


@frozen
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
    noun
        A dataclass of facts, or a class of further keys.

    Returns
    -------
    tuple of Declared
        Fields without a `Key` are worked out, and omitted here.
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


FREQUENCY = Quantity(dimension="hz", low=SLOWEST_HZ, high=FASTEST_HZ)
FREQUENCIES = Quantity(dimension="hz", low=SLOWEST_HZ, high=FASTEST_HZ, depth=1)
SIZE = Quantity(dimension="bytes", low=1, high=2**40, whole=True)
SIZES = Quantity(dimension="bytes", low=1, high=2**40, whole=True, depth=1)
ADDRESS = Quantity(low=0, high=2**48, whole=True, bare=True)
ADDRESSES = Quantity(low=0, high=2**48, whole=True, depth=1)
COUNT = Quantity(low=1, high=65536, whole=True)
CYCLES = Quantity(low=0, high=1e6)
AMOUNT = Quantity(low=0, high=1e6)
WHOLE_CYCLES = Quantity(low=0, high=1e6, whole=True)
MOST_WAIT_STATES = 64
"""Of a new board's flash, stated or guessed: more is a slip of the unit."""
RATE = Quantity(low=1e-6, high=1e4)
SHARE = Quantity(low=0, high=1, null=True)
VOLTAGE = Quantity(dimension="v", above=0, high=60)
VOLTAGES = Quantity(dimension="v", above=0, high=60, depth=1)
EFFICIENCIES = Quantity(dimension="v", above=0, high=60, depth=2, null=True)
CURRENT = Quantity(dimension="ma", low=0, high=1e6, null=True)
CURRENT_PER_MHZ = Quantity(dimension="ma_per_mhz", low=0, high=10, null=True)
"""Thirty times the most of any board here; more is a slip of the unit: uA/MHz."""
CHARGE = Quantity(dimension="pc", low=0, high=1e9, null=True)
ENERGY = Quantity(dimension="pj", low=0, high=1e12, null=True)
