"""The limits a board sets: MACs per cycle of its core, bytes per second of its memories."""

from __future__ import annotations

from hwmodels.board.facts import Board, Memory
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule
from hwmodels.isa import load_isa


def mac_loop(isa: str, dtype: str, fpu: bool) -> str | None:
    """Return the densest run of independent MACs of a type; None where none is known.

    Without vectors of their own, 16-bit operands take the instructions of 8-bit ones.
    """
    if dtype == "float32" and not fpu:
        return None
    loops = load_isa(isa).mac_loops
    return loops.get(dtype) or (loops.get("int8") if dtype == "int16" else None)


def peak_macs_per_cycle(board: Board, dtype: str) -> float | None:
    """MACs the core can do per cycle of its clock, were operands always there.

    Parameters
    ----------
    board
        Its core's instruction set and timing table are used.
    dtype
        "int8", "int16" or "float32".

    Returns
    -------
    float or None
        None where no MAC sequence of that type is known for the instruction set.

    Notes
    -----
    The core model schedules the densest run of independent MACs the instruction set allows
    (SMLAD does two, VMLADAVA.S8 sixteen): peak = lanes of the run / its steady cycles. What it
    takes to feed them is omitted, so kernels stay below it.
    """
    code = mac_loop(board.core.isa, dtype, bool(board.core.fpu))
    if code is None:
        return None
    timing = schedule(code, load_core(board.core.model))
    return timing.mac_lanes / timing.steady.cycles


def npu_macs_per_cycle(board: Board) -> float | None:
    """MACs of the accelerator's convolution units per cycle of its clock, 8-bit operands."""
    unit = None if board.npu is None else board.npu.unit_for("convolution")
    rate = None if unit is None else dict(unit.macs_per_cycle).get("8x8")
    return None if unit is None or rate is None else rate * unit.count


def load_bytes_per_cycle(board: Board) -> float | None:
    """Bytes the core can load per cycle of its clock from a memory that never waits."""
    code = load_isa(board.core.isa).load_loop
    if not code:
        return None
    timing = schedule(code, load_core(board.core.model))
    return timing.loaded_bytes / timing.steady.cycles


def memory_bytes_per_second(board: Board, memory: Memory) -> float:
    """Bytes per second a memory delivers when it is read without pause.

    Parameters
    ----------
    board
        Gives clocks and buses.
    memory
        One of the board's.

    Returns
    -------
    float
        An upper bound: latency is taken as hidden, caches as absent.

    Notes
    -----
    rate = min(read_bytes / (1 + wait_states) x memory clock, bus width x bus clock), or the
    board's `bytes_per_cycle` x memory clock where stated.
    """
    clock_hz = board.clock(memory.clock).frequency_hz
    if memory.bytes_per_cycle is not None:
        return memory.bytes_per_cycle * clock_hz
    array = memory.read_bytes / (1 + memory.wait_states) * clock_hz
    if memory.bus is None:
        return array
    bus = board.bus(memory.bus)
    return min(array, bus.width_bytes * board.clock(bus.clock).frequency_hz)
