"""In-order issue: instructions through a pipeline, one pass of a block at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

from hwmodels.core.timing import LONGEST_PORT_CYCLES, ClassTiming, CoreTiming
from hwmodels.isa.instruction import Instruction

ISSUE_KINDS = ("mac", "alu", "load", "store", "branch")
"""Kinds of work an issue cycle is split over; `<kind>_issue` is its event."""

TICKS = 64  # an issue cycle is split in 64ths, so that shares and their sums are exact


@lru_cache(maxsize=16384)
def _port_cycles(timing: CoreTiming, port: str, producer: str, consumer: str) -> int:
    for rule in timing.ports:
        if (rule.port == port and (not rule.producers or producer in rule.producers)
                and (not rule.consumers or consumer in rule.consumers)):
            return rule.cycles
    return 0


class Pipeline:
    """The state of an in-order core between two instructions."""

    def __init__(self, timing: CoreTiming) -> None:
        self.timing = timing
        self.now = -1
        self.least_next = 0
        self.group: list[tuple[Instruction, ClassTiming]] = []
        self.closed = True
        self.ready: dict[str, tuple[int, int, str]] = {}
        self.units: dict[str, list[int]] = {}
        self.held: dict[str, int] = {}

    def issue(self, instruction: Instruction, shape: ClassTiming, taken: bool = False) -> int:
        """Issue one instruction as early as in-order rules let it; return its cycle."""
        operands = self._operands_ready(instruction)
        earliest = max(operands, self.held.get(instruction.timing, 0),
                       *(min(self.units[unit]) for unit in shape.units if unit in self.units))
        if not self.closed and earliest <= self.now and self._may_join(instruction, shape, taken):
            cycle = self.now
        else:
            cycle = max(earliest, self.end(instruction))
            self.group = []
            self.closed = shape.slot == "alone"
        first = not self.group
        self.group.append((instruction, shape))
        self.now = cycle
        self._write(instruction, shape, cycle, early=shape.early and first and operands < cycle)
        for unit in shape.units:
            slots = self.units.setdefault(unit, [0] * self.timing.unit_counts.get(unit, 1))
            slots[slots.index(min(slots))] = cycle + shape.busy_cycles
        for name, cycles in shape.holds_cycles:
            self.held[name] = cycle + 1 + cycles
        return cycle

    def redirect(self, refill_cycles: int) -> None:
        """Let the next instruction come from elsewhere, after a refill."""
        self.closed = True
        self.least_next = self.end() + refill_cycles

    def end(self, then: Instruction | None = None) -> int:
        """First cycle the next instruction could issue in; None is an unrelated one."""
        return max(self.now + 1, self.least_next,
                   *(self.now + occupancy(shape, one, then) for one, shape in self.group))

    def signature(self) -> tuple[object, ...]:
        """State relative to the current cycle, as far as it can delay anything later."""
        late = tuple(sorted((name, cycle - self.now, issued - self.now, producer)
                            for name, (cycle, issued, producer) in self.ready.items()
                            if cycle >= self.now - LONGEST_PORT_CYCLES))
        units = tuple(sorted((unit, *(max(0, slot - self.now) for slot in sorted(slots)))
                             for unit, slots in self.units.items()))
        return late, units, tuple(sorted((name, max(0, until - self.now))
                                         for name, until in self.held.items()))

    def _operands_ready(self, instruction: Instruction) -> int:
        earliest = -1  # long since there
        for name, port in instruction.reads:
            known = self.ready.get(name)
            if known is not None:
                cycle, issued, producer = known
                shift = _port_cycles(self.timing, port, producer, instruction.timing)
                earliest = max(earliest, issued, cycle + shift)
        return earliest

    def _may_join(self, instruction: Instruction, shape: ClassTiming, taken: bool) -> bool:
        timing, rule = self.timing, self.timing.pairing
        if len(self.group) >= timing.issue_width or shape.slot != "any":
            return False
        for one, its_shape in self.group:
            if occupancy(its_shape, one, instruction) > 1:
                return False
            if rule.narrow_only and not (one.narrow and instruction.narrow):
                return False
            if rule.partners and not (instruction.timing in rule.partners or (
                    not rule.second_only and one.timing in rule.partners)):
                return False
            if taken and one.sets_flags and not rule.taken_after_flags:
                return False
            if rule.load_banks > 1 and one.kind == instruction.kind == "load" and not _banks_differ(
                    one, instruction, rule.load_banks):
                return False
        return True

    def _write(self, instruction: Instruction, shape: ClassTiming, cycle: int, early: bool) -> None:
        done = cycle + shape.latency_cycles - early
        if shape.transfer_cycles:
            done += occupancy(shape, instruction) - 1
        for name in instruction.writes:
            self.ready[name] = (done, cycle, instruction.timing)
        stepped = cycle + self.timing.base_latency_cycles
        for name in instruction.base_writes:
            self.ready[name] = (stepped, cycle, "base")


def occupancy(shape: ClassTiming, one: Instruction, then: Instruction | None = None) -> int:
    """Least cycles from an instruction to the next one.

    Parameters
    ----------
    one, then
        It and the next one; None is one of no particular kind.

    Returns
    -------
    int
        At least 1.
    """
    cycles = shape.cycles
    if then is not None:
        for name, shorter in shape.then_cycles:
            if name in (then.timing, then.kind):
                cycles = shorter
                break
    if shape.transfer_cycles:
        return max(1, cycles + math.ceil(shape.transfer_cycles * one.transfers))
    return cycles


def _banks_differ(one: Instruction, other: Instruction, banks: int) -> bool:
    """Whether two loads are known to go to different word banks."""
    if one.base != other.base or one.base_writes or None in (one.offset_bytes, other.offset_bytes):
        return False
    assert one.offset_bytes is not None and other.offset_bytes is not None
    return one.offset_bytes // 4 % banks != other.offset_bytes // 4 % banks


def _beats(shape: ClassTiming, instruction: Instruction) -> int:
    """Cycles an instruction itself fills with work: transfers of a multiple load or store."""
    return max(1, math.ceil(shape.transfer_cycles * instruction.transfers))


@dataclass(slots=True)
class Pass:
    """Bookkeeping of one pass: ticks by kind, refill."""

    start: int
    ticks: list[int] = field(default_factory=lambda: [0] * len(ISSUE_KINDS))
    refill: int = 0
    group: list[int] = field(default_factory=list)
    beats: int = 1
    cycle: int = -1

    def add(self, cycle: int, kind: int, beats: int) -> None:
        """Note an instruction of a kind that issues in a cycle; the group before is settled."""
        if cycle != self.cycle:
            self.settle()
            self.cycle = cycle
        self.group.append(kind)
        self.beats = max(self.beats, beats)

    def settle(self) -> None:
        """Split the finished group's cycle between its instructions, the oldest first."""
        size = len(self.group)
        for place, kind in enumerate(self.group):
            share = TICKS // size + (1 if place < TICKS % size else 0)
            self.ticks[kind] += share * self.beats
        self.group, self.beats = [], 1


Shaped = tuple[tuple[Instruction, ClassTiming, int], ...]


def run_pass(pipe: Pipeline, body: Shaped, loop: bool) -> tuple[Pass, tuple[object, ...]]:
    """Run the body once; return its bookkeeping and the state after its first instruction."""
    timing = pipe.timing
    result = Pass(start=0)
    signature: tuple[object, ...] = ()
    pipe.closed = True  # a pass starts at a cycle of its own
    for place, (instruction, shape, kind) in enumerate(body):
        closing = (loop and place == len(body) - 1
                   and instruction.flow in ("conditional", "loop_end"))
        cycle = pipe.issue(instruction, shape, taken=closing)
        if place == 0:
            result.start = cycle
            signature = pipe.signature()
        result.add(cycle, kind, _beats(shape, instruction))
        refill = _refill_of(instruction, closing, timing)
        if refill is not None:
            result.refill += refill
            pipe.redirect(refill)
    result.settle()
    return result, signature


def _refill_of(instruction: Instruction, closing: bool, timing: CoreTiming) -> int | None:
    """Cycles lost after an instruction, None when it falls through."""
    if closing:
        return timing.refills.taken_cycles
    if instruction.flow == "jump":
        return timing.refills.jump_cycles
    return timing.refills.call_cycles if instruction.flow in ("call", "return") else None
