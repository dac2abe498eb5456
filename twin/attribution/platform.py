"""Counters of a platform in one table: what a prediction models, and who else counts it there.

    DMA utilisation = cycles a DMA controller or an accelerator's ports move data / cycles
    NPU idle        = 1 - cycles an accelerator works / cycles of an inference

Both in cycles of their own clock, over the time of an inference.
"""

from __future__ import annotations

from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.counts import CAUSE_GROUPS
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen
from twin.deployment.transfers import busy_share
from twin.pricing.prediction import Prediction
from twin.pricing.utilisation import move_cycles
from twin.pricing.variables import Amounts

_COUNTERS = read_yaml_once(Path(__file__).with_name("platform.yaml"))

_EVENTS = {"loads": "load_issue", "stores": "store_issue", "branches": "branch_issue",
           "branch refill": "branch_refill", "code-cache misses": "icache_refill",
           "multi-cycle issue": "pipeline_stall"}
"""Events of the core that are counters of their own."""


@frozen
class PlatformCounter:
    """A counter of one inference.

    Parameters
    ----------
    value
        As the prediction models it; None is not modelled.
    silicon
        What counts it on the board; None: nothing does.
    emulated
        Which emulator of the board's core counts it.
    """

    name: str
    value: float | None
    unit: str
    silicon: str | None
    emulated: str | None


def list_counters(prediction: Prediction) -> tuple[PlatformCounter, ...]:
    """Return every counter of an inference that is modelled, emulated or counted by the board."""
    board, values = prediction.board, dict(_model(prediction))
    rows = (PlatformCounter(
        name=name, value=values.get(name), unit=row["unit"],
        silicon=next(filter(None, (_on_silicon(board, who) for who in row.get("silicon", ()))),
                     None),
        emulated=next((emulator for emulator, _ in board.virtual
                       if emulator in row.get("emulated", ())), None))
            for name, row in _COUNTERS.items())
    return tuple(row for row in rows if row.value is not None or row.silicon or row.emulated)


def _on_silicon(board: Board, who: str) -> str | None:
    """Return what counts it on a board, where the board has it."""
    counters, (kind, _, name) = board.counters, who.partition(":")
    if kind == "meter":
        return None if board.name == "host" else "a meter at the supply"
    if kind == "npu":
        return None if board.npu is None else f"{board.npu.family}'s counters"
    if kind == "perf":
        return f"perf {name}" if board.name == "host" else None
    if counters is None:
        return None
    return {"cycle_counter": (counters.cycle_counter or "").partition(",")[0] or None,
            "dwt": f"DWT {name}, 8 bits" if name in counters.wrapping_counters else None,
            "pmu": f"PMU {name}" if counters.pmu_counters > 1 else None,
            "monitor": f"monitor {name}" if name in counters.cache_monitors else None}[kind]


def _model(prediction: Prediction) -> Amounts:
    """Yield what a prediction models, by name; what it does not model is absent, never 0."""
    layers, core = prediction.layers, prediction.board.core.clock
    yield from (("cycles", prediction.cycles), ("time", prediction.time_us),
                ("MACs", float(prediction.macs)),
                ("bytes moved", float(sum(layer.bytes_moved for layer in layers))))
    if instructions := sum(layer.instructions for layer in layers):
        yield "instructions", float(instructions)
        yield from ((name, sum((line.occurred for layer in layers for line in layer.counts.lines
                                if line.event == event), 0.0)) for name, event in _EVENTS.items())
    yield "memory waits", sum(prediction.bill.cycles(prediction.clock, cause)
                              for cause in CAUSE_GROUPS["memory"])
    if accesses := sum(layer.accesses for layer in layers):
        yield "data-cache accesses", float(accesses)
        yield "data-cache misses", float(sum(layer.misses for layer in layers))
    if prediction.energy_uj is not None:
        yield "energy", prediction.energy_uj
    if (coverage := prediction.coverage) is not None:
        runs = [task.run for task in prediction.tasks if not task.run.task.on_host]
        active = sum(run.core_npu_cycles for run in runs)
        yield from (("NPU active", float(active)),
                    ("NPU idle", 1 - coverage.npu_us / prediction.time_us))
        if active:  # The ports' share of the time the accelerator works, as of the inference.
            share = sum(map(move_cycles, runs)) / active
            yield "DMA utilisation", min(1.0, share) * coverage.npu_us / prediction.time_us
        return
    if prediction.board.npu is not None:  # it stands while the core computes
        yield from (("NPU active", 0.0), ("NPU idle", 1.0))
    transfers = prediction.deployment.transfers
    yield "DMA utilisation", 0.0 if transfers is None else busy_share(
        transfers, prediction.bill.cycles(core))
