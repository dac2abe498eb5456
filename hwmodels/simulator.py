"""The one place that composes parts: kernels through a core, its caches and its memories.

What simulates is imported when something is: where counts are at hand, nothing is.

runs = simulate(kernels, board, ...)      counts per kernel, in order
bill = make_bill(runs[0].counts, derive_prices(board))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board
from hwmodels.cache import AccessCounts
from hwmodels.counts import COPYING, EXACT, CountLine, Counts, merge_counts
from hwmodels.frozen import frozen
from hwmodels.paths.arrays import lay_out
from hwmodels.paths.exposure import expose, to_counts
from hwmodels.paths.timing import read_timing
from hwmodels.paths.traffic import CodeTraffic, DataTraffic, KernelTraffic
from hwmodels.paths.ways import is_unified

if TYPE_CHECKING:
    from hwmodels.bus.contention import Load
    from hwmodels.cache.set_associative import CacheState
    from hwmodels.core.timing import CoreTiming
    from hwmodels.kernel import Block, Kernel
    from hwmodels.paths.code import CodePath
    from hwmodels.paths.data import DataPath


MOST_ISSUED = 1024
"""Kernels whose instructions are kept counted."""


@frozen
class KernelRun:
    """What one kernel did: its traffic, and the events that is at a board's clocks and waits."""

    counts: Counts
    traffic: KernelTraffic


def simulate(kernels: Sequence[Kernel], board: Board, *, code_address: int, code_memory: str,
             cold: bool = False, loads: Sequence[Load] = ()) -> tuple[KernelRun, ...]:
    """Run kernels in order on the board's main core.

    Parameters
    ----------
    kernels
        In execution order.
    code_address
        First byte of the kernels' code.
    code_memory
        Memory the code is fetched from.
    cold
        Caches start empty; otherwise they start as one earlier pass left them.
    loads
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
    arrays = lay_out(traffic, board, code_memory)
    exposed = expose(arrays, read_timing(board, arrays.places))
    return tuple(KernelRun(counts=counts, traffic=one) for counts, one in zip(
        to_counts(arrays, *exposed), traffic, strict=True))


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
        One per kernel, under one policy of the caches behind the other: a board has several only
        here (`hwmodels.board.policies.policies_of`), without loads and a lower cache.
    """
    if loads:
        from hwmodels.bus.contention import check_loads

        check_loads(board, loads)
    timing, _, code, data = _empty(kernels, board, code_address, code_memory)
    issued = [_issue(kernel.blocks, kernel.useful_macs, timing) for kernel in kernels]
    if not cold:
        _run_kernels(kernels, issued, timing, code, data)
    return _run_kernels(kernels, issued, timing, code, data, loads)


def run_until(kernels: Sequence[Kernel], board: Board, *, code_address: int, code_memory: str,
              stop: int, cold: bool = False) -> dict[str, CacheState]:
    """Return the caches' contents when a kernel is about to run.

    Parameters
    ----------
    kernels, board, code_address, code_memory, cold
        As for `simulate`.
    stop
        Position of the kernel.

    Returns
    -------
    dict of str to CacheState
        By cache; those nothing has reached yet are missing.
    """
    timing, states, code, data = _empty(kernels, board, code_address, code_memory)
    run = (*(() if cold else kernels), *kernels[:stop])
    _run_kernels(run, [_issue(kernel.blocks, kernel.useful_macs, timing) for kernel in run],
                 timing, code, data)
    return dict(states)


def _empty(kernels: Sequence[Kernel], board: Board, code_address: int, code_memory: str,
           ) -> tuple[CoreTiming, dict[str, CacheState], CodePath, DataPath]:
    """Return the core's timing, the caches by name, and the paths of code and data to them."""
    from hwmodels.core.file import load_core
    from hwmodels.paths.code import CodePath
    from hwmodels.paths.data import DataPath

    states: dict[str, CacheState] = {}
    return (load_core(board.core.model), states,
            CodePath(kernels, board, code_address, code_memory, states), DataPath(board, states))


def _run_kernels(kernels: Sequence[Kernel], issued: Sequence[KernelTraffic], timing: CoreTiming,
                 code: CodePath, data: DataPath, loads: Sequence[Load] = (),
                 ) -> tuple[KernelTraffic, ...]:
    """Add what each kernel's fetches, loads and stores meet to what the core does."""
    # A cache that code and data share is met by both in turns.
    if not (loads or data.in_turns or (code.cache and is_unified(data.board, code.cache))):
        return _run_together(kernels, issued, timing, code, data, ())
    rows = [_run_together([kernel], [one], timing, code, data, loads)
            for kernel, one in zip(kernels, issued, strict=True)]
    return tuple(itertools.chain(*zip(*rows, strict=True)))


@lru_cache(maxsize=MOST_ISSUED)
def _issue(blocks: tuple[Block, ...], useful_macs: int, timing: CoreTiming) -> KernelTraffic:
    """Return what a core does by itself for a kernel's instructions; it fetches and loads none."""
    from hwmodels.core.schedule import count_block

    counted = [count_block(block, timing) for block in blocks if block.trips]
    lanes = sum([block.mac_lanes for block in counted])
    issue = merge_counts([Counts(tuple(
        CountLine(event=event, place=COPYING if block.count("copy_issue") else "",
                  occurred=count, exposed=count)
        for block in counted for event, count in block.events))])
    return KernelTraffic(
        issued=_split_waste(issue, useful_macs, lanes),
        core_cycles=math.fsum([block.cpu_cycles for block in counted]),
        instructions=sum([block.instructions for block in counted]),
        loads=sum([block.loads for block in counted]),
        stores=sum([block.stores for block in counted]),
        vector_instructions=sum([block.vector_instructions for block in counted]),
        mac_lanes=lanes, code=CodeTraffic(), data=DataTraffic(counts=AccessCounts(operands=())))


def _run_together(kernels: Sequence[Kernel], issued: Sequence[KernelTraffic], timing: CoreTiming,
                  code: CodePath, data: DataPath, loads: Sequence[Load],
                  ) -> tuple[KernelTraffic, ...]:
    """Add what kernels meet that come to no cache in turns; of loads, what one kernel waits for."""
    fetched = code.run(kernels, timing)
    if loads:
        from hwmodels.bus.contention import count_waits, list_bursts

        bursts = list_bursts(data.board, kernels[0], data.states)
    met = data.run(kernels, [one.core_cycles for one in issued])
    return tuple([
        replace(one, code=of_code, data=of_data, waits=tuple(count_waits(
            data.board, loads, bursts, one.core_cycles, of_data.counts)) if loads else ())
        for one, of_code, of_data in zip(itertools.cycle(issued), fetched, met)])


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
