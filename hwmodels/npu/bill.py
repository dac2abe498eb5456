"""What an epoch waited for, in whole cycles, and the events a board prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hwmodels.board.npu import Npu
from hwmodels.counts import CountLine, Counts
from hwmodels.npu.compiler import estimate_unit_cycles, multiplies, name_width
from hwmodels.npu.epoch import Epoch, Exposed, UnitWork
from hwmodels.npu.streams import Stream
from hwmodels.npu.timing import TICKS, Ints

EVENT_OF_CAUSE = {
    "mac": "npu_mac_cycle", "mac_waste": "npu_mac_waste_cycle", "alu": "npu_alu_cycle",
    "sram_wait": "npu_ram_wait", "external_memory": "npu_external_wait",
    "bus_contention": "npu_bus_wait", "dma_wait": "npu_stream_wait",
    "weight_decode": "npu_decode_cycle", "launch": "npu_start",
}
"""Event that carries the exposed cycles of each cause."""

START = "start"
"""Resource of the cycles before the first request and after the last beat."""


def round_exposed(blame: Ints, epoch: Epoch, streams: Sequence[Stream], npu: Npu, start: int,
                  core: int) -> tuple[Exposed, ...]:
    """Return the resources an epoch waited for in whole cycles, by largest remainder.

    Parameters
    ----------
    blame : ndarray of int64, (nodes, 5)
        Ticks by node; columns as `hwmodels.kernels.npu_streams` names them.
    epoch, streams, npu
        What ran.
    start : int
        NPU cycles before the first request and after the last beat.
    core : int
        NPU cycles in all; what the lines sum to.

    Returns
    -------
    tuple of Exposed
        Resources with at least one cycle.

    Notes
    -----
    Memory on the chip is `sram_wait`, outside it `external_memory`; an interface that is waited
    for while another stream holds it is `bus_contention`; its own pace and the latency of memory
    on the chip are `dma_wait`. A convolution's cycles are `mac` for the share of its lanes that
    compute and `mac_waste` for the rest and for filling.
    """
    ticks: dict[tuple[str, str], int] = {(START, "launch"): start * TICKS}
    rows = blame.tolist()
    for row, stream in zip(rows, streams, strict=False):
        for amount, key in zip(row, _stream_keys(stream), strict=True):
            if amount:
                ticks[key] = ticks.get(key, 0) + amount
    for row, work in zip(rows[len(streams):], epoch.units, strict=True):
        useful = int(row[0] * _useful_share(work, npu)) if row[0] else 0
        cause = _name_cause(work, npu)
        idle = "mac_waste" if cause == "mac" else cause
        for amount, key in ((useful, (work.kind, cause)),
                            (row[0] - useful + row[4], (work.kind, idle))):
            if amount:
                ticks[key] = ticks.get(key, 0) + amount
    whole = {key: amount // TICKS for key, amount in ticks.items()}
    largest = sorted(ticks, key=lambda key: -(ticks[key] % TICKS))
    for key in largest[:core - sum(whole.values())]:
        whole[key] += 1
    return tuple(Exposed(resource=resource, cause=cause, npu_cycles=cycles)
                 for (resource, cause), cycles in whole.items() if cycles)


def _stream_keys(stream: Stream) -> tuple[tuple[str, str], ...]:
    """Resource and cause of each column of a stream's blame."""
    engine, outside = stream.engine, stream.pool.external
    return ((f"latency:{engine.pool}", "dma_wait"),
            (engine.pool, "external_memory" if outside else "sram_wait"),
            (engine.interface, "dma_wait"), (engine.interface, "bus_contention"),
            (f"latency:{engine.pool}", "external_memory" if outside else "dma_wait"))


def _name_cause(work: UnitWork, npu: Npu) -> str:
    if multiplies(work, npu):
        return "mac"
    return "weight_decode" if "weight_decode" in npu.roles(work.kind) else "alu"


def _useful_share(work: UnitWork, npu: Npu) -> float:
    """Share of a convolution's lanes that compute; 1 where it is not known."""
    cycles = estimate_unit_cycles(work, npu)
    if not multiplies(work, npu) or not work.macs or not cycles:
        return 1.0
    rate = dict(npu.unit(work.kind).macs_per_cycle).get(name_width(work), 0.0)
    return min(1.0, work.macs / (rate * work.count * cycles)) if rate else 1.0


def _work_of(epoch: Epoch, streams: Sequence[Stream]) -> Iterator[tuple[str, str, str, float]]:
    """Return event, place, operand and amount of what takes energy and no time of its own."""
    for work in epoch.units:
        if work.macs:
            yield "npu_mac", name_width(work), "", work.macs
        if work.ops:
            yield "npu_op", "", "", work.ops
    for stream in streams:
        if stream.pool_bytes:
            yield ("npu_external_byte" if stream.pool.external else "npu_ram_byte",
                   stream.engine.pool, stream.engine.operand, stream.pool_bytes)


def count_epoch(epoch: Epoch, streams: Sequence[Stream], exposed: Sequence[Exposed], core: int,
                host: tuple[int, int], npu: Npu) -> Counts:
    """Return the events of an epoch.

    Parameters
    ----------
    epoch, streams, npu
        What ran.
    exposed : sequence of Exposed
        What was waited for: the events of time.
    core : int
        NPU cycles in all.
    host : tuple of int
        Host cycles before and after.

    Returns
    -------
    Counts
        Cycles by what was exposed; MACs, operations, bytes and active cycles for energy, which
        take no time of their own.
    """
    sums: dict[tuple[str, str, str], tuple[float, float]] = {}

    def add(event: str, place: str, operand: str, occurred: float, shown: float) -> None:
        old = sums.get((event, place, operand), (0.0, 0.0))
        sums[event, place, operand] = (old[0] + occurred, old[1] + shown)

    for item in exposed:
        add(EVENT_OF_CAUSE[item.cause], item.resource, "", item.npu_cycles, item.npu_cycles)
    for event, place, operand, occurred in _work_of(epoch, streams):
        add(event, place, operand, occurred, 0.0)
    if core:
        add("npu_active", "", "", core, 0.0)
    for place, cycles in zip(("pre", "post"), host, strict=True):
        if cycles:
            add("epoch_host_cycle", place, "", cycles, cycles)
    return Counts(tuple(
        CountLine(event=event, place=place, operand=operand, occurred=occurred, exposed=shown)
        for (event, place, operand), (occurred, shown) in sums.items()))
