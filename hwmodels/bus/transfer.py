"""How long a DMA controller takes to copy bytes from memory to memory, nobody else on the bus."""

from __future__ import annotations

import math

from hwmodels.board.external import serial_cycles
from hwmodels.board.facts import Board, Dma, Memory
from hwmodels.paths.refill import beat_bytes, line_cycles

BURST_BEATS = 16
"""Beats of a burst: the longest of AHB, and what DMA drivers ask for."""


def copy_cycles(board: Board, dma: Dma, source: Memory, target: Memory, size_bytes: int) -> float:
    """Return core cycles from starting a copy to its last byte.

    Parameters
    ----------
    board
        For buses and clocks.
    dma
        Who copies; one port, a burst read and then written.

    Returns
    -------
    float
        Cycles of the main core's clock, programming the controller apart.

    Notes
    -----
    bursts x (read + write), each as `hwmodels.paths.refill.line_cycles`; a serial memory is sent
    one command and then streams, since each burst continues the one before.
    """
    if not size_bytes:
        return 0.0
    core_hz = board.core_clock.frequency_hz
    burst = BURST_BEATS * board.bus(dma.bus).width_bytes
    seconds = (_move_s(board, source, size_bytes, burst, write=False)
               + _move_s(board, target, size_bytes, burst, write=True))
    return seconds * core_hz


def _move_s(board: Board, memory: Memory, size_bytes: int, burst_bytes: int, *,
            write: bool) -> float:
    clock_hz = board.clock(memory.clock).frequency_hz
    if memory.serial is not None:
        first = line_cycles(memory, burst_bytes, burst_bytes, write=write)
        rest = serial_cycles(memory.serial, max(0, size_bytes - burst_bytes), burst_bytes,
                             continues=True)
        return float(first + rest) / clock_hz
    bursts = math.ceil(size_bytes / burst_bytes)
    return float(bursts * line_cycles(memory, burst_bytes, beat_bytes(board, memory),
                                      write=write)) / clock_hz
