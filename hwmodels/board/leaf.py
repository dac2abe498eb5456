"""Numbers of a board file: a value with unit and bounds, its kind and its source.

A number is written `[value, kind, source]` or `{value, kind, source, rel_sd}`. A key that carries
a unit also takes a value written with one (`280MHz`, `32KiB`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hwmodels.errors import did_you_mean
from hwmodels.quantities import UNITS, read_quantity

KINDS = ("datasheet", "measured", "fitted", "derived", "assumed")
"""Where a number comes from."""

WHAT_IF = "what-if"
"""Source of a number that a what-if has set."""

PLAIN = ""
"""Source of a leaf the file writes plainly: an address, or the word "derived"."""


class RefusedValueError(ValueError):
    """A refusal of a value itself, or of one key inside it."""

    def __init__(self, reason: str, key: str = "") -> None:
        super().__init__(reason)
        self.reason, self.key = reason, key


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
    """What a leaf may hold.

    Parameters
    ----------
    dimension : str
        Key of `hwmodels.quantities.UNITS`.
    low, high, above : float or None
        Bounds; `above` is itself excluded.
    whole, null : bool
        Whether it is an integer; whether "not known" will do.
    depth : int
        1 for a list, 2 for a list of lists.
    bare : bool
        Whether it may be written without kind and source.
    words : tuple of str
        Accepted beside numbers, or alone where it is not `numeric`.
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
            raise RefusedValueError(f"rel_sd {leaf.rel_sd!r} is no standard deviation; "
                                    "accepted: >= 0")
        return Leaf(value, leaf.kind, leaf.source, leaf.rel_sd)

    def bounds(self) -> str:
        """Say what is accepted, units apart: "a whole number >= 1 <= 64"."""
        if not self.numeric:
            return ", ".join(self.words)
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
        if isinstance(value, str) and value in self.words:
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
            raise RefusedValueError(f"{shorten(value)} is {reason}; accepted: {self.accepted()}")
        return read[0]


def shorten(value: object) -> str:
    """Return a value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
