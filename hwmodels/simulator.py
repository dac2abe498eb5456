"""The one place that composes parts: kernels through a core, its caches and its memories.

    runs = simulate(kernels, board, ...)      counts per kernel, in order
    bill = make_bill(runs[0].counts, derive_prices(board))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hwmodels.board import Board, Cache, Memory
from hwmodels.cache import (
    AccessCounts,
    CacheState,
    OperandCounts,
    line_buffer_of,
    new_state,
    simulate_nests,
)
from hwmodels.core import count_block
from hwmodels.core_file import load_core
from hwmodels.counts import Bill, BillLine, CountLine, Counts, Prices, merge_counts
from hwmodels.kernel import Access, Kernel, Loop, Operand
from hwmodels.prices import clock_ratio, line_wait_cycles

TIGHT = ("tcm",)
EXTERNAL = ("external_ram", "external_flash")
EXACT = 64
"""Exposed shares are rounded to 1/64, so that sums of counts are exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRun:
    """What one kernel did.

    Parameters
    ----------
    counts : Counts
        Events.
    instructions, loads, stores, vector_instructions, mac_lanes : int
        Totals over the kernel's blocks.
    cache_accesses, cache_misses : int
        Data-cache lines looked up and filled.
    data : AccessCounts
        Per operand.
    """

    counts: Counts
    instructions: int
    loads: int
    stores: int
    vector_instructions: int
    mac_lanes: int
    cache_accesses: int
    cache_misses: int
    data: AccessCounts


def simulate(kernels: Sequence[Kernel], board: Board, *, code_address: int, code_memory: str,
             cold: bool = False) -> tuple[KernelRun, ...]:
    """Run kernels in order on the board's main core.

    Parameters
    ----------
    kernels : sequence of Kernel
        In execution order.
    board : Board
        The machine.
    code_address : int
        First byte of the kernels' code.
    code_memory : str
        Memory the code is fetched from.
    cold : bool
        Caches start empty; otherwise they start as one earlier pass left them.

    Returns
    -------
    tuple of KernelRun
        One per kernel.

    Notes
    -----
    Instructions come from scheduled blocks, data from the access nests; a load that misses
    stalls the in-order core for the whole line, a store that misses is taken by a buffer when
    the cache writes back. Code of a kernel is touched once per call, line by line: inner loops
    are taken to stay in the instruction cache.
    """
    fetched = _CodeLayout(kernels, board, code_address, code_memory)
    data = _DataPath(board)
    if not cold:
        for kernel in kernels:
            fetched.fetch(kernel)
            data.access(kernel)
    return tuple(_run_kernel(kernel, board, fetched, data) for kernel in kernels)


def add_background(bill: Bill, board: Board, prices: Prices) -> Bill:
    """Add what being powered costs while the bill's cycles pass: clock tree and leakage.

    Parameters
    ----------
    bill : Bill
        Whose cycles of the main clock are the time.
    board : Board
        For the clock.
    prices : Prices
        pJ per cycle and per nanosecond.

    Returns
    -------
    Bill
        With two more lines of zero cycles; unchanged when no time passes.
    """
    clock = board.core.clock
    cycles = bill.cycles(clock)
    if not cycles:
        return bill
    quantities = {"clock_tree": cycles, "leakage": cycles / board.clock(clock).frequency_hz * 1e9}
    extra = []
    for event, quantity in quantities.items():
        price = prices.price(event, "")
        extra.append(BillLine(
            event=event, place="", operand="", clock=clock, occurred=quantity, exposed=0.0,
            cycles=0.0, energy_pj=None if price.pj is None else quantity * price.pj))
    return Bill((*bill.lines, *extra))


def _run_kernel(kernel: Kernel, board: Board, fetched: _CodeLayout,
                data: _DataPath) -> KernelRun:
    timing = load_core(board.core.model)
    blocks = [count_block(block, timing) for block in kernel.blocks if block.trips]
    lanes = sum(block.mac_lanes for block in blocks)
    issue = Counts(tuple(
        CountLine(event=event, occurred=count, exposed=count)
        for block in blocks for event, count in block.events))
    accesses, lines = data.access(kernel)
    counts = merge_counts([
        _split_waste(merge_counts([issue]), kernel.useful_macs, lanes),
        Counts(tuple(lines)), Counts(tuple(fetched.fetch(kernel)))])
    looked_up = [operand for operand in accesses.operands if operand.cached]
    return KernelRun(
        counts=counts, instructions=sum(block.instructions for block in blocks),
        loads=sum(block.loads for block in blocks), stores=sum(block.stores for block in blocks),
        vector_instructions=sum(block.vector_instructions for block in blocks), mac_lanes=lanes,
        cache_accesses=sum(o.read_touches + o.write_touches for o in looked_up),
        cache_misses=sum(o.read_misses + o.write_misses for o in looked_up), data=accesses)


def _split_waste(counts: Counts, useful_macs: int, lanes: int) -> Counts:
    """Move the share of MAC slots whose lanes compute nothing useful to their own event."""
    if lanes <= useful_macs:
        return counts
    lines = []
    for line in counts.lines:
        if line.event != "mac_issue":
            lines.append(line)
            continue
        wasted = math.floor(line.exposed * (1 - useful_macs / lanes) * EXACT) / EXACT
        useful = line.exposed - wasted
        lines += [CountLine(event="mac_issue", occurred=useful, exposed=useful),
                  CountLine(event="mac_waste_issue", occurred=wasted, exposed=wasted)]
    return Counts(tuple(line for line in lines if line.occurred or line.exposed))


def _serves(cache: Cache | None, memory: Memory) -> bool:
    if cache is None or not cache.enabled:
        return False
    return memory.name in cache.serves if cache.serves else memory.cacheable


class _DataPath:
    """Data cache and line buffers, their state carried from kernel to kernel."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.cache = board.cache(board.core.dcache)
        self.state = new_state(self.cache) if self.cache is not None else None
        self.buffers: dict[str, CacheState] = {}

    def access(self, kernel: Kernel) -> tuple[AccessCounts, list[CountLine]]:
        """Run a kernel's accesses; return what each operand met and the events."""
        cached = [_serves(self.cache, self.board.memory(operand.memory))
                  for operand in kernel.operands]
        cache = self.cache
        if cache is None or self.state is None:
            # Counting needs no cache; any geometry serves.
            cache = Cache(name="none", size_bytes=32, line_bytes=32, ways=1, enabled=False)
            counts, _ = simulate_nests(cache, kernel.nests, kernel.operands, new_state(cache))
        else:
            counts, self.state = simulate_nests(cache, kernel.nests, kernel.operands, self.state,
                                                cached)
        lines = []
        for operand in counts.operands:
            if operand.reads or operand.writes:
                lines += (self._cached(operand) if operand.cached
                          else self._direct(operand, kernel))
        for owner in counts.owners:
            if owner.write_backs:
                lines.append(_line("write_back", owner.memory, owner.role, owner.write_backs,
                                   owner.write_backs))
        return counts, lines

    def _cached(self, operand: OperandCounts) -> list[CountLine]:
        assert self.cache is not None
        memory = self.board.memory(operand.memory)
        place, role = operand.memory, operand.role
        touches = operand.read_touches + operand.write_touches
        lines = [_line("dcache_access", self.cache.name, role, touches,
                       touches * self.cache.hit_cycles)]
        # A write-back cache takes a store that misses into its buffer: occurred, not exposed.
        hidden = self.cache.write == "back"
        for event, count, exposed in (
                ("dcache_read_refill", operand.read_misses, operand.read_misses),
                ("dcache_write_refill", operand.write_misses,
                 0 if hidden else operand.write_misses),
                ("write_through", operand.write_throughs, 0)):
            if count:
                lines.append(_line(event, place, role, count, exposed))
        waits = line_wait_cycles(self.board, memory, self.cache.line_bytes)
        if waits and operand.read_misses:
            lines.append(_line("flash_wait", place, role, operand.read_misses * waits,
                               operand.read_misses * waits))
        return lines

    def _direct(self, operand: OperandCounts, kernel: Kernel) -> list[CountLine]:
        memory = self.board.memory(operand.memory)
        accesses = operand.reads + operand.writes
        if memory.role in TIGHT:
            return [_line("tcm_access", memory.name, operand.role, accesses, 0)]
        if memory.role in EXTERNAL:
            return [_line("external_wait", memory.name, operand.role, accesses, accesses)]
        if memory.role == "flash":
            reads = (self._array_reads(kernel, operand.operand, memory) if memory.line_buffer
                     else operand.reads)
            # Every access crosses the bus; only those that leave the latched line read the array.
            waits = clock_ratio(self.board, memory) * (
                reads * memory.wait_states + accesses * memory.latency_cycles)
            return [_line("flash_wait", memory.name, operand.role, waits, waits)] if waits else []
        lines = [_line("sram_access", memory.name, operand.role, accesses, 0)]
        if memory.latency_cycles:
            lines.append(_line("sram_wait", memory.name, operand.role, accesses, accesses))
        return lines

    def _array_reads(self, kernel: Kernel, name: str, memory: Memory) -> int:
        """Array reads of one operand through the memory's one-line buffer."""
        buffer = line_buffer_of(memory)
        state = self.buffers.get(memory.name) or new_state(buffer)
        counts, state = simulate_nests(buffer, kernel.nests, kernel.operands, state,
                                       [operand.name == name for operand in kernel.operands])
        self.buffers[memory.name] = state
        return counts.total("read_misses")


class _CodeLayout:
    """Where each library function's code lies, and the instruction cache it passes through."""

    def __init__(self, kernels: Sequence[Kernel], board: Board, address: int,
                 memory: str) -> None:
        self.board = board
        self.memory = board.memory(memory)
        cache = board.cache(board.core.icache)
        self.cache = cache if _serves(cache, self.memory) else None
        self.state = new_state(self.cache) if self.cache is not None else None
        self.places: dict[str, Operand] = {}
        line_bytes = self.cache.line_bytes if self.cache is not None else 32
        for kernel in kernels:
            if kernel.name not in self.places and kernel.code_bytes:
                size = -(-kernel.code_bytes // line_bytes) * line_bytes
                self.places[kernel.name] = Operand(
                    name="code", role="code", memory=memory, address=address, size_bytes=size)
                address += size

    def fetch(self, kernel: Kernel) -> list[CountLine]:
        """Touch a kernel's code once, line by line; return the refills."""
        place = self.places.get(kernel.name)
        if place is None or self.cache is None or self.state is None:
            return []
        line_bytes = self.cache.line_bytes
        walk = Loop(extent=place.size_bytes // line_bytes, body=(
            Access(operand="code", write=False, width_bytes=4, steps_bytes=(line_bytes,)),))
        counts, self.state = simulate_nests(self.cache, (walk,), (place,), self.state)
        refills = counts.total("read_misses")
        return [_line("icache_refill", self.memory.name, "", refills, refills)] if refills else []


def _line(event: str, place: str, operand: str, occurred: float, exposed: float) -> CountLine:
    return CountLine(event=event, place=place, operand=operand, occurred=occurred,
                     exposed=exposed)
