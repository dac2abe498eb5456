"""What a board file states of the things micro-benchmarks measure."""

from __future__ import annotations

from dataclasses import dataclass

from calibration.virtual_board.costs import costs_of
from hwmodels.board.facts import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Stated waits of one memory, in cycles of the core beyond an access that hits.

    Parameters
    ----------
    miss_cycles : float
        A load that misses, or that waits where there is no cache.
    fetch_cycles : float
        Per byte of straight code that no cache holds.
    """

    miss_cycles: float
    fetch_cycles: float


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
            fetch = span.fetch_cycles / 4  # a word of code
        found[memory.name] = Stated(
            miss_cycles=span.read_miss_cycles if span.cached else span.read_cycles,
            fetch_cycles=fetch)
    return found
