"""Service times of memories, in cycles of the memory's own clock.

Array behind wait states (flash, SRAM, ROM): n bytes with w wait states, a bytes per array read,
b bytes moved per cycle and latency L; within one burst the array is read ahead while the bus
drains what has been read:

    cycles = 1 + L + max(ceil(n/a) (1 + w) + ceil(min(a, n)/b) - 2, w + ceil(n/b) - 1)

Between accesses, a line buffer saves the reads inside the latched line, and a prefetch starts the
next line's read as soon as the array is free. A line that is consumed in c cycles then waits
max(0, 1 + w - c); without prefetch w per line, without a buffer w per access. An array read is
not broken off by another access (assumed).

References: RM0090 and RM0367 (flash interface, buffers and prefetch).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodels.board.facts import Memory


def burst_cycles(memory: Memory, size_bytes: np.ndarray | int, moved_bytes: float) -> np.ndarray:
    """Return cycles of bursts that read or write whole, from request to last beat.

    Parameters
    ----------
    memory
        Array behind wait states.
    size_bytes : int or ndarray of int, (bursts,)
        Of each burst.
    moved_bytes
        Bytes the bus moves in a cycle of the memory's clock; the memory's own
        `bytes_per_cycle` comes first where it is stated.

    Returns
    -------
    ndarray of float, (bursts,) or ()
        Cycles of the memory's clock, the access's own one included.

    Notes
    -----
    The first equation of the module.
    """
    size, moved = np.asarray(size_bytes), memory.bytes_per_cycle or moved_bytes
    array = (np.ceil(size / memory.read_bytes) * (1 + memory.wait_states)
             + np.ceil(np.minimum(memory.read_bytes, size) / moved) - 2)
    bus = memory.wait_states + np.ceil(size / moved) - 1
    cycles: np.ndarray = 1 + memory.latency_cycles + np.maximum(array, bus)
    return cycles


def sequential_wait_cycles(memory: Memory, consume_cycles: Any, accesses: int = 1) -> Any:
    """Return wait cycles of one array line in the middle of a long sequential read.

    Parameters
    ----------
    memory
        Array behind wait states.
    consume_cycles
        Cycles of the memory's clock from the first access in a line to the first in the next,
        waits apart.
    accesses
        Accesses that fall into a line.

    Returns
    -------
    float
        Cycles per line: max(0, 1 + w - c) with prefetch, w with a line buffer, w per access
        without.
    """
    if not memory.line_buffer:
        return float(memory.wait_states * accesses)
    if not memory.prefetch:
        return float(memory.wait_states)
    return at_least(0.0, 1 + memory.wait_states - consume_cycles)


def at_least(low: float, value: Any) -> Any:
    """Return the larger of two numbers; of an array, with each of it."""
    return np.maximum(low, value) if isinstance(value, np.ndarray) else max(low, value)


def bank_numbers(addresses: np.ndarray, banks: int, interleave_bytes: int) -> np.ndarray:
    """Return the bank each address lies in.

    Parameters
    ----------
    addresses : ndarray of int, (accesses,)
        From the memory's first byte.
    interleave_bytes
        Consecutive bytes of one bank before the next begins.

    Returns
    -------
    ndarray of int64, (accesses,)
        0 to banks - 1.
    """
    return np.asarray(addresses, np.int64) // interleave_bytes % banks


def banks_of(memory: Memory, addresses: np.ndarray) -> np.ndarray:
    """Return the bank of each address: pieces of one size, or interleaved where stated."""
    size = memory.interleave_bytes or -(-memory.size_bytes // memory.banks)
    return bank_numbers(addresses - memory.address, memory.banks, size)
