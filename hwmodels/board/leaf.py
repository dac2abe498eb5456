"""Numbers of a board file: a value with unit and bounds, its kind and its source.

A number is written `[value, kind, source]` or `{value, kind, source, rel_sd}`. A key that carries
a unit also takes a value written with one (`280MHz`, `32KiB`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from hwmodels.board.facts import KINDS, REPLACEMENTS
from hwmodels.errors import did_you_mean
from hwmodels.quantities import UNITS, read_quantity

WHAT_IF = "what-if"
"""Source of a number that a what-if has set."""

PLAIN = ""
"""Source of a leaf the file writes plainly: an address, or the word "derived"."""

def refuse_value(reason: str, key: str = "") -> PydanticCustomError:
    """Return a refusal of the value itself, or of one key inside it."""
    return PydanticCustomError("board", "{reason}", {"reason": reason, "key": key})


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What a leaf may hold: its dimension, bounds, and whether it is whole, a list, or nullable."""

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

    def __call__(self, raw: object, info: ValidationInfo) -> Leaf:
        """Read a leaf; the context of `info` holds the file's `sources`."""
        leaf = self._unpack(raw)
        value = self._read(leaf.value, self.depth)
        if leaf.source == PLAIN:
            return Leaf(value, leaf.kind, leaf.source)
        if leaf.kind not in KINDS:
            raise refuse_value(f"kind {leaf.kind!r} is not known; "
                               + did_you_mean(str(leaf.kind), KINDS))
        sources = [str(source) for source in (info.context or {}).get("sources", ())]
        if leaf.source not in sources:
            raise refuse_value(f"source {leaf.source!r} is not in the file's sources table; "
                               + did_you_mean(str(leaf.source), sources))
        if leaf.rel_sd is not None and not (
            isinstance(leaf.rel_sd, (int, float)) and 0 <= leaf.rel_sd < math.inf
        ):
            raise refuse_value(f"rel_sd {leaf.rel_sd!r} is no standard deviation; accepted: >= 0")
        return Leaf(value, leaf.kind, leaf.source, leaf.rel_sd)

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
        raise refuse_value(f"{shorten(raw)} has no kind and source; "
                           "accepted: [value, kind, source] or {value, kind, source, rel_sd}, "
                           "kind one of " + ", ".join(KINDS))

    def _read(self, value: object, depth: int) -> object:
        if value is None:
            if not self.null:
                raise refuse_value(f"null (not known) will not do; accepted: {self._wanted()}")
            return None
        if isinstance(value, str) and value in self.words:
            return value
        if depth:
            if not isinstance(value, list) or not value:
                raise refuse_value(f"{shorten(value)} is not a list; accepted: {self._wanted()}")
            return [self._read(item, depth - 1) for item in value]
        number = self._parse(value)
        if (not math.isfinite(number) or (self.whole and number != int(number))
                or (self.low is not None and number < self.low)
                or (self.above is not None and number <= self.above)
                or (self.high is not None and number > self.high)):
            unit = ("; did you mean " + f"{number:g}MHz?"
                    if self.dimension == "hz" and 1 <= number < SLOWEST_HZ else "")
            raise refuse_value(f"{shorten(value)} is impossible; accepted: {self._wanted()}{unit}")
        return int(number) if self.whole else number

    def _parse(self, value: object) -> float:
        if isinstance(value, bool):
            raise refuse_value(f"{value} is not a number; accepted: {self._wanted()}")
        if isinstance(value, (int, float)) and self.numeric:
            return value if abs(value) < 2**64 else math.inf
        if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value):
            return int(value, 16)
        read = read_quantity(value, self.dimension) if isinstance(value, str) else None
        if read is None or not self.numeric:
            reason = "not a number of this unit" if self.numeric else "not known here"
            raise refuse_value(f"{shorten(value)} is {reason}; accepted: {self._wanted()}")
        return read[0]

    def _wanted(self) -> str:
        if not self.numeric:
            return ", ".join(self.words)
        units = ", ".join(UNITS[self.dimension])
        bounds = [f"{sign} {bound:g}" for sign, bound in
                  ((">=", self.low), (">", self.above), ("<=", self.high)) if bound is not None]
        words = ["a whole number" if self.whole else "a number", *bounds]
        return ("a list, each " if self.depth else "") + " ".join(words) + (
            f", or with a unit of {units}" if units else "") + (
            ", or null for not known" if self.null else "")


def shorten(value: object) -> str:
    """Return a value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def quantity(**limits: Any) -> PlainValidator:
    """Return the validator of a `Quantity` with these limits."""
    return PlainValidator(Quantity(**limits))


SLOWEST_HZ = 32e3
"""No part computes below its watch crystal: a lower number lacks its unit."""

Frequency = Annotated[Leaf, quantity(dimension="hz", low=SLOWEST_HZ, high=20e9)]
Frequencies = Annotated[Leaf, quantity(dimension="hz", low=SLOWEST_HZ, high=20e9, depth=1)]
Size = Annotated[Leaf, quantity(dimension="bytes", low=1, high=2**40, whole=True)]
Address = Annotated[Leaf, quantity(low=0, high=2**48, whole=True, bare=True)]
Count = Annotated[Leaf, quantity(low=1, high=65536, whole=True)]
Cycles = Annotated[Leaf, quantity(low=0, high=1e6)]
WholeCycles = Annotated[Leaf, quantity(low=0, high=1e6, whole=True)]
Rate = Annotated[Leaf, quantity(above=0, high=1e4)]
Share = Annotated[Leaf, quantity(low=0, high=1, null=True)]
Voltage = Annotated[Leaf, quantity(dimension="v", above=0, high=60)]
Voltages = Annotated[Leaf, quantity(dimension="v", above=0, high=60, depth=1)]
Efficiencies = Annotated[Leaf, quantity(dimension="v", above=0, high=60, depth=2, null=True)]
Current = Annotated[Leaf, quantity(dimension="ma", low=0, high=1e6, null=True)]
CurrentPerMhz = Annotated[Leaf, quantity(dimension="ma_per_mhz", low=0, high=1e4, null=True)]
Ipc = Annotated[Leaf, quantity(above=0, high=16, null=True)]
Charge = Annotated[Leaf, quantity(dimension="pc", low=0, high=1e9, null=True)]
Energy = Annotated[Leaf, quantity(dimension="pj", low=0, high=1e12, null=True)]
Money = Annotated[Leaf, quantity(low=0, high=1e6, null=True)]
Policy = Annotated[Leaf, quantity(numeric=False, words=REPLACEMENTS)]
