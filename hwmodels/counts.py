"""Events counted, what each costs, and their product: the itemised bill.

    Counts x Prices = Bill

Every event belongs to exactly one cause. A count is held twice: `occurred` is priced in energy,
`exposed` (what stretched the run because nothing hid it) in time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hwmodels.errors import KernelError
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen, record
from hwmodels.quantities import list_by_key, sum_known

CAUSE_GROUPS = {
    "compute": ("mac", "mac_waste", "alu", "load_store", "branch", "issue_stall"),
    "memory": ("instruction_fetch", "data_refill", "write_back", "flash_wait", "sram_wait",
               "external_memory", "bus_contention", "dma_wait", "weight_decode"),
    "movement": ("data_copy",),
    "overhead": ("kernel_call", "launch", "cache_maintenance", "idle"),
}
"""Causes by what a user would do about them."""

CAUSES = tuple(itertools.chain(*CAUSE_GROUPS.values()))
"""The twenty causes a line of a bill can have, in the order bills are shown."""

CAUSE_WORK: Mapping[str, str] = dict(zip(CAUSES, (
    "multiply-accumulates", "multiply-accumulates on padding and idle lanes",
    "arithmetic and addresses", "loads and stores", "loop control", "pipeline stalls",
    "instruction-fetch waits", "cache refills", "write-backs of dirty lines", "flash wait states",
    "SRAM wait states", "external-memory waits", "bus waits", "transfer waits", "weight unpacking",
    "im2col, padding and layout copies", "calls and set-up", "accelerator launches",
    "cache maintenance", "idle cycles"), strict=True))
"""What the hardware does under a cause, as a sentence names it: "flash wait states of ..."."""


@frozen
class Event:
    """A thing hardware does that costs time or energy; it has exactly one cause."""

    name: str
    cause: str
    unit: str
    description: str


EVENTS: Mapping[str, Event] = {
    name: Event(name=name, **facts)
    for name, facts in read_yaml_once(Path(__file__).with_name("events.yaml")).items()}
"""Every event by name."""

CAUSE_PLACES = {event: CAUSES.index(described.cause) for event, described in EVENTS.items()}
"""Place of each event's cause among `CAUSES`."""

COPYING = "copying"
"""Place of what a core loses, and issues, in code that only copies: im2col, padding, layout."""

EXACT = 64
"""Exposed shares are rounded to 1/64, so that sums of counts are exact."""

ISSUE_EVENTS = tuple(name for name, event in EVENTS.items() if event.unit == "issue slots")
"""Events priced at one core cycle per slot."""

CORE_EVENTS = (*ISSUE_EVENTS, "branch_refill", "pipeline_stall")
"""What an efficiency of a runtime scales."""


@frozen
class CountLine:
    """How often one event happened at one place for one operand.

    Parameters
    ----------
    event
        Key of `EVENTS`.
    place
        Memory, cache or unit it happened at; "" for the core, `COPYING` for code that only copies.
    operand
        Role of the data ("weights", "input", ...) or "".
    occurred
        All of them; priced in energy.
    exposed
        Those nothing hid; priced in time. Multiples of 1/64, so that sums are exact.
    """

    event: str
    place: str = ""
    operand: str = ""
    occurred: float
    exposed: float

    def __post_init__(self) -> None:
        """Refuse an event that is not known and negative counts."""
        if self.event not in EVENTS:
            raise KernelError(f"event {self.event!r} is not known")
        if not (self.occurred >= 0 and self.exposed >= 0):
            raise KernelError(f"event {self.event!r}: negative count")


@record
class Counts:
    """Events of a kernel, layer or network."""

    lines: tuple[CountLine, ...] = ()

    def occurred(self, event: str) -> float:
        """Sum over places and operands of how often the event happened."""
        return math.fsum(line.occurred for line in self.lines if line.event == event)


_ORDER = {name: position for position, name in enumerate(EVENTS)}


def order_of(event: str, place: str, operand: str) -> tuple[int, str, str]:
    """Return where a line stands among merged ones."""
    return _ORDER[event], place, operand


def merge_counts(parts: Iterable[Counts]) -> Counts:
    """Add counts, merging lines of the same event, place and operand, in a fixed order."""
    groups = list_by_key(((line.event, line.place, line.operand), line)
                         for part in parts for line in part.lines)
    keys = sorted(groups, key=lambda key: order_of(*key))
    return Counts(tuple(_add_lines(groups[key]) for key in keys))


def _add_lines(lines: Sequence[CountLine]) -> CountLine:
    if len(lines) == 1:
        return lines[0]
    first = lines[0]
    return CountLine(event=first.event, place=first.place, operand=first.operand,
                     occurred=sum(line.occurred for line in lines),
                     exposed=sum(line.exposed for line in lines))


@frozen
class Price:
    """What one event costs.

    Parameters
    ----------
    cycles
        Per exposed event, in cycles of `clock`.
    clock
        Clock the cycles are of.
    pj
        Per occurred event at the rail; None is not known.
    kind, source
        As for a `Fact`.
    rel_sd
        Relative standard deviation of the price, where stated.
    """

    event: str
    place: str = ""
    cycles: float
    clock: str
    pj: float | None
    kind: str
    source: str
    rel_sd: float | None = None


@record
class Prices:
    """A board's prices by (event, place); a price with place "" holds everywhere."""

    table: Mapping[tuple[str, str], Price]

    def price(self, event: str, place: str) -> Price:
        """Return the price of an event at a place.

        Raises
        ------
        KernelError
            When no price is known: an event is never free by omission.
        """
        found = self.table.get((event, place)) or self.table.get((event, ""))
        if found is None:
            raise KernelError(f"no price for event {event!r} at {place!r}")
        return found

    def scaled(self, events: Iterable[str], factor: float) -> Prices:
        """Return prices with the cycles of these events multiplied by a factor."""
        if factor == 1.0:
            return self
        chosen = set(events)
        return Prices({
            key: Price(event=p.event, place=p.place, cycles=p.cycles * factor, clock=p.clock,
                       pj=None if p.pj is None else p.pj * factor, kind="assumed",
                       source=p.source, rel_sd=p.rel_sd) if key[0] in chosen else p
            for key, p in self.table.items()
        })


@frozen
class BillLine:
    """One event's count times its price."""

    event: str
    place: str
    operand: str
    clock: str
    occurred: float
    exposed: float
    cycles: float
    energy_pj: float | None

    @property
    def cause(self) -> str:
        """The one cause the event belongs to."""
        return EVENTS[self.event].cause


Stacks = dict[tuple[str, str, str, str],
              tuple[list[float], list[float], list[float], list[float | None]]]
"""Occurred, exposed, cycles and energies of lines by event, place, operand and clock."""


@record
class Bill:
    """Lines of cost; totals are sums of lines, for cycles and joules alike."""

    lines: tuple[BillLine, ...] = ()

    @property
    def table(self) -> object:
        """Columns the lines are kept in, with those of other bills; None: none."""
        return None

    @staticmethod
    def stack(bills: Sequence[Bill], stacks: Stacks) -> None:
        """Add amounts of the lines of bills, all of the same `table`, to those of their keys."""
        for line in (line for bill in bills for line in bill.lines):
            occurred, exposed, cycles, energies = stacks.setdefault(
                (line.event, line.place, line.operand, line.clock), ([], [], [], []))
            occurred.append(line.occurred)
            exposed.append(line.exposed)
            cycles.append(line.cycles)
            energies.append(line.energy_pj)

    def cycles(self, clock: str, cause: str | None = None) -> float:
        """Cycles of one clock, of one cause or of all."""
        return math.fsum(line.cycles for line in self.lines
                         if line.clock == clock and (cause is None or line.cause == cause))

    def clock_cycles(self) -> dict[str, float]:
        """Cycles of each clock that has any, in one walk over the lines."""
        cycles = list_by_key((line.clock, line.cycles) for line in self.lines if line.cycles)
        return {clock: math.fsum(parts) for clock, parts in cycles.items()}

    def by_cause(self) -> dict[tuple[str, str], float]:
        """Cycles by clock and cause, clocks in first-seen order."""
        found: dict[str, dict[str, list[float]]] = {}
        for line in self.lines:
            found.setdefault(line.clock, {}).setdefault(line.cause, []).append(line.cycles)
        return {(clock, cause): math.fsum(cycles) for clock, causes in found.items()
                for cause, cycles in causes.items()}

    def energy_pj(self, cause: str | None = None) -> float | None:
        """Energy at the rail; None when a line's price is not known."""
        return sum_known([line.energy_pj for line in self.lines if cause in (None, line.cause)])

    def energy_uj(self) -> float | None:
        """Energy at the rail, in microjoules; None when not known."""
        energy_pj = self.energy_pj()
        return None if energy_pj is None else energy_pj * 1e-6

    def clocks(self) -> tuple[str, ...]:
        """Clocks the lines are in, in first-seen order."""
        return tuple(dict.fromkeys(line.clock for line in self.lines))

    def causes(self) -> tuple[str, ...]:
        """Causes present, in the order bills are shown."""
        present = {line.cause for line in self.lines}
        return tuple(cause for cause in CAUSES if cause in present)


def make_bill(counts: Counts, prices: Prices) -> Bill:
    """Price counts: cycles = exposed x price, energy = occurred x price.

    Returns
    -------
    Bill
        One line per count line.
    """
    lines = []
    for line in counts.lines:
        price = prices.price(line.event, line.place)
        lines.append(BillLine(
            event=line.event, place=line.place, operand=line.operand, clock=price.clock,
            occurred=line.occurred, exposed=line.exposed, cycles=line.exposed * price.cycles,
            energy_pj=None if price.pj is None else line.occurred * price.pj,
        ))
    return Bill(tuple(lines))


def merge_bills(parts: Iterable[Bill]) -> Bill:
    """Add bills, merging lines of equal event, place, operand and clock; sums are exact (fsum)."""
    stacks: Stacks = {}
    for bills in list_by_key((id(part.table), part) for part in parts).values():
        bills[0].stack(bills, stacks)
    return Bill(tuple(_sum_stack(key, *stacks[key]) for key in sorted(
        stacks, key=lambda key: (*order_of(*key[:3]), key[3]))))


def _sum_stack(key: tuple[str, str, str, str], occurred: list[float], exposed: list[float],
               cycles: list[float], energies: list[float | None]) -> BillLine:
    event, place, operand, clock = key
    return BillLine(event=event, place=place, operand=operand, clock=clock,
                    occurred=math.fsum(occurred), exposed=math.fsum(exposed),
                    cycles=math.fsum(cycles),
                    energy_pj=sum_known(energies))
