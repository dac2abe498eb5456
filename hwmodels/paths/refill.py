"""What moving a line between a cache and a memory takes, in cycles.

The equations `refill` and `write_back` of `hwmodels.prices`. All take boards whose clocks are
arrays (`hwmodels.board.operating_points.spread_clocks`), and return as many cycles.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from hwmodels.board.external import sdram_cycles, serial_cycles
from hwmodels.board.facts import Board, Memory
from hwmodels.board.memory import at_least, burst_cycles

WORD_BYTES = 4
"""Of the core: the least that is waited for."""


def line_cycles(memory: Memory, size_bytes: int, moved_bytes: float, *, write: bool = False) -> Any:
    """Return cycles of one line read or written whole, by what the memory states of itself.

    Parameters
    ----------
    size_bytes
        Of the line, at an address that is a multiple of it.
    moved_bytes
        As for `burst_cycles`.
    write
        Whether the line is written.

    Returns
    -------
    float
        Cycles of the memory's clock, the access's own one included.

    Notes
    -----
    Serial memory: the phases of one command; SDRAM: the mean over a row read line by line, over
    the share of time refresh leaves; what `latency_cycles` has beyond those phases is the path to
    the controller. Else the first equation of the module.
    """
    if memory.serial is not None:
        path = at_least(0.0, memory.latency_cycles - memory.serial.lead_cycles
                        - memory.serial.select_cycles)
        return path + serial_cycles(memory.serial, size_bytes, write=write)
    if memory.sdram is not None:
        part = memory.sdram
        path = at_least(0.0, memory.latency_cycles - part.cas_cycles)
        run = sdram_cycles(part, np.arange(0, max(part.row_bytes, size_bytes), size_bytes),
                           size_bytes, write)
        return path + float(run.mean()) / (1 - part.refresh_share)
    cycles = burst_cycles(memory, size_bytes, moved_bytes)
    return cycles if cycles.ndim else float(cycles)


def refill_cycles(board: Board, memory: Memory, line_bytes: int) -> Any:
    """Return core cycles from a miss to the whole line, beyond the access's own cycle.

    Parameters
    ----------
    board
        For the clocks and the memory's bus.
    memory
        What the line comes from.

    Returns
    -------
    float
        Cycles of the main core's clock.

    Notes
    -----
    The equation `refill` of the module: array reads one after another against bus beats, or the
    phases of the memory. Of latency it holds what a fill shows of it (`line_latency_cycles`).
    """
    if memory.line_latency_cycles is not None:
        memory = replace(memory, latency_cycles=memory.line_latency_cycles)
    return uncached_cycles(board, memory, line_bytes)


def uncached_cycles(board: Board, memory: Memory, size_bytes: int) -> Any:
    """Return `refill_cycles` of what no cache holds: the core waits for all of the latency."""
    line = line_cycles(memory, size_bytes, beat_bytes(board, memory))
    return clock_ratio(board, memory) * (line - 1)


def line_wait_cycles(board: Board, memory: Memory, line_bytes: int) -> Any:
    """Return the part of a refill that is wait states: the rest is latency and beats.

    Parameters
    ----------
    board, memory, line_bytes
        As for `refill_cycles`.

    Returns
    -------
    float
        Cycles of the main core's clock, counted as `flash_wait`.
    """
    eager = replace(memory, wait_states=0)
    return refill_cycles(board, memory, line_bytes) - refill_cycles(board, eager, line_bytes)


def write_back_cycles(board: Board, memory: Memory, line_bytes: int) -> Any:
    """Return core cycles to write a line to a memory: no wait states, a buffer takes the line."""
    moved = beat_bytes(board, memory)
    if memory.serial is not None or memory.sdram is not None:
        cycles = line_cycles(memory, line_bytes, moved, write=True)
    else:
        cycles = memory.latency_cycles + math.ceil(line_bytes / moved)
    return clock_ratio(board, memory) * cycles


def clock_ratio(board: Board, memory: Memory) -> float:
    """Return core cycles in one cycle of the memory's clock."""
    core_hz = board.core_clock.frequency_hz
    return core_hz / board.clock(memory.clock).frequency_hz


def beat_bytes(board: Board, memory: Memory) -> float:
    """Return bytes that move towards the core in one cycle of the memory's clock."""
    if memory.bytes_per_cycle is not None:
        return memory.bytes_per_cycle
    return board.bus(memory.bus).width_bytes if memory.bus is not None else memory.read_bytes


def first_bytes(board: Board, memory: Memory) -> int:
    """Return bytes that come first of a line: a beat, or one array read where that is less."""
    beat = math.ceil(beat_bytes(board, memory))
    return max(WORD_BYTES, min(beat, memory.read_bytes))
