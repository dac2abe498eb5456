"""What the events of an NPU cost: cycles of its own clock, and energy at the rail.

    time     an exposed NPU cycle is an NPU cycle, whatever it was waited for
    energy   MACs x pJ by width + operations x pJ + bytes x pJ by pool
             + NPU cycles x (active or idle) pJ

The cycles of a wait carry no energy of their own: the clocks they keep running are `npu_active`.
"""

from __future__ import annotations

from collections.abc import Iterator

from hwmodels.board.npu import Npu
from hwmodels.counts import Price

CYCLE_EVENTS = ("npu_mac_cycle", "npu_mac_waste_cycle", "npu_alu_cycle", "npu_ram_wait",
                "npu_flash_wait", "npu_external_wait", "npu_bus_wait", "npu_stream_wait",
                "npu_decode_cycle", "npu_start")
"""Counted in NPU cycles."""


def derive_npu_prices(npu: Npu, core_v: float | None = None) -> Iterator[Price]:
    """Return the price of every event of an NPU.

    Parameters
    ----------
    core_v
        Core voltage; energies stated at one go with its square.

    Yields
    ------
    Price
        Of each event, everywhere or by pool and operand widths; pJ None where not known.
    """
    energy = npu.energy
    reference_v = energy.reference_core_v
    scale = 1.0 if reference_v is None or core_v is None else (core_v / reference_v) ** 2

    def price(event: str, place: str, cycles: float, pj: float | None, source: str) -> Price:
        return Price(event=event, place=place, cycles=cycles, clock=npu.clock,
                     pj=None if pj is None else pj * scale,
                     kind="assumed" if pj else "derived", source=source)

    for event in CYCLE_EVENTS:
        yield price(event, "", 1.0, 0.0, "an NPU cycle; its energy is that of npu_active")
    for width, pj in energy.mac_pj:
        yield price("npu_mac", width, 0.0, pj, f"npu.energy.mac_pj.{width} of the board file")
    yield price("npu_op", "", 0.0, energy.op_pj, "npu.energy.op_pj of the board file")
    byte_pj = dict(energy.byte_pj)
    for pool in npu.pools:
        yield price(pool.byte_event, pool.name, 0.0, byte_pj.get(pool.name),
                    f"npu.pools.{pool.name}.byte_pj of the board file")
    yield price("npu_active", "", 0.0, energy.active_pj_per_cycle,
                "npu.energy.active_pj_per_cycle of the board file")
    yield price("npu_idle", "", 0.0, energy.idle_pj_per_cycle,
                "npu.energy.idle_pj_per_cycle of the board file")
