"""Core models: a basic block of instructions, scheduled in order, as cycles and where each went."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

from hwmodels.core.pipeline import ISSUE_KINDS, TICKS, Pass, Pipeline, Shaped, run_pass
from hwmodels.core.timing import CoreTiming
from hwmodels.errors import KernelError
from hwmodels.frozen import NamedNumbers, frozen
from hwmodels.isa.instruction import Instruction, parse_code
from hwmodels.kernel import Block
from hwmodels.quantities import sum_by_key

CAUSE_EVENTS = {
    "mac": "mac_issue", "mac_waste": "mac_waste_issue", "alu": "alu_issue",
    "load_store": "load_issue", "branch": "branch_issue", "data_copy": "copy_issue",
    "kernel_call": "call_issue", "weight_decode": "decode_issue",
}
"""Event that the issue slots of a block with a cause of its own become."""


@frozen
class PassTiming:
    """One pass through a block.

    Parameters
    ----------
    cycles
        Without refills; equal to the issue shares plus `stall_cycles`.
    issue_cycles
        Issue cycles by `ISSUE_KINDS`; a cycle that starts two instructions is half of each.
    stall_cycles
        Cycles that start nothing: a result, a unit, a beat waited for.
    refill_cycles
        After branches, jumps and calls of the pass.
    """

    cycles: float
    issue_cycles: tuple[float, ...]
    stall_cycles: float
    refill_cycles: float

    def issue(self, kind: str) -> float:
        """Issue cycles of one kind."""
        return self.issue_cycles[ISSUE_KINDS.index(kind)]


@frozen
class Totals:
    """Instructions of a block, all executed in one pass or in all of its trips."""

    instructions: int
    loads: int
    stores: int
    vector_instructions: int
    mac_lanes: int
    loaded_bytes: int
    stored_bytes: int


@frozen
class BlockTiming(Totals):
    """A block on a core; its passes are scheduled when first asked for: most blocks need one.

    Parameters
    ----------
    body
        Instructions, each with its timing and kind of issue.
    closes_loop
        Whether its last instruction is a conditional or loop-end branch.
    free_branches
        Loop-end branches a steady trip does not execute.
    exit_cycles
        Refill on leaving the loop.
    kinds
        Instructions by `ISSUE_KINDS`.
    """

    timing: CoreTiming
    body: Shaped
    closes_loop: bool
    free_branches: int
    exit_cycles: int
    kinds: tuple[int, ...]

    @cached_property
    def steady(self) -> PassTiming:
        """One trip of the block as a loop body that has been running."""
        return _schedule_steady(self.body[:len(self.body) - self.free_branches], self.timing)

    @cached_property
    def single(self) -> PassTiming:
        """The block run once, falling through a conditional branch that closes it."""
        return _schedule_single(self.body, self.timing)


@frozen
class BlockCounts(Totals):
    """A block with its trips: events by name and totals.

    Parameters
    ----------
    events : tuple of (str, float)
        Events of `hwmodels.counts`: issue slots, `branch_refill`, `pipeline_stall`.
    cpu_cycles
        Their sum.
    """

    events: NamedNumbers
    cpu_cycles: float

    def count(self, event: str) -> float:
        """Return how often an event happened."""
        return dict(self.events).get(event, 0.0)


_KINDS = {"mac": 0, "load": 2, "store": 3, "branch": 4, "call": 4}
_PASSED_ON = ("add", "add_immediate", "extend", "move")


def _issue_kind(body: tuple[Instruction, ...], place: int, timing: CoreTiming) -> int:
    """Index in `ISSUE_KINDS` of one instruction of a block."""
    one = body[place]
    if timing.multiply_is_mac and one.timing in ("mul", "mul_flags") \
            and not any(other.timing == "mul_high" and set(other.reads) == set(one.reads)
                        for other in body) \
            and any(_may_be_datum(body, place, name) for name, _ in one.reads):
        return 0
    return _KINDS.get(one.kind, 1)


def _may_be_datum(body: tuple[Instruction, ...], place: int, factor: str) -> bool:
    """Whether a factor is an 8- or 16-bit value, offset or widened at most, or from elsewhere.

    Where the plain product is the MAC, this separates weights and activations from what the block
    itself computes or loads as words: requantisation multipliers, halves of a long product.
    """
    sought = {factor}
    for back in range(1, len(body) + 1):
        writer = body[place - back]  # a negative index is the trip before
        if sought.isdisjoint(writer.writes):
            continue
        if writer.timing == "load_narrow":
            return True
        sought.difference_update(writer.writes)
        if writer.timing in _PASSED_ON:
            sought.update(name for name, port in writer.reads if port == "value")
    return bool(sought)


_MOST_PASSES = 40
_WINDOW = 16  # a power of two, so that averages stay exact


def _schedule_steady(body: Shaped, timing: CoreTiming) -> PassTiming:
    """Repeat the body until it is periodic; average one period."""
    pipe = Pipeline(timing)
    passes: list[Pass] = []
    seen: dict[tuple[object, ...], int] = {}
    first, count = _MOST_PASSES - _WINDOW, _WINDOW
    for turn in range(_MOST_PASSES + 1):
        one, signature = run_pass(pipe, body, loop=True)
        passes.append(one)
        before = seen.get(signature)
        if before is not None and (turn - before).bit_count() == 1:
            first, count = before, turn - before
            break
        seen.setdefault(signature, turn)
    period = passes[first:first + count]
    cycles = passes[first + count].start - passes[first].start
    return _total(period, cycles, count)


def _total(passes: list[Pass], cycles: int, count: int) -> PassTiming:
    refill = sum(one.refill for one in passes)
    ticks = [sum(one.ticks[kind] for one in passes) for kind in range(len(ISSUE_KINDS))]
    stall = (cycles - refill) * TICKS - sum(ticks)
    return PassTiming(
        cycles=(cycles - refill) / count, refill_cycles=refill / count,
        issue_cycles=tuple(tick / (TICKS * count) for tick in ticks),
        stall_cycles=stall / (TICKS * count))


def _schedule_single(body: Shaped, timing: CoreTiming) -> PassTiming:
    pipe = Pipeline(timing)
    one, _ = run_pass(pipe, body, loop=False)
    return _total([one], pipe.end() - one.start, 1)


@lru_cache(maxsize=16384)
def schedule(code: str, timing: CoreTiming) -> BlockTiming:
    """Schedule a block on a core.

    Parameters
    ----------
    code
        Assembly text of the block.

    Returns
    -------
    BlockTiming
        One steady trip and one single pass; all data in tightly coupled, zero-wait memory.

    Raises
    ------
    KernelError
        When the text is not understood, empty, or not of this core's instruction set.

    Notes
    -----
    In-order issue: an instruction starts in the first cycle in which every instruction before it
    has started, its operands are there (issue of the producer + latency + port rule), its units
    are free, and either the pairing rules let it join its predecessor's cycle or the predecessor's
    occupancy is over. Each issue cycle is split equally between the instructions it starts; cycles
    that start none are stalls; so shares + stalls = cycles, exactly. A steady trip is the
    difference of two later passes, so that dependencies carried round the loop count. A conditional
    branch before the last instruction falls through.
    """
    instructions = parse_code(code)
    if not instructions:
        raise KernelError(f"block {code!r} has no instruction")
    body = tuple((one, timing.class_timing(one), _issue_kind(instructions, place, timing))
                 for place, one in enumerate(instructions))
    flow = instructions[-1].flow
    free = int(timing.loop_buffer and flow == "loop_end" and len(body) > 1)
    kinds = [kind for _, _, kind in body]
    products = sum(1 for one, _, kind in body if kind == 0 and one.mac_lanes == 0)
    return BlockTiming(
        timing=timing, body=body, closes_loop=flow in ("conditional", "loop_end"),
        free_branches=free,
        exit_cycles=timing.refills.exit_cycles if flow == "conditional" else 0,
        instructions=len(body), kinds=tuple(kinds.count(i) for i in range(len(ISSUE_KINDS))),
        loads=sum(one.kind == "load" for one in instructions),
        stores=sum(one.kind == "store" for one in instructions),
        vector_instructions=sum(one.vector for one in instructions),
        mac_lanes=sum(one.mac_lanes for one in instructions) + products,
        loaded_bytes=sum(one.loaded_bytes for one in instructions),
        stored_bytes=sum(one.stored_bytes for one in instructions),
    )


def count_block(block: Block, timing: CoreTiming) -> BlockCounts:
    """Apply trips and entries to a scheduled block.

    Parameters
    ----------
    block
        Text and how often it runs.

    Returns
    -------
    BlockCounts
        Events by name; issue slots go to the block's own cause when it has one.

    Raises
    ------
    KernelError
        As `schedule`; also when the block's cause takes no issue slots.

    Notes
    -----
    A loop (trips > entries): trips x steady, less the refill of the `entries` trips that fall
    through, plus `entries` exits; a core with a loop buffer executes the loop-end branch once per
    entry, with one refill. A straight block: trips x single.
    """
    if block.cause is not None and block.cause not in CAUSE_EVENTS:
        raise KernelError(f"block {block.name!r}: cause {block.cause!r} takes no issue slots; "
                          f"accepted: {', '.join(CAUSE_EVENTS)}")
    timed = schedule(block.code, timing)
    loop = block.trips > block.entries
    one = timed.steady if loop else timed.single
    issue = [cycles * block.trips for cycles in one.issue_cycles]
    refill = one.refill_cycles * block.trips
    free = 0
    if loop and timed.free_branches:
        issue[ISSUE_KINDS.index("branch")] += block.entries
        refill += timing.refills.taken_cycles * block.entries
        free = timed.free_branches * (block.trips - block.entries)
    elif loop and timed.closes_loop:
        refill += (timed.exit_cycles - timing.refills.taken_cycles) * block.entries
    stall = one.stall_cycles * block.trips
    events = sum_by_key(
        (f"{kind}_issue" if block.cause is None else CAUSE_EVENTS[block.cause], cycles)
        for kind, cycles in zip(ISSUE_KINDS, issue, strict=True) if cycles)
    events |= {name: count for name, count in (("branch_refill", refill),
                                               ("pipeline_stall", stall)) if count}
    return BlockCounts(
        events=tuple(events.items()), cpu_cycles=math.fsum(events.values()),
        instructions=timed.instructions * block.trips - free,
        loads=timed.loads * block.trips, stores=timed.stores * block.trips,
        vector_instructions=timed.vector_instructions * block.trips,
        mac_lanes=timed.mac_lanes * block.trips if block.cause in (None, "mac") else 0,
        loaded_bytes=timed.loaded_bytes * block.trips,
        stored_bytes=timed.stored_bytes * block.trips,
    )
