"""A flash array read access by access, by hand: what the closed forms of memories must give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodels.board.facts import Memory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayReads:
    """What a sequence of reads met in an array behind wait states.

    Parameters
    ----------
    waits : ndarray of int64, (reads,)
        Cycles each read waited: exposed.
    array_reads : int
        Lines read from the array for an access or ahead of one; each holds the array 1 + w
        cycles, so w x array_reads is what occurred.
    """

    waits: np.ndarray
    array_reads: int


def read_array(memory: Memory, addresses: np.ndarray, width_bytes: int = 4,
               gap_cycles: np.ndarray | int = 0) -> ArrayReads:
    """Read an array access by access: line buffer, prefetch and time in between.

    Parameters
    ----------
    memory : Memory
        Array behind wait states.
    addresses : ndarray of int, (reads,)
        First byte of each.
    width_bytes : int
        Bytes of each; a read that straddles lines needs them all.
    gap_cycles : int or ndarray of int, (reads,)
        Cycles of the memory's clock between the end of the read before and this one.

    Returns
    -------
    ArrayReads
        Waits per read, array reads.

    Notes
    -----
    A read without wait takes one cycle per line it touches. One read a step, in Python: for
    patterns, not networks.
    """
    period, ahead = 1 + memory.wait_states, memory.prefetch and memory.line_buffer
    addresses = np.asarray(addresses)
    gaps = np.broadcast_to(gap_cycles, addresses.shape)
    latched = coming = -1
    now = free = ready = reads = 0
    waits = np.zeros(len(addresses), np.int64)
    for row, (address, gap) in enumerate(zip(addresses.tolist(), gaps.tolist(), strict=True)):
        now += gap
        for line in range(address // memory.read_bytes,
                          (address + width_bytes - 1) // memory.read_bytes + 1):
            now += 1
            if memory.line_buffer and line == latched:
                continue
            if line != coming:
                ready = max(now - 1, free) + period
                reads += 1
            wait = max(0, ready - now)
            waits[row] += wait
            now += wait
            latched = line
            if ahead:
                # The next read starts when the array is free and the buffer is being emptied.
                coming, ready = line + 1, max(now - 1, ready) + period
                reads += 1
            free = ready
    return ArrayReads(waits=waits, array_reads=reads)
