"""Two bills side by side: predicted and measured, the gap of every cause, and what stays open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.attribution.counter_causes import CounterGroup, load_groups
from twin.attribution.sameness import check_same, compare_setups
from twin.attribution.sides import UNITS, Part, Side
from twin.errors import UsageError

CLOCK = "clock"
"""Pseudo-cause of a time: the clock ran at another frequency than the one predicted with."""

MOST_NAMED = 10
"""More causes than this in one group are named by their counter."""

OUTSIDE = "outside them"
"""Name of the row that holds what no layer or epoch accounts for: rows sum to the inference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Causes told together by a counter, or one cause nobody counted.

    Parameters
    ----------
    causes : tuple of str
        Of the bill; ("clock",) in times.
    predicted : int
        Sum of their predictions.
    measured : int or None
        As counted; None: nothing counts them.
    counter : str
        What counted them, "" for none.
    """

    causes: tuple[str, ...]
    predicted: int
    measured: int | None = None
    counter: str = ""

    @property
    def gap(self) -> int | None:
        """Measured less predicted."""
        return None if self.measured is None else self.measured - self.predicted

    @property
    def label(self) -> str:
        """The causes, or what counts them where they are all there are."""
        return ", ".join(self.causes) if len(self.causes) <= MOST_NAMED else self.counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A part, or the total, on both sides.

    Parameters
    ----------
    index : int or None
        In the model; None for the total and for what is outside parts.
    name, op : str
        Of the part.
    predicted, measured : int
        In the account's unit.
    gaps : tuple of Gap
        Their predictions sum to `predicted`.
    """

    index: int | None
    name: str
    op: str
    predicted: int
    measured: int
    gaps: tuple[Gap, ...]

    @property
    def gap(self) -> int:
        """Measured less predicted."""
        return self.measured - self.predicted

    @property
    def explained(self) -> int:
        """Part of the gap the counted causes account for."""
        return sum(gap.gap for gap in self.gaps if gap.gap is not None)

    @property
    def unexplained(self) -> int:
        """What is left, signed: gap = explained + unexplained."""
        return self.gap - self.explained

    @property
    def ratio(self) -> float | None:
        """Measured over predicted; None where nothing was predicted."""
        return self.measured / self.predicted if self.predicted else None


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
    def total(self) -> Row:
        """Sum of the rows: predicted, measured and the gap of every group of causes."""
        groups: dict[tuple[str, ...], list[Gap]] = {}
        for row in self.rows:
            for gap in row.gaps:
                groups.setdefault(gap.causes, []).append(gap)
        return Row(index=None, name="total", op="",
                   predicted=sum(row.predicted for row in self.rows),
                   measured=sum(row.measured for row in self.rows),
                   gaps=tuple(_sum_gaps(gaps) for gaps in groups.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """A prediction beside a measurement.

    Parameters
    ----------
    predicted, measured : Side
        What is compared.
    accounts : tuple of Account
        By quantity, those both sides have.
    notes : tuple of str
        What a reader must know: set-ups that differ, counters that wrapped.
    """

    predicted: Side
    measured: Side
    accounts: tuple[Account, ...]
    notes: tuple[str, ...] = ()

    def account(self, quantity: str) -> Account | None:
        """Return the account of a quantity; None when a side lacks it."""
        return next((one for one in self.accounts if one.quantity == quantity), None)

    @property
    def main(self) -> Account:
        """The account that has causes and the fewest detours: cycles, time, else the first."""
        return next((one for name in ("cycles", "time") for one in self.accounts
                     if one.quantity == name), self.accounts[0])


def _sum_gaps(gaps: Sequence[Gap]) -> Gap:
    counted = [gap for gap in gaps if gap.measured is not None]
    predicted = sum(gap.predicted for gap in gaps)
    explained = sum(gap.measured - gap.predicted for gap in counted if gap.measured is not None)
    return Gap(causes=gaps[0].causes, predicted=predicted,
               measured=predicted + explained if counted else None,
               counter=next((gap.counter for gap in counted), ""))


def attribute(predicted: Side, measured: Side) -> Attribution:
    """Set a prediction beside a measurement of the same network.

    Parameters
    ----------
    predicted, measured : Side
        From `twin.attribution.sides`.

    Returns
    -------
    Attribution
        In whole units: every row's gap is the sum of its causes' gaps and of `unexplained`, and
        rows sum to the total.

    Raises
    ------
    UsageError
        When the sides are swapped, of other networks or boards, or share no quantity.

    Notes
    -----
    A part is its median over the runs; medians do not add up to the median of the whole, and calls
    between layers belong to none: the row "outside them" holds the rest. A counter known for the
    whole network only has its gap in that row. Counters that may have wrapped are not used.
    """
    check_same(predicted, measured)
    notes = compare_setups(predicted, measured)
    pairs, outside = _pair(predicted, measured)
    groups = tuple(_usable_groups(pairs, outside))
    accounts = []
    for quantity, unit in UNITS.items():
        if quantity in predicted.whole.amounts and quantity in measured.whole.amounts:
            accounts.append(_make_account(quantity, unit, pairs, outside, groups,
                                          (predicted, measured)))
    if not accounts:
        raise UsageError(
            f"{measured.label} has {', '.join(measured.whole.amounts)}, the prediction "
            f"{', '.join(predicted.whole.amounts)}: nothing to set side by side")
    notes += _note_wrapped(measured, groups)
    return Attribution(predicted=predicted, measured=measured, accounts=tuple(accounts),
                       notes=tuple(notes))


# --- pairing ---------------------------------------------------------------------------------

_Pair = tuple[Part, Part]


def _pair(predicted: Side, measured: Side) -> tuple[list[_Pair], tuple[list[Part], Part]]:
    """Return parts both sides have, and (predicted parts nobody measured, measured whole)."""
    found = {part.index: part for part in measured.parts} if (
        predicted.part == measured.part) else {}
    if predicted.part == "epoch" and set(found) != {part.index for part in predicted.parts}:
        found = {}  # another schedule: epochs of the same number are not the same work
    pairs = [(part, found[part.index]) for part in predicted.parts if part.index in found]
    rest = [part for part in predicted.parts if part.index not in found]
    return pairs, (rest, measured.whole)


def _usable_groups(pairs: list[_Pair],
                   outside: tuple[list[Part], Part]) -> list[tuple[CounterGroup, bool]]:
    """Groups counted in every part (True) or in the whole only (False), none overlapping."""
    whole = outside[1]
    chosen: list[tuple[CounterGroup, bool]] = []
    taken: set[str] = set()
    for group in load_groups():
        if taken & set(group.causes):
            continue
        in_parts = bool(pairs) and all(
            _read(group, part) is not None for _, part in pairs)
        if in_parts or _read(group, whole) is not None:
            chosen.append((group, in_parts))
            taken |= set(group.causes)
    return chosen


def _read(group: CounterGroup, part: Part) -> float | None:
    return group.read(part.counts, part.amounts.get("cycles"))


def _make_account(quantity: str, unit: str, pairs: list[_Pair],
                  outside: tuple[list[Part], Part],
                  groups: tuple[tuple[CounterGroup, bool], ...],
                  sides: tuple[Side, Side]) -> Account:
    known = [(ours, theirs) for ours, theirs in pairs if quantity in theirs.amounts]
    per_part = [group for group, in_parts in groups if in_parts]
    scale = _Scale.of(quantity, sides)
    rows = [Row(index=ours.index, name=ours.name, op=ours.op,
                predicted=ours.amounts[quantity], measured=theirs.amounts[quantity],
                gaps=_list_gaps(quantity, ours, theirs, per_part, groups, scale))
            for ours, theirs in known]
    matched = {ours.index for ours, _ in known}
    rest = [ours for ours, _ in pairs if ours.index not in matched] + outside[0]
    rows.append(_outside_row(quantity, rows, rest, outside[1], groups, scale, bool(known),
                             [ours for ours, _ in known]))
    return Account(quantity=quantity, unit=unit, rows=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """How cycles of a counter become the account's unit: 1, or ns per cycle of each clock."""

    per_cycle: Mapping[str, float] | None
    clock: str
    predicted_hz: float
    measured_hz: float

    @classmethod
    def of(cls, quantity: str, sides: tuple[Side, Side]) -> _Scale:
        predicted, measured = sides
        clock = predicted.clock
        ours = predicted.clocks_hz.get(clock, 0.0)
        theirs = measured.clocks_hz.get(clock, ours)
        if quantity == "cycles":
            return cls(per_cycle={"": 1.0}, clock=clock, predicted_hz=1.0, measured_hz=1.0)
        if quantity != "time" or not ours or not theirs:
            return cls(per_cycle=None, clock=clock, predicted_hz=1.0, measured_hz=1.0)
        rates = {name: 1e9 / hertz for name, hertz in measured.clocks_hz.items()}
        return cls(per_cycle={"": 1e9 / theirs, **rates}, clock=clock, predicted_hz=ours,
                   measured_hz=theirs)

    @property
    def slower(self) -> float:
        """How much longer a predicted time takes at the measured clock."""
        return self.predicted_hz / self.measured_hz

    def counts_in(self, group: CounterGroup) -> bool:
        """Whether the group's cycles mean something in this account."""
        return self.per_cycle is not None and group.clock in self.per_cycle


def _list_gaps(quantity: str, ours: Part, theirs: Part, per_part: Sequence[CounterGroup],
               groups: Sequence[tuple[CounterGroup, bool]], scale: _Scale) -> tuple[Gap, ...]:
    """Gaps of a part's causes: grouped as the counters group them, single ones after."""
    causes = dict(ours.causes.get(quantity, {}))
    found: list[Gap] = []
    for group, _ in groups if scale.per_cycle is not None else ():
        predicted = sum(causes.pop(cause, 0) for cause in group.causes)
        counted = group if group in per_part else None
        measured = None if counted is None else _measure(group, ours, theirs, predicted, scale)
        found.append(Gap(causes=group.causes, predicted=predicted, measured=measured,
                         counter=group.name if measured is not None else ""))
    found += [Gap(causes=(cause,), predicted=amount) for cause, amount in causes.items()]
    rest = ours.amounts[quantity] - sum(gap.predicted for gap in found)
    if rest:  # a part without a bill of its own
        found.append(Gap(causes=("",), predicted=rest))
    if quantity == "time" and scale.per_cycle is not None and abs(scale.slower - 1) > 1e-9:
        found.append(Gap(causes=(CLOCK,), predicted=0, counter="header",
                         measured=round(ours.amounts[quantity] * (scale.slower - 1))))
    return tuple(found)


def _measure(group: CounterGroup, ours: Part, theirs: Part, predicted: int,
             scale: _Scale) -> int | None:
    """What a group took by its counters, at the predicted clock: the clock's share is its own."""
    counted = _read(group, theirs)
    if counted is None or not scale.counts_in(group):
        return None
    assert scale.per_cycle is not None
    if group.events:
        priced = group.price(counted, ours.counts, predicted)
        return None if priced is None else round(predicted + (priced - predicted) * scale.slower)
    amount = counted * scale.per_cycle[group.clock]
    longer = predicted * (scale.slower - 1) if group.clock in ("", scale.clock) else 0.0
    return round(amount - longer)


def _outside_row(quantity: str, rows: Sequence[Row], rest: Sequence[Part], whole: Part,
                 groups: Sequence[tuple[CounterGroup, bool]], scale: _Scale,
                 some_known: bool, known: Sequence[Part]) -> Row:
    """Return what the rows leave of the inference, with the counters of the whole network."""
    predicted = sum(part.amounts.get(quantity, 0) for part in rest)
    causes: dict[str, int] = {}
    events: dict[str, float] = {}
    for part in rest:
        for cause, amount in part.causes.get(quantity, {}).items():
            causes[cause] = causes.get(cause, 0) + amount
    for part in (*rest, *known):
        for event, count in part.counts.items():
            events[event] = events.get(event, 0.0) + count
    ours = Part(index=None, amounts={quantity: predicted}, causes={quantity: causes},
                counts=events)
    measured = whole.amounts[quantity] - sum(row.measured for row in rows)
    whole_only = [group for group, in_parts in groups if not in_parts]
    gaps = list(_list_gaps(quantity, ours, Part(index=None, amounts={}), (), groups, scale))
    for place, gap in enumerate(gaps):
        group = next((one for one in whole_only if one.causes == gap.causes), None)
        if group is None:
            continue
        inside = sum(one.predicted for row in rows for one in row.gaps if one.causes == gap.causes)
        counted = _measure(group, ours, whole, inside + gap.predicted, scale)
        if counted is not None:
            gaps[place] = Gap(causes=gap.causes, predicted=gap.predicted,
                              measured=counted - inside, counter=f"{group.name}, whole network")
    name = OUTSIDE if some_known else "whole network"
    return Row(index=None, name=name, op="", predicted=predicted, measured=measured,
               gaps=tuple(gaps))


def _note_wrapped(measured: Side, groups: Sequence[tuple[CounterGroup, bool]]) -> list[str]:
    """Say which counters were there and tell nothing, because they wrap."""
    used = {name for group, _ in groups for name in group.terms}
    wrapped = sorted({
        name for group in load_groups() if group.bits < 32
        for name in group.terms if name in measured.whole.counts and name not in used})
    if not wrapped:
        return []
    return [f"{', '.join(wrapped)} wrap every 256 events and are known modulo 256 only: not used; "
            "overflow packets over SWO give them whole (`twin import itm`)"]
