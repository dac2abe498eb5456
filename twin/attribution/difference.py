"""Two sides beside each other: every quantity by part and by cause, summing in whole numbers.

gap = second - first = what the causes account for + `unexplained`, in every row and in the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twin.attribution.counter_causes import load_groups, read_part
from twin.attribution.pairing import Pairing
from twin.attribution.sameness import NOTE, Finding
from twin.attribution.side import Side

MOST_NAMED = 10
"""More causes than this in one group are named by their counter."""

NO_FINDING = "a price no row tells by itself"
"""What stands beside a cause whose gap is a doubtful price's, not the network's."""

SIZES = {"ram_bytes": "bytes", "flash_bytes": "bytes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A cause on both sides, or causes one counter tells together.

    Parameters
    ----------
    causes : tuple of str
        Of the bill; ("clock",) in times, ("",) for a part without a bill.
    first : int
        Sum of them.
    second : int or None
        As billed or counted; None: nothing tells.
    counter : str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A part, the total, or a size, on both sides.

    Parameters
    ----------
    index : int or None
        In the model; None for the total and for what is outside parts.
    name, op : str
        Of the part.
    unit : str
        Of both figures.
    first, second : int
        Whole; 0 where a part is not there.
    lines : tuple of Line
        Their `first` sums to the row's, where there are any.
    mark : str
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
        """Part of the gap the told causes account for."""
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
    def reason(self) -> str:
        """The largest cause of the gap, or that the part came or went."""
        moved = [line for line in self.moved if line.counter != NO_FINDING]
        return self.mark or (f"{moved[0].label} {moved[0].gap:+,}" if moved else "")

    def exceeds(self, limit: float) -> bool:
        """Whether it grew by more than a share."""
        return self.gap > limit * self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One quantity on both sides; rows sum to the total, column by column.

    Parameters
    ----------
    quantity : str
        "cycles", "instructions", "time" or "energy".
    unit : str
        Of every figure; they are whole.
    rows : tuple of Row
        Parts in order; the last may be what is outside them.
    """

    quantity: str
    unit: str
    rows: tuple[Row, ...]

    @property
    def parts(self) -> tuple[Row, ...]:
        """Rows of layers or epochs."""
        return tuple(row for row in self.rows if row.index is not None)

    @property
    def total(self) -> Row:
        """Sum of the rows: first, second and the gap of every group of causes."""
        groups: dict[tuple[str, ...], list[Line]] = {}
        for row in self.rows:
            for line in row.lines:
                groups.setdefault(line.causes, []).append(line)
        return Row(name="total", unit=self.unit, first=sum(row.first for row in self.rows),
                   second=sum(row.second for row in self.rows),
                   lines=tuple(_sum_lines(lines) for lines in groups.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two sides beside each other.

    Parameters
    ----------
    first, second : Side
        A prediction and what was measured, or before and after.
    accounts : tuple of Account
        By quantity, those both sides have.
    findings : tuple of Finding
        Where they are not of the same thing.
    pairing : Pairing
        Which part is which.
    notes : tuple of str
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

    def exceeding(self, limit: float, *, with_parts: bool = False) -> tuple[Row, ...]:
        """Return what grew by more than the limit."""
        judged = (*self.totals, *(self.main.parts if with_parts else ()))
        return tuple(row for row in judged if row.exceeds(limit))


def _sum_lines(lines: Sequence[Line]) -> Line:
    told = [line for line in lines if line.second is not None]
    first = sum(line.first for line in lines)
    explained = sum(line.second - line.first for line in told if line.second is not None)
    return Line(causes=lines[0].causes, first=first,
                second=first + explained if told else None,
                counter=next((line.counter for line in told), ""))
