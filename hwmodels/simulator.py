"""The one place that composes parts: kernels through a core, its caches and its memories.

What simulates is imported when something is: where counts are at hand, nothing is.

runs = simulate(kernels, board, ...)      counts per kernel, in order
bill = make_bill(runs[0].counts, derive_prices(board))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board
from hwmodels.counts import (
    COPYING,
    EXACT,
    Bill,
    BillLine,
    CountLine,
    Counts,
    Prices,
    merge_counts,
)
from hwmodels.paths.exposure import expose, to_counts
from hwmodels.paths.sheet import lay_out
from hwmodels.paths.timing import read_timing
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.paths.ways import is_unified

if TYPE_CHECKING:
    from hwmodels.bus.contention import Load
    from hwmodels.cache.set_associative import CacheState
    from hwmodels.core.schedule import BlockCounts
    from hwmodels.core.timing import CoreTiming
    from hwmodels.kernel import Kernel
    from hwmodels.paths.code import CodePath
    from hwmodels.paths.data import DataPath
    from hwmodels.paths.traffic import CodeTraffic


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRun:
    """What one kernel did: its traffic, and the events that is at a board's clocks and waits."""

    counts: Counts
    traffic: KernelTraffic


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
    Instructions come from scheduled blocks, data from the access nests. What of either the
    in-order core waits for is said in `hwmodels.paths.exposure`, what other masters cost in
    `hwmodels.bus.contention`. Code and data of a unified cache share its lines.
    """
    traffic = count_traffic(kernels, board, code_address=code_address, code_memory=code_memory,
                            cold=cold, loads=loads)
    sheet = lay_out(traffic, board, code_memory)
    occurred, exposed = expose(sheet, read_timing(board, sheet.places)[None])
    return tuple(KernelRun(counts=counts, traffic=one) for counts, one in zip(
        to_counts(sheet, occurred[0], exposed[0]), traffic, strict=True))


def count_traffic(kernels: Sequence[Kernel], board: Board, *, code_address: int, code_memory: str,
                  cold: bool = False, loads: Sequence[Load] = ()) -> tuple[KernelTraffic, ...]:
    """Run kernels in order and count what is met, nothing of which depends on clocks or waits.

    Parameters
    ----------
    kernels, board, code_address, code_memory, cold, loads
        As for `simulate`. Clocks and waits of the board matter where there are loads, and to
        caches that stop allocating for streams of stores.

    Returns
    -------
    tuple of KernelTraffic
        One per kernel.
    """
    from hwmodels.core.file import load_core
    from hwmodels.core.schedule import count_block
    from hwmodels.paths.code import CodePath
    from hwmodels.paths.data import DataPath

    if loads:
        from hwmodels.bus.contention import check_loads

        check_loads(board, loads)
    timing = load_core(board.core.model)
    states: dict[str, CacheState] = {}
    code = CodePath(kernels, board, code_address, code_memory, states)
    data = DataPath(board, states)
    issued = [[count_block(block, timing) for block in kernel.blocks if block.trips]
              for kernel in kernels]
    if not cold:
        _warm(kernels, [_core_cycles(blocks) for blocks in issued], timing, code, data)
    # Fetching comes first: code and data of a unified cache share its lines.
    return tuple([_run_kernel(kernel, blocks, code.fetch(kernel, timing), data, loads)
                  for kernel, blocks in zip(kernels, issued, strict=True)])


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
    from hwmodels.core.file import load_core
    from hwmodels.core.schedule import count_block
    from hwmodels.paths.code import CodePath
    from hwmodels.paths.data import DataPath

    timing = load_core(board.core.model)
    states: dict[str, CacheState] = {}
    code = CodePath(kernels, board, code_address, code_memory, states)
    data = DataPath(board, states)
    run = (*(() if cold else kernels), *kernels[:stop])
    _warm(run, [_core_cycles([count_block(block, timing) for block in kernel.blocks if block.trips])
                for kernel in run], timing, code, data)
    return dict(states)


def _core_cycles(blocks: Sequence[BlockCounts]) -> float:
    return math.fsum(block.cpu_cycles for block in blocks)


def _warm(kernels: Sequence[Kernel], core_cycles: Sequence[float], timing: CoreTiming,
          code: CodePath, data: DataPath) -> None:
    """Run kernels for what they leave in caches alone."""
    if code.cache is not None and is_unified(data.board, code.cache):
        for kernel, cycles in zip(kernels, core_cycles, strict=True):
            code.fetch(kernel, timing)
            data.access(kernel, cycles)
        return
    for kernel in kernels:
        code.fetch(kernel, timing)
    data.warm(kernels, core_cycles)


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


def _run_kernel(kernel: Kernel, blocks: Sequence[BlockCounts], fetched: CodeTraffic,
                data: DataPath, loads: Sequence[Load]) -> KernelTraffic:
    lanes = sum(block.mac_lanes for block in blocks)
    issue = merge_counts([Counts(tuple(
        CountLine(event=event, place=COPYING if block.count("copy_issue") else "",
                  occurred=count, exposed=count)
        for block in blocks for event, count in block.events))])
    core_cycles = _core_cycles(blocks)
    bursts = None
    if loads:
        from hwmodels.bus.contention import count_waits, list_bursts

        bursts = list_bursts(data.board, kernel, data.states)
    met = data.access(kernel, core_cycles)
    return KernelTraffic(
        issued=_split_waste(issue, kernel.useful_macs, lanes), core_cycles=core_cycles,
        instructions=sum(block.instructions for block in blocks),
        loads=sum(block.loads for block in blocks), stores=sum(block.stores for block in blocks),
        vector_instructions=sum(block.vector_instructions for block in blocks), mac_lanes=lanes,
        code=fetched, data=met, waits=() if bursts is None else tuple(
            count_waits(data.board, loads, bursts, core_cycles, met.counts)))


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
