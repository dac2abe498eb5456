"""From the `npu` section of a board file to an `Npu`: clocks resolved, pools tied to memories."""

from __future__ import annotations

from typing import Any

from hwmodels.board.leaf import Leaf
from hwmodels.board.rules import clock_of, frequency_of
from hwmodels.board.schema import BoardSection, NpuPoolSection, NpuSection
from hwmodels.npu.machine import (
    HandOver,
    Interface,
    Npu,
    NpuCache,
    NpuEnergy,
    Pool,
    UnitKind,
)

EXTERNAL_ROLES = ("external_ram", "external_flash")
"""Roles of memories outside the chip."""


def assemble_npu(section: BoardSection) -> Npu | None:
    """Return the accelerator a board file describes, None where it describes none.

    Parameters
    ----------
    section : BoardSection
        Validated, with every rule of `board_rules` kept.

    Returns
    -------
    Npu or None
        With every pool's clock as a ratio to the NPU's.
    """
    npu = section.npu
    if npu is None:
        return None
    return Npu(
        name=section.board.name, family=npu.family, clock=npu.clock,
        frequency_hz=frequency_of(section, npu.clock),
        units=tuple(UnitKind(
            kind=kind, roles=unit.roles, count=unit.count.value,
            macs_per_cycle=_table(unit.macs_per_cycle),
            ops_per_cycle=_value(unit.ops_per_cycle, 1.0),
            fill_cycles=_value(unit.fill_cycles, 0)) for kind, unit in npu.units.items()),
        engines=npu.engines.value, engine_buffer_bytes=npu.engine_buffer_bytes.value,
        engine_bytes_per_cycle=npu.engine_bytes_per_cycle.value,
        strided_read_bytes_per_cycle=_value(npu.strided_read_bytes_per_cycle, None),
        engine_outstanding=npu.engine_outstanding.value,
        weight_bytes_per_cycle=_value(npu.weight_bytes_per_cycle, 1.0),
        weight_ahead_bytes=_value(npu.weight_ahead_bytes, 0),
        interfaces=tuple(Interface(
            name=name, width_bytes=part.width_bytes.value,
            write_gap_cycles=_value(part.write_gap_cycles, 0.0))
            for name, part in npu.interfaces.items()),
        pools=tuple(_pool(section, npu, name, pool) for name, pool in npu.pools.items()),
        cache=None if npu.cache is None else NpuCache(
            size_bytes=npu.cache.size_bytes.value, line_bytes=npu.cache.line_bytes.value,
            ways=npu.cache.ways.value, enabled=npu.cache.enabled),
        start_cycles=npu.start_cycles.value, hand_over=_hand_over(npu), energy=_energy(npu),
        sums_directions=npu.sums_directions, epoch_controller=npu.epoch_controller,
        controller_engine_cycles=_value(npu.controller_engine_cycles, 0.0),
    )


def _pool(section: BoardSection, npu: NpuSection, name: str, pool: NpuPoolSection) -> Pool:
    memory = section.memories[pool.memory]
    clock = pool.clock or clock_of(section, memory)
    hz = frequency_of(section, clock)
    latency = 0.0
    if memory.latency is not None:
        own_hz = frequency_of(section, memory.latency.clock or clock_of(section, memory))
        latency = (memory.latency.cycles.value - 1) * hz / own_hz
    width = section.buses[memory.bus].width_bytes.value if memory.bus else 8
    return Pool(
        name=name, memory=pool.memory, size_bytes=_value(pool.size_bytes, memory.size_bytes.value),
        external=memory.role in EXTERNAL_ROLES, byte_width_bytes=pool.byte_width_bytes.value,
        frequency_ratio=pool.frequency_ratio.value, serialises=pool.serialises, clock=clock,
        clock_ratio=frequency_of(section, npu.clock) / hz,
        bytes_per_cycle=_value(pool.bytes_per_cycle, _value(memory.bytes_per_cycle, width)),
        read_latency_cycles=_value(pool.read_latency_cycles, latency),
        write_latency_cycles=_value(pool.write_latency_cycles, 0.0), shared=pool.shared,
        burst_max_beats=_value(pool.burst_max_beats, 8), cacheable=pool.cacheable,
    )


def _hand_over(npu: NpuSection) -> HandOver:
    part = npu.hand_over
    return HandOver(
        clock=part.clock, pre_cycles=part.pre_cycles.value, post_cycles=part.post_cycles.value,
        pre_engine_cycles=_value(part.pre_engine_cycles, 0.0),
        post_engine_cycles=_value(part.post_engine_cycles, 0.0),
        pre_unit_cycles=_table(part.pre_unit_cycles),
        post_unit_cycles=_table(part.post_unit_cycles),
        pre_further_unit_cycles=_table(part.pre_further_unit_cycles),
        software_cycles=_value(part.software_cycles, 0.0),
    )


def _energy(npu: NpuSection) -> NpuEnergy:
    part = npu.energy
    return NpuEnergy(
        mac_pj=_table(part.mac_pj), op_pj=_value(part.op_pj, None),
        active_pj_per_cycle=_value(part.active_pj_per_cycle, None),
        idle_pj_per_cycle=_value(part.idle_pj_per_cycle, None),
        byte_pj=tuple((name, pool.byte_pj.value) for name, pool in npu.pools.items()
                      if pool.byte_pj is not None and pool.byte_pj.value is not None),
    )


def _table(leaves: dict[str, Leaf]) -> tuple[tuple[str, Any], ...]:
    """Named numbers; those not known are left out."""
    return tuple((name, leaf.value) for name, leaf in leaves.items() if leaf.value is not None)


def _value(leaf: Leaf | None, default: Any) -> Any:
    return default if leaf is None else leaf.value
