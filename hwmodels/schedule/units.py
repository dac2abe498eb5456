"""What units take for their work with ideal memory, and what of it multiplies."""

from __future__ import annotations

import math

from hwmodels.board.npu import MULTIPLYING, THROUGH, Npu
from hwmodels.errors import KernelError
from hwmodels.schedule.task import UnitWork


def estimate_unit_cycles(work: UnitWork, npu: Npu) -> int:
    """Return the cycles units take for their work with ideal memory.

    Parameters
    ----------
    work
        Its `compute_cycles` where stated.
    npu
        For the units' rates.

    Returns
    -------
    int
        NPU cycles.

    Raises
    ------
    KernelError
        When the units have no rate for the operand widths.

    Notes
    -----
    cycles = ceil(macs / (rate x count)), or ceil(ops / (rate x count)) without MACs.
    """
    if work.compute_cycles is not None:
        return work.compute_cycles
    if work.kind == THROUGH:
        return 0
    unit = npu.unit(work.kind)
    if not work.macs:
        return math.ceil(work.ops / (unit.ops_per_cycle * work.count))
    width = name_bits(work.mac_bits)
    rate = dict(unit.macs_per_cycle).get(width)
    if rate is None:
        raise KernelError(f"unit {work.kind} has no rate for {width} bits; accepted: "
                          + ", ".join(name for name, _ in unit.macs_per_cycle))
    return math.ceil(work.macs / (rate * work.count))


def multiplies(work: UnitWork, npu: Npu) -> bool:
    """Whether work is multiply-accumulates: its units can, and no other operations are stated."""
    return bool(work.macs or not work.ops) and any(
        role in MULTIPLYING for role in npu.roles(work.kind))


def name_bits(bits: tuple[int, int]) -> str:
    """Return widths of activations and weights as rates and energies name them: "8x8"."""
    return f"{bits[0]}x{bits[1]}"
