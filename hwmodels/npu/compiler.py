"""The compiler's own estimate of an epoch: compute cycles and max cycles.

    max_cycles = max(compute_cycles, over pools: beats x frequency ratio)

A beat moves up to `byte_width_bytes`; every run of a walk that is not contiguous takes beats of
its own. Some compiler versions add the reads and writes of a pool, others take the longer
(`Npu.sums_directions`). Cycles are of the NPU's clock.
"""

from __future__ import annotations

import numpy as np

from hwmodels.board.npu import Npu
from hwmodels.npu.epoch import Epoch
from hwmodels.npu.machine import Ints, Machine, read_machine
from hwmodels.npu.table import EngineColumns, UnitColumns, read_engines, read_units


def estimate_max_cycles(epoch: Epoch, npu: Npu) -> int:
    """Return the compiler's estimate of an epoch.

    Parameters
    ----------
    epoch : Epoch
        With its engines.
    npu : Npu
        For the pools.

    Returns
    -------
    int
        NPU cycles, by the equation of the module.
    """
    machine = read_machine(npu)
    compute = estimate_compute(read_units([epoch], machine))
    return int(estimate_max(read_engines([epoch.engines], machine), compute, machine)[0])


def estimate_compute(units: UnitColumns) -> Ints:
    """Return the cycles of epochs with ideal memory: the slowest unit, the others in step."""
    longest = np.zeros(len(units.first) - 1, np.int64)
    np.maximum.at(longest, units.epoch, units.cycles)
    return longest


def estimate_max(engines: EngineColumns, compute: Ints, machine: Machine) -> Ints:
    """Return the compiler's estimate of epochs, from their cycles with ideal memory."""
    pool, lanes = engines.pool, 2 * len(machine.pools)
    direction = np.zeros_like(pool) if machine.npu.sums_directions else engines.out
    lane = np.where(machine.serialises[pool], 2 * pool + direction, lanes + engines.place)
    ports = lanes + int(engines.place.max(initial=0)) + 1
    port = engines.epoch * ports + lane
    beats = np.zeros(len(compute) * ports, np.int64)
    np.add.at(beats, port, count_pool_beats(engines, machine))
    longest = compute.copy()
    np.maximum.at(longest, engines.epoch,
                  (beats[port] * machine.frequency_ratio[pool]).astype(np.int64))
    return longest


def count_pool_beats(engines: EngineColumns, machine: Machine) -> Ints:
    """Return the beats of engines in the compiler's width of a pool, a last part dropped."""
    width, run = machine.byte_width[engines.pool], np.maximum(1, engines.run_bytes)
    whole = engines.contiguous | (engines.run_bytes >= engines.bytes)
    beats: Ints = np.where(whole, engines.repeats * engines.bytes // width,
                           engines.repeats * (engines.bytes // run) * -(-run // width))
    return beats
