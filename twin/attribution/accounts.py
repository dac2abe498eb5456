"""Accounts of two sides: rows of parts, lines of causes, counters where no bill has the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwmodels.counts import EVENTS
from hwmodels.frozen import frozen
from hwmodels.quantities import sum_by_key
from twin.attribution.compatibility import require_same
from twin.attribution.difference import (
    NO_FINDING,
    Account,
    CounterGroup,
    Difference,
    Line,
    Row,
    load_groups,
    read_part,
)
from twin.attribution.pairing import Pair, pair_parts
from twin.attribution.side import UNITS, Part, Side
from twin.errors import UsageError
from twin.pricing.price_names import waits_on_memory

CLOCK = "clock"
"""Pseudo-cause of a time: the clock ran at another frequency than the one predicted with."""

OUTSIDE = "outside them"
"""Name of the row that holds what no layer or task accounts for: rows sum to the inference."""


def compare_sides(first: Side, second: Side, *, anyway: bool = False) -> Difference:
    """Set two sides beside each other.

    Parameters
    ----------
    first, second
        A prediction and what was measured, or two of one kind.
    anyway
        Also where they are not of the same thing.

    Returns
    -------
    Difference
        In whole units: every row's gap is the sum of its causes' gaps and of `unexplained`, and
        rows sum to the total.

    Raises
    ------
    NotTheSameError
        See `twin.attribution.compatibility`.
    UsageError
        When they share no quantity.

    Notes
    -----
    A measured part is its median over the runs; medians do not add up to the median of the whole,
    and calls between layers belong to none: the row "outside them" holds the rest. A counter known
    for the whole network only has its gap in that row. Counters that may have wrapped are not used.
    """
    findings = require_same(first, second, anyway=anyway)
    pairing = pair_parts(first, second)
    shared = [name for name in UNITS
              if name in first.whole.amounts and name in second.whole.amounts]
    if not shared:
        raise UsageError(f"{first.label} has {', '.join(first.whole.amounts)}, {second.label} "
                         f"{', '.join(second.whole.amounts)}: nothing to set side by side")
    table = _Table(first=first, second=second, pairs=pairing.same, groups=())
    if second.counted:
        table = _Table(first=first, second=second, pairs=pairing.same,
                       groups=tuple(_usable_groups(first, second, pairing.same)))
    return Difference(
        first=first, second=second, findings=findings, pairing=pairing,
        accounts=tuple(_make_account(table, quantity) for quantity in shared),
        notes=(*_note_wrapped(second, table.groups), *_note_doubtful(first, second)))


_Group = tuple[CounterGroup, bool]
"""Counted in every part (True), or in the whole only."""


@frozen
class _Table:
    """What every account is made from."""

    first: Side
    second: Side
    pairs: tuple[Pair, ...]
    groups: tuple[_Group, ...]


def _usable_groups(first: Side, second: Side, pairs: Sequence[Pair]) -> list[_Group]:
    """Return groups counted in every part or in the whole only, none overlapping."""
    def covers(group: CounterGroup, ours: Part, theirs: Part) -> bool:
        counted = not first.counted or (not group.events and read_part(group, ours) is not None)
        return counted and read_part(group, theirs) is not None

    both = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    chosen: list[_Group] = []
    taken: set[str] = set()
    for group in load_groups():
        if taken & set(group.causes):
            continue
        in_parts = bool(both) and all(covers(group, ours, theirs) for ours, theirs in both)
        if in_parts or covers(group, first.whole, second.whole):
            chosen.append((group, in_parts))
            taken |= set(group.causes)
    return chosen


def list_doubtful(first: Side, second: Side) -> frozenset[str]:
    """Return causes that differ by a price alone, which no row identifies."""
    if first.calibration == second.calibration:
        return frozenset()
    prices = {*first.doubtful, *second.doubtful}
    return frozenset(event.cause for name, event in EVENTS.items()
                     if ("memory" in prices and waits_on_memory(name))
                     or ("call" in prices and name == "kernel_dispatch"))


def _note_doubtful(first: Side, second: Side) -> tuple[str, ...]:
    """Say which prices differ between two calibrations without being findings."""
    prices = dict.fromkeys((*first.doubtful, *second.doubtful))
    if first.calibration == second.calibration or not prices:
        return ()
    return (f"{', '.join(prices)}: no row identifies these prices by themselves; what a "
            "calibration changes of one of them is no finding, only their sum is",)


def _note_wrapped(measured: Side, groups: Sequence[_Group]) -> tuple[str, ...]:
    """Say which counters were there and tell nothing, because they wrap."""
    used = {name for group, _ in groups for name in group.terms}
    wrapped = sorted({
        name for group in load_groups() if group.bits < 32
        for name in group.terms if name in measured.whole.counts and name not in used})
    return (f"{', '.join(wrapped)} wrap every 256 events and are known modulo 256 only: not used; "
            "overflow packets over SWO give them whole (`twin import itm`)",) if wrapped else ()


@frozen
class _Scale:
    """How cycles of a counter become the account's unit: 1, or ns per cycle of each clock."""

    per_cycle: Mapping[str, float] | None
    clock: str
    slower: float = 1.0
    """How much longer a first time takes at the second clock."""

    @classmethod
    def of(cls, quantity: str, side: Side, other: Side) -> _Scale:
        clock = other.clock
        hertz = other.clocks_hz.get(clock, 0.0)
        own = side.clocks_hz.get(clock, hertz)
        if quantity == "cycles":
            return cls(per_cycle={"": 1.0}, clock=clock)
        if quantity != "time" or not hertz or not own:
            return cls(per_cycle=None, clock=clock)
        rates = {name: 1e9 / one for name, one in side.clocks_hz.items()}
        return cls(per_cycle={"": 1e9 / own, **rates}, clock=clock, slower=hertz / own)

    def convert(self, group: CounterGroup, counted: float | None) -> float | None:
        """Return cycles in the account's unit; None where they mean nothing in it."""
        if counted is None or self.per_cycle is None or group.clock not in self.per_cycle:
            return None
        return counted * self.per_cycle[group.clock]


# --- rows --------------------------------------------------------------------------------------

def _make_account(table: _Table, quantity: str) -> Account:
    unit = UNITS[quantity]
    rows, known, left = [], [], []
    alike = table.first.counted == table.second.counted
    scale = _Scale.of(quantity, table.second, table.first)
    per_part = [group for group, in_parts in table.groups if in_parts]
    for ours, theirs in table.pairs:
        part = ours or theirs
        assert part is not None
        sides = [one if one is None or quantity in one.amounts else _LACKS
                 for one in (ours, theirs)]
        if any(one is _LACKS for one in sides) or not (alike or (ours and theirs)):
            left += [ours] if ours is not None else []
            continue
        one, other = ours or _nothing(quantity), theirs or _nothing(quantity)
        known.append(one)
        rows.append(Row(
            index=part.index, name=part.name, op=part.op, unit=unit,
            first=one.amounts[quantity], second=other.amounts[quantity],
            mark="" if ours and theirs else "new" if theirs else "gone",
            lines=_list_lines(table, quantity, one, other, per_part, scale)))
    paired = {id(ours) for ours, _ in table.pairs if ours is not None}
    left += [part for part in table.first.parts if id(part) not in paired]
    outside = _outside_row(table, quantity, rows, known, left, scale)
    billed = not table.second.counted and quantity in table.second.whole.causes
    rows += [] if billed and alike and not (outside.first or outside.second) else [outside]
    return Account(quantity=quantity, unit=unit, rows=tuple(rows))


_LACKS = Part(index=None, amounts={})


def _nothing(quantity: str) -> Part:
    """Return a part that came or went, where it is not."""
    return Part(index=None, amounts={quantity: 0}, causes={quantity: {}})


def _list_lines(table: _Table, quantity: str, ours: Part, theirs: Part,
                per_part: Sequence[CounterGroup], scale: _Scale) -> tuple[Line, ...]:
    """Causes of a part: billed on both sides, or grouped as the counters group them."""
    if table.first.counted:
        return _list_counted(table, quantity, ours, theirs, per_part, scale)
    causes = dict(ours.causes.get(quantity, {}))
    if not table.second.counted:
        other = dict(theirs.causes.get(quantity, {}))
        if table.first.part != table.second.part:
            causes, other = _merge_clocks(causes), _merge_clocks(other)
        doubtful = list_doubtful(table.first, table.second)
        return tuple(Line(causes=(cause,), first=causes.get(cause, 0), second=other.get(cause, 0),
                          counter=NO_FINDING if cause in doubtful else "")
                     for cause in dict.fromkeys((*causes, *other)))
    found: list[Line] = []
    billed = scale.per_cycle is not None and bool(table.first.whole.causes.get(quantity))
    for group, _ in table.groups if billed else ():
        first = sum(causes.pop(cause, 0) for cause in group.causes)
        second = _measure(group, ours, theirs, first, scale) if group in per_part else None
        found.append(Line(causes=group.causes, first=first, second=second,
                          counter=group.name if second is not None else ""))
    found += [Line(causes=(cause,), first=amount) for cause, amount in causes.items()]
    rest = ours.amounts[quantity] - sum(line.first for line in found)
    if rest:  # a part without a bill of its own
        found.append(Line(causes=("",), first=rest))
    return (*found, *_list_clock(quantity, ours.amounts[quantity], scale))


def _list_counted(table: _Table, quantity: str, ours: Part, theirs: Part,
                  groups: Sequence[CounterGroup], scale: _Scale) -> tuple[Line, ...]:
    """Return what both of two measurements counted, and what neither did."""
    own, found = _Scale.of(quantity, table.first, table.first), []
    for group in groups:
        amounts = (own.convert(group, read_part(group, ours)), scale.convert(group,
                                                                         read_part(group, theirs)))
        if amounts[0] is not None and amounts[1] is not None and not group.events:
            found.append(Line(causes=group.causes, first=round(amounts[0]),
                              second=round(amounts[1]), counter=group.name))
    rest = ours.amounts[quantity] - sum(line.first for line in found)
    return (*found, *([Line(causes=("",), first=rest)] if rest else []),
            *_list_clock(quantity, rest, scale))


def _list_clock(quantity: str, first: int, scale: _Scale) -> tuple[Line, ...]:
    """Return what a time takes longer by another clock alone; none where it is the same."""
    slower = quantity == "time" and scale.per_cycle is not None and abs(scale.slower - 1) > 1e-9
    return (Line(causes=(CLOCK,), first=0, counter="header",
                 second=round(first * (scale.slower - 1))),) if slower else ()


def _merge_clocks(causes: Mapping[str, int]) -> dict[str, int]:
    """Causes of tasks without their clock, to stand beside those of layers."""
    return sum_by_key((cause.partition("@")[0], amount) for cause, amount in causes.items())


def _measure(group: CounterGroup, ours: Part, theirs: Part, first: int,
             scale: _Scale) -> int | None:
    """Return what a group's counters took at the predicted clock, whose share is its own."""
    counted = read_part(group, theirs)
    amount = scale.convert(group, counted)
    if counted is None or amount is None:
        return None
    if group.events:
        priced = group.price(counted, ours.counts, first)
        return None if priced is None else round(first + (priced - first) * scale.slower)
    longer = first * (scale.slower - 1) if group.clock in ("", scale.clock) else 0.0
    return round(amount - longer)


def _outside_row(table: _Table, quantity: str, rows: Sequence[Row], known: Sequence[Part],
                 left: Sequence[Part], scale: _Scale) -> Row:
    """Return what the rows leave of the inference, with the counters of the whole network."""
    causes = sum_by_key(line for part in left for line in part.causes.get(quantity, {}).items())
    events = sum_by_key(pair for part in (*left, *known) for pair in part.counts.items())
    whole = table.second.whole
    first = table.first.whole.amounts[quantity] - sum(row.first for row in rows)
    second = whole.amounts[quantity] - sum(row.second for row in rows)
    counts = table.first.whole.counts if table.first.counted else {
        **table.first.whole.counts, **events}
    ours = Part(index=None, amounts={quantity: first}, causes={quantity: causes}, counts=counts)
    whole_only = [group for group, in_parts in table.groups if not in_parts]
    if table.first.counted:
        lines = list(_list_lines(table, quantity, ours, whole, whole_only, scale))
    elif not table.second.counted:
        lines = list(_list_lines(table, quantity, ours, _nothing(quantity), (), scale))
    else:
        lines = list(_list_lines(table, quantity, ours, Part(index=None, amounts={}), (), scale))
    for place, line in enumerate(lines):
        group = next((one for one in whole_only if one.causes == line.causes), None)
        if group is None or table.first.counted:
            continue
        inside = sum(one.first for row in rows for one in row.lines if one.causes == line.causes)
        counted = _measure(group, ours, whole, inside + line.first, scale)
        if counted is not None:
            lines[place] = Line(causes=line.causes, first=line.first,
                                second=counted - inside, counter=f"{group.name}, whole network")
    return Row(name=OUTSIDE if rows else "whole network", unit=UNITS[quantity], first=first,
               second=second, lines=tuple(lines))
