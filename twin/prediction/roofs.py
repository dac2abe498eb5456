"""The limits a board sets: MACs per cycle of its core, bytes per second of its memories."""

from __future__ import annotations

from hwmodels.board.facts import Board, Memory
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule

MAC_LOOPS = {
    ("armv6-m", "int8"): "muls r0, r1; adds r2, r2, r0; muls r3, r1; adds r4, r4, r3",
    ("armv7-m", "int8"): "mla r4, r0, r1, r4; mla r5, r2, r3, r5",
    ("armv7e-m", "int8"): "smlad r4, r0, r1, r4; smlad r5, r2, r3, r5",
    ("armv7e-m", "float32"): "vfma.f32 s0, s8, s9; vfma.f32 s1, s8, s10; "
                             "vfma.f32 s2, s8, s11; vfma.f32 s3, s8, s12",
    ("armv8-m", "int8"): "mla r4, r0, r1, r4; mla r5, r2, r3, r5",
    ("armv8.1-m-mve", "int8"): "vmladava.s8 r0, q0, q1; vmladava.s8 r2, q2, q3",
    ("armv8.1-m-mve", "int16"): "vmladava.s16 r0, q0, q1; vmladava.s16 r2, q2, q3",
    ("armv8.1-m-mve", "float32"): "vfma.f32 q0, q4, q5; vfma.f32 q1, q4, q6",
    ("xtensa-lx7", "int8"): "ee.vmulas.s8.accx q0, q1; ee.vmulas.s8.accx q2, q3",
    ("rv32imc", "int8"): "mul a0, a1, a2; add a3, a3, a0; mul a4, a1, a2; add a5, a5, a4",
}
"""The densest run of independent MACs an instruction set has for a type."""

_LOAD_LOOPS = {
    "armv8.1-m-mve": "vldrb.u8 q0, [r0], #16; vldrb.u8 q1, [r0], #16",
    "xtensa-lx7": "ee.vld.128 q0, 0(a1); ee.vld.128 q1, 0(a2)",
    "rv32imc": "lw a0, 0(a1); lw a2, 4(a1)",
}
_LOAD_LOOP = "ldr r4, [r0, #0]; ldr r5, [r0, #4]; ldr r6, [r0, #8]; ldr r7, [r0, #12]"


def mac_loop(isa: str, dtype: str, fpu: bool) -> str | None:
    """Return the densest run of independent MACs of a type; None where none is known.

    Without vectors of their own, 16-bit operands take the instructions of 8-bit ones.
    """
    isa = isa.replace("armv8-m-dsp", "armv7e-m")
    if dtype == "float32" and not fpu:
        return None
    return MAC_LOOPS.get((isa, dtype)) or (MAC_LOOPS.get((isa, "int8")) if dtype == "int16"
                                           else None)


def peak_macs_per_cycle(board: Board, dtype: str) -> float | None:
    """MACs the core can do per cycle of its clock, were operands always there.

    Parameters
    ----------
    board : Board
        Its core's instruction set and timing table are used.
    dtype : str
        "int8", "int16" or "float32".

    Returns
    -------
    float or None
        None where no MAC sequence of that type is known for the instruction set.

    Notes
    -----
    The core model schedules the densest run of independent MACs the instruction set allows
    (SMLAD does two, VMLADAVA.S8 sixteen): peak = lanes of the run / its steady cycles. What it
    takes to feed them is left out, so kernels stay below it.
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
    if board.core.isa.startswith("x86"):
        return None
    code = _LOAD_LOOPS.get(board.core.isa, _LOAD_LOOP)
    timing = schedule(code, load_core(board.core.model))
    return timing.loaded_bytes / timing.steady.cycles


def memory_bytes_per_second(board: Board, memory: Memory) -> float:
    """Bytes per second a memory delivers when it is read without pause.

    Parameters
    ----------
    board : Board
        Gives clocks and buses.
    memory : Memory
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
