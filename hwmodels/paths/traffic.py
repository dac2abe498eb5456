"""What kernels ask of caches and memories: counted once, whatever clocks, waits and prices are.

It depends on instructions, addresses and the geometry of caches and memories alone. What of it
stretches the run is `hwmodels.paths.exposure`.
"""

from __future__ import annotations

from hwmodels.cache import AccessCounts
from hwmodels.counts import CountLine, Counts
from hwmodels.frozen import frozen

HALFWORD_BYTES = 2
"""Instructions of T32 begin at multiples of it; a narrow one is that long."""


@frozen
class DirectBlock:
    """A block of instructions that no cache holds.

    Parameters
    ----------
    trips, entries
        As of `hwmodels.kernel.Block`.
    pass_cycles
        Of the core, each pass.
    """

    size_bytes: int
    trips: int
    entries: int
    pass_cycles: float


@frozen
class CodeTraffic:
    """Instructions fetched for one call.

    Parameters
    ----------
    misses
        Lines of the cache filled.
    blocks
        Fetched without a cache.
    fetched_bytes
        Of code over all passes, where data in the same memory may meet it; else 0.
    shared
        Of each operand, probability that one of its bytes is in the bank of one of the code.
    """

    misses: int = 0
    blocks: tuple[DirectBlock, ...] = ()
    fetched_bytes: int = 0
    shared: tuple[float, ...] = ()


@frozen
class DataTraffic:
    """What a kernel's loads and stores did.

    Parameters
    ----------
    counts
        Per operand and owner, in the cache each operand looks up first.
    lower : tuple of (str, str, AccessCounts)
        Caches below that were looked up, each with the one above it.
    array_reads
        Of each operand: reads of its memory's array through the one-line buffer; all its reads
        where there is none.
    """

    counts: AccessCounts
    lower: tuple[tuple[str, str, AccessCounts], ...] = ()
    array_reads: tuple[int, ...] = ()


@frozen
class KernelTraffic:
    """What one kernel did, nothing priced.

    Parameters
    ----------
    issued
        Events of the core itself.
    core_cycles
        Their sum, which can hide waiting.
    instructions, loads, stores, vector_instructions, mac_lanes
        Totals over the kernel's blocks.
    waits
        For other masters; with them it is of one setting of clocks alone.
    """

    issued: Counts
    core_cycles: float
    instructions: int
    loads: int
    stores: int
    vector_instructions: int
    mac_lanes: int
    code: CodeTraffic
    data: DataTraffic
    waits: tuple[CountLine, ...] = ()

    @property
    def accesses(self) -> int:
        """Data-cache lines looked up."""
        return sum(one.read_touches + one.write_touches for one in self.data.counts.operands
                   if one.cached)

    @property
    def misses(self) -> int:
        """Data-cache lines filled."""
        return sum(one.read_misses + one.write_misses for one in self.data.counts.operands
                   if one.cached)
