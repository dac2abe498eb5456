"""What a board file states of the things micro-benchmarks measure."""

from __future__ import annotations

from dataclasses import dataclass

from calibration.virtual_board.costs import costs_of
from hwmodels.board.facts import Board
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Stated waits of one memory, in cycles of the core beyond an access that hits.

    Parameters
    ----------
    miss_cycles : float
        A load that misses, or that waits where there is no cache.
    fetch_cycles : float
        Per byte of straight code that no cache holds.
    fetch_cached : bool
        Whether a cache holds code of this memory, so that loops do not wait for it.
    """

    miss_cycles: float
    fetch_cycles: float
    fetch_cached: bool


def state_memories(board: Board) -> dict[str, Stated]:
    """Return what a board's facts say of each memory.

    Notes
    -----
    A miss of a cache waits for its line; without a cache a load waits for the array, or for as
    long as the memory takes. Prefetch and critical word first are left out, as of dependent loads.
    """
    costs = costs_of(board)
    found = {}
    for memory, span in zip(board.memories, costs.spans, strict=True):
        fetch = 0.0
        if span.fetch_cached and costs.code is not None:
            fetch = span.fetch_miss_cycles / costs.code.line_bytes
        elif span.fetch_cycles:
            fetch = span.fetch_cycles / (span.fetch_bytes or 4)  # a word of code
        found[memory.name] = Stated(
            miss_cycles=span.read_miss_cycles if span.cached else span.read_cycles,
            fetch_cycles=fetch, fetch_cached=span.fetch_cached)
    return found


def waits_for_code(board: Board) -> bool:
    """Whether loops wait for their own instructions: code in a memory that waits, and no cache."""
    code = state_memories(board)[dict(board.placement)["code"]]
    return code.fetch_cycles > 0 and not code.fetch_cached


def straight_cycles(board: Board) -> float:
    """Return cycles per byte of two-byte instructions that do nothing, were they always there."""
    timing = schedule("nop; nop; nop; nop", load_core(board.core.model))
    return timing.steady.cycles / 8
