"""Two sides beside each other: every quantity by part and by cause, summing in whole numbers.

gap = second - first = what the causes account for + `unexplained`, in every row and in the total.
Counters of boards become causes of the bill by one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from calibration.measurement.counters import ALIASES
from hwmodels.counts import CAUSES
from hwmodels.files import JsonObject, read_yaml
from hwmodels.frozen import frozen
from hwmodels.quantities import list_by_key
from twin.attribution.compatibility import NOTE, Finding
from twin.attribution.pairing import Pairing
from twin.attribution.side import Part, Side

SOFTWARE = "SW"
"""What logs call a task that runs on the host alone; they count no accelerator cycles of it."""


@frozen
class CounterGroup:
    """Causes that counters give the cycles of, together.

    Parameters
    ----------
    name
        What is counted, in words.
    terms
        Counter -> sign; "cycles" is the cycle counter.
    causes
        Of the bill; of an accelerator with the clock, as "mac@npu".
    events
        Empty when the sum is cycles; else what is counted, priced as predicted.
    bits
        Width of the narrowest register; a sum that may have wrapped is not used.
    clock
        Clock of the cycles; "" is the core's.
    source
        Full text.
    optional
        As `terms`; nothing where they are not there.
    """

    name: str
    terms: Mapping[str, int]
    causes: tuple[str, ...]
    events: tuple[str, ...]
    bits: int
    clock: str
    source: str
    optional: Mapping[str, int]

    def read(self, counts: Mapping[str, float], cycles: float | None) -> float | None:
        """Return the sum of the counters; None when one is missing or may have wrapped."""
        total = 0.0
        for name, sign in self.terms.items():
            value = _find(name, counts)
            if value is None:
                return None
            narrow = self.bits < 32 and name != "cycles"
            if narrow and value < 2**self.bits and (cycles is None or cycles >= 2**self.bits):
                return None
            total += sign * value
        return total + sum(sign * counts.get(name, 0.0) for name, sign in self.optional.items())

    def price(self, counted: float, predicted_events: Mapping[str, float],
              predicted_cycles: int) -> float | None:
        """Return cycles of a count: itself, or at the prediction's cycles per event."""
        if not self.events:
            return counted
        expected = sum(predicted_events.get(event, 0.0) for event in self.events)
        if expected > 0:
            return counted * predicted_cycles / expected
        return 0.0 if counted == 0 and predicted_cycles == 0 else None


def read_part(group: CounterGroup, part: Part) -> float | None:
    """Return what a group's counters say of a part; None where they do not tell.

    A task whose log calls it one of software uses no accelerator: its cycles there are none.
    """
    if part.op == SOFTWARE and group.clock == "npu":
        return group.read(dict.fromkeys(group.terms, 0.0) | dict(part.counts), None)
    return group.read(part.counts, part.amounts.get("cycles"))


def _find(name: str, counts: Mapping[str, float]) -> float | None:
    return next((counts[alias] for alias in (name, *ALIASES.get(name, ())) if alias in counts),
                None)


@lru_cache(maxsize=1)
def load_groups() -> tuple[CounterGroup, ...]:
    """Return the table, in its order."""
    document = read_yaml(Path(__file__).with_name("counters.yaml"))
    return tuple(CounterGroup(
        name=entry["name"], terms=dict(entry["sum"]), causes=_causes(entry),
        events=tuple(entry.get("events", ())), bits=entry.get("bits", 64),
        optional=dict(entry.get("optional", {})), clock=entry.get("clock", ""),
        source=document["sources"][entry["source"]])
        for entry in document["entries"])


def _causes(entry: JsonObject) -> tuple[str, ...]:
    if "clock" in entry:
        return tuple(f"{cause}@{entry['clock']}" for cause in CAUSES)
    return tuple(entry["causes"])


MOST_NAMED = 10
"""More causes than this in one group are named by their counter."""

NO_FINDING = "a price no row identifies by itself"
"""What stands beside a cause whose gap is a doubtful price's, not the network's."""

SIZES = {"ram_bytes": "bytes", "flash_bytes": "bytes"}


@frozen
class Line:
    """A cause on both sides, or causes one counter covers.

    Parameters
    ----------
    causes
        Of the bill; ("clock",) in times, ("",) for a part without a bill.
    first
        Sum of them.
    second
        As billed or counted; None: not known.
    counter
        What counted them, "" for a bill.
    """

    causes: tuple[str, ...]
    first: int
    second: int | None = None
    counter: str = ""

    @property
    def gap(self) -> int | None:
        """Second less first."""
        return None if self.second is None else self.second - self.first

    @property
    def label(self) -> str:
        """The causes, or what counts them where they are all there are."""
        return ", ".join(self.causes) if len(self.causes) <= MOST_NAMED else self.counter


@frozen
class Row:
    """A part, the total, or a size, on both sides.

    Parameters
    ----------
    index
        In the model; None for the total and for what is outside parts.
    unit
        Of both figures.
    first, second
        Whole; 0 where a part is not there.
    lines
        Their `first` sums to the row's, where there are any.
    mark
        "new" or "gone" for a part of one side only.
    """

    index: int | None = None
    name: str
    op: str = ""
    unit: str
    first: int
    second: int
    lines: tuple[Line, ...] = ()
    mark: str = ""

    @property
    def gap(self) -> int:
        """Second less first."""
        return self.second - self.first

    @property
    def explained(self) -> int:
        """Part of the gap the known causes account for."""
        return sum(line.gap for line in self.lines if line.gap is not None)

    @property
    def unexplained(self) -> int:
        """What is left, signed: gap = explained + unexplained."""
        return self.gap - self.explained

    @property
    def ratio(self) -> float | None:
        """First over second; None where the second is nothing."""
        return self.first / self.second if self.second else None

    @property
    def increase(self) -> float | None:
        """Relative change; None from nothing."""
        return self.gap / self.first if self.first else None

    @property
    def label(self) -> str:
        """Number and name."""
        return self.name if self.index is None else f"{self.index} {self.name or self.op}"

    @property
    def moved(self) -> tuple[Line, ...]:
        """Causes with a gap, largest first."""
        return tuple(sorted((line for line in self.lines if line.gap),
                            key=lambda line: -abs(line.gap or 0)))

    @property
    def terms(self) -> tuple[tuple[str, int], ...]:
        """Named causes and what is unexplained, each with its gap, largest first."""
        found = [(line.label, line.gap or 0) for line in self.moved if line.counter != NO_FINDING]
        found += [("unexplained", self.unexplained)] * bool(self.unexplained)
        return tuple(sorted(found, key=lambda term: -abs(term[1])))

    def exceeds(self, limit: float) -> bool:
        """Whether it grew by more than a share."""
        return self.gap > limit * self.first


@frozen
class Account:
    """One quantity on both sides; rows sum to the total, column by column.

    Parameters
    ----------
    quantity
        "cycles", "instructions", "time" or "energy".
    unit
        Of every figure; they are whole.
    rows
        Parts in order; the last may be what is outside them.
    """

    quantity: str
    unit: str
    rows: tuple[Row, ...]

    @property
    def parts(self) -> tuple[Row, ...]:
        """Rows of layers or tasks."""
        return tuple(row for row in self.rows if row.index is not None)

    @property
    def total(self) -> Row:
        """Sum of the rows: first, second and the gap of every group of causes."""
        groups = list_by_key((line.causes, line) for row in self.rows for line in row.lines)
        return Row(name="total", unit=self.unit, first=sum(row.first for row in self.rows),
                   second=sum(row.second for row in self.rows),
                   lines=tuple(_sum_lines(lines) for lines in groups.values()))


@frozen
class Difference:
    """Two sides beside each other.

    Parameters
    ----------
    first, second
        A prediction and what was measured, or before and after.
    accounts
        By quantity, those both sides have.
    findings
        Where they are not of the same thing.
    notes
        What a reader must know of the counters.
    """

    first: Side
    second: Side
    accounts: tuple[Account, ...]
    findings: tuple[Finding, ...]
    pairing: Pairing
    notes: tuple[str, ...] = ()

    def account(self, quantity: str) -> Account | None:
        """Return the account of a quantity; None when a side lacks it."""
        return next((one for one in self.accounts if one.quantity == quantity), None)

    @property
    def main(self) -> Account:
        """The account with the fewest detours: cycles of one clock, time, else the first."""
        same = all(self.first.clocks_hz.get(name, hertz) == hertz
                   for name, hertz in self.second.clocks_hz.items())
        return next((one for name in (("cycles", "time") if same else ("time", "cycles"))
                     for one in self.accounts if one.quantity == name), self.accounts[0])

    @property
    def totals(self) -> tuple[Row, ...]:
        """One inference by quantity, then memories."""
        found = [Row(name=one.quantity, unit=one.unit, first=one.total.first,
                     second=one.total.second) for one in self.accounts]
        sizes = [Row(name=name, unit=unit, first=self.first.sizes[name],
                     second=self.second.sizes[name]) for name, unit in SIZES.items()
                 if name in self.first.sizes and name in self.second.sizes]
        return (*found, *sizes)

    @property
    def counters(self) -> tuple[Line, ...]:
        """Events two measurements counted: no prediction prices them."""
        found = []
        for group in load_groups() if self.first.counted and self.second.counted else ():
            reads = [read_part(group, side.whole) for side in (self.first, self.second)]
            if group.events and reads[0] is not None and reads[1] is not None:
                found.append(Line(causes=group.causes, first=round(reads[0]),
                                  second=round(reads[1]), counter=group.name))
        return tuple(sorted(found, key=lambda line: -abs(line.gap or 0)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What stands above the figures' meaning: findings but notes, and notes of counters."""
        return (*(str(one) for one in self.findings if one.level != NOTE), *self.notes)

    def besides(self, quantity: str, least: float) -> tuple[Row, ...]:
        """Return energy and sizes that grew by more than a share; all that moved where it stays."""
        stays = not next(row.gap for row in self.totals if row.name == quantity)
        return tuple(row for row in self.totals if (row.gap if stays else (
            row.exceeds(least) and row.name in ("energy", *SIZES) and row.name != quantity)))

    def exceeding(self, limit: float, *, with_parts: bool = False) -> tuple[Row, ...]:
        """Return what grew by more than the limit."""
        judged = (*self.totals, *(self.main.parts if with_parts else ()))
        return tuple(row for row in judged if row.exceeds(limit))


def _sum_lines(lines: Sequence[Line]) -> Line:
    known = [line for line in lines if line.second is not None]
    first = sum(line.first for line in lines)
    explained = sum(line.second - line.first for line in known if line.second is not None)
    return Line(causes=lines[0].causes, first=first, second=first + explained if known else None,
                counter=next((line.counter for line in known), ""))
