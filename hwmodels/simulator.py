"""The one place that composes parts: kernels through a core, its caches and its memories.

runs = simulate(kernels, board, ...)      counts per kernel, in order
bill = make_bill(runs[0].counts, derive_prices(board))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board
from hwmodels.cache.set_associative import AccessCounts, CacheState
from hwmodels.core.file import load_core
from hwmodels.core.schedule import BlockCounts, count_block
from hwmodels.counts import COPYING, Bill, BillLine, CountLine, Counts, Prices, merge_counts
from hwmodels.kernel import Kernel
from hwmodels.paths.code import CodePath
from hwmodels.paths.data import EXACT, DataPath

if TYPE_CHECKING:
    from hwmodels.bus.contention import Load


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
    lower : tuple of (str, AccessCounts)
        Per operand in caches below, by name.
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
    lower: tuple[tuple[str, AccessCounts], ...] = ()


def simulate(kernels: Sequence[Kernel], board: Board, *, code_address: int, code_memory: str,
             cold: bool = False, loads: Sequence[Load] = ()) -> tuple[KernelRun, ...]:
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
    loads : sequence of Load
        What other masters do meanwhile.

    Returns
    -------
    tuple of KernelRun
        One per kernel.

    Notes
    -----
    Instructions come from scheduled blocks, data from the access nests. How much of a line the
    in-order core waits for is said in `hwmodels.paths.data`, what becomes of its instructions in
    `hwmodels.paths.code`, what other masters cost in `hwmodels.bus.contention`. Code and data of a
    unified cache share its lines.
    """
    if loads:
        from hwmodels.bus.contention import check_loads

        check_loads(board, loads)
    timing = load_core(board.core.model)
    states: dict[str, CacheState] = {}
    code = CodePath(kernels, board, code_address, code_memory, states)
    data = DataPath(board, states)
    issued = [[count_block(block, timing) for block in kernel.blocks if block.trips]
              for kernel in kernels]
    runs: list[KernelRun] = []
    # Fetching comes first: code and data of a unified cache share its lines.
    for warming in (False,) if cold else (True, False):
        shared = () if warming else tuple(loads)
        runs = [_run_kernel(kernel, blocks, code.fetch(kernel, timing), code, data, shared)
                for kernel, blocks in zip(kernels, issued, strict=True)]
    return tuple(runs)


def run_until(kernels: Sequence[Kernel], board: Board, *, code_address: int, code_memory: str,
              stop: int, cold: bool = False) -> dict[str, CacheState]:
    """Return the caches' contents when a kernel is about to run.

    Parameters
    ----------
    kernels, board, code_address, code_memory, cold
        As for `simulate`.
    stop : int
        Position of the kernel.

    Returns
    -------
    dict of str to CacheState
        By cache; those nothing has reached yet are missing.
    """
    timing = load_core(board.core.model)
    states: dict[str, CacheState] = {}
    code = CodePath(kernels, board, code_address, code_memory, states)
    data = DataPath(board, states)
    for kernel in (*(() if cold else kernels), *kernels[:stop]):
        code.fetch(kernel, timing)
        data.access(kernel, math.fsum(count_block(block, timing).cpu_cycles
                                      for block in kernel.blocks if block.trips))
    return dict(states)


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


def _run_kernel(kernel: Kernel, blocks: Sequence[BlockCounts], fetched: Sequence[CountLine],
                code: CodePath, data: DataPath, loads: Sequence[Load]) -> KernelRun:
    lanes = sum(block.mac_lanes for block in blocks)
    issue = merge_counts([Counts(tuple(
        CountLine(event=event, place=COPYING if block.count("copy_issue") else "",
                  occurred=count, exposed=count)
        for block in blocks for event, count in block.events))])
    core_cycles = math.fsum(block.cpu_cycles for block in blocks)
    bursts = None
    if loads:
        from hwmodels.bus.contention import count_waits, list_bursts

        bursts = list_bursts(data.board, kernel, data.states)
    run = data.access(kernel, core_cycles)
    waits = code.conflicts(kernel, run.counts, core_cycles)
    if bursts is not None:
        waits += count_waits(data.board, loads, bursts, core_cycles, run.counts)
    looked_up = [operand for operand in run.counts.operands if operand.cached]
    return KernelRun(
        counts=merge_counts([_split_waste(issue, kernel.useful_macs, lanes),
                             Counts(run.lines), Counts((*fetched, *waits))]),
        instructions=sum(block.instructions for block in blocks),
        loads=sum(block.loads for block in blocks), stores=sum(block.stores for block in blocks),
        vector_instructions=sum(block.vector_instructions for block in blocks), mac_lanes=lanes,
        cache_accesses=sum(o.read_touches + o.write_touches for o in looked_up),
        cache_misses=sum(o.read_misses + o.write_misses for o in looked_up), data=run.counts,
        lower=run.lower)


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
