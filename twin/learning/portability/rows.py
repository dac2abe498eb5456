"""Micro-benchmarks as rows over the prices of a prediction, beside what a board file states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from calibration.errors import MeasurementError
from calibration.measurement.measurement import Measurement
from calibration.microbench.machine import describe_machine
from calibration.microbench.probe_rows import ProbeRow
from calibration.virtual_board.costs import state_memories
from hwmodels.board.facts import Board
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule
from hwmodels.quantities import sum_by_key
from twin.pricing.assurance import price_cycles
from twin.pricing.prediction import Prediction
from twin.pricing.price_names import TIME_PRICES, waits_on_memory
from twin.pricing.roofs import peak_macs_per_cycle


def waits_for_code(board: Board) -> bool:
    """Whether loops wait for their own instructions: code in a memory that waits, and no cache."""
    code = state_memories(board)[dict(board.placement)["code"]]
    return code.fetch_cycles > 0 and not code.fetch_cached


def straight_cycles(board: Board) -> float:
    """Return cycles per byte of two-byte instructions that do nothing, were they always there."""
    timing = schedule("nop; nop; nop; nop", load_core(board.core.model))
    return timing.steady.cycles / 8


COMPUTE = ("conv", "conv_wide", "pointwise", "depthwise", "fully_connected")
"""Prices of work that is mostly multiply-accumulates."""

PATTERN_SD = 0.15
"""How unlike dependent loads kernels wait for a memory; assumed."""

MAC_SD = 0.1
"""How unlike a run of multiply-accumulates the inner loops of kernels are; assumed."""

CODE_EVENTS = ("icache_refill", "fetch_wait")
"""Waits that are the code's."""

UNKNOWN_REACH = 0.7
"""Of one memory in all waiting, where no network says; assumed."""

LEAST_WAIT = 0.01
"""Cycles that are none."""

Waits = Mapping[str, float]
"""Share of all waiting by micro-benchmark: "latency:flash", "fetch"."""


def share_waits(prediction: Prediction) -> dict[str, float]:
    """Return which micro-benchmark sees which share of what a prediction waits for memories."""
    found = sum_by_key(
        ("fetch" if line.event in CODE_EVENTS else f"latency:{line.place}", line.cycles)
        for layer in prediction.layers for line in layer.bill.lines
        if line.place and line.cycles and waits_on_memory(line.event))
    total = sum(found.values())
    return {name: cycles / total for name, cycles in found.items()} if total else {}


def expected_rows(names: Iterable[str], prediction: Prediction) -> dict[str, ProbeRow]:
    """Return what each micro-benchmark would tell of a prediction's prices.

    Parameters
    ----------
    names
        Micro-benchmarks; those that tell of no price are omitted.
    prediction
        Whose work and waiting weigh them.
    """
    waits = share_waits(prediction)
    work = price_cycles(prediction).sum(axis=0)
    graph = prediction.graph
    dtypes = {graph.input(layer).dtype for layer in graph.layers if layer.inputs}
    if waits_for_code(prediction.board):
        dtypes = set()  # a run of multiply-accumulates would wait for its own instructions
    found = {}
    for name in names:
        row = _make_row(name, waits, work)
        if row is not None and not (name.startswith("mac:") and name[4:] not in dtypes):
            found[name] = row
    return found


def _make_row(name: str, waits: Waits, work: np.ndarray,
              log_ratio: float = math.nan) -> ProbeRow | None:
    shares = np.zeros(len(TIME_PRICES))
    if name == "fetch" or name.startswith("latency:"):
        shares[TIME_PRICES.index("memory")] = 1.0
        reach = waits.get(name, 0.0)
        return ProbeRow(name=name, shares=shares, reach=reach, noise_sd=PATTERN_SD, whole=True,
                        log_ratio=log_ratio) if reach > 0 else None
    if name.startswith("mac:"):
        places = [TIME_PRICES.index(price) for price in COMPUTE]
        total = work[places].sum()
        shares[places] = work[places] / total if total else 1 / len(places)
        return ProbeRow(name=name, shares=shares, reach=1.0, noise_sd=MAC_SD, log_ratio=log_ratio)
    return None


def measured_rows(measurement: Measurement, board: Board,
                  prediction: Prediction | None = None,
                  where: str = "measurement") -> tuple[tuple[ProbeRow, ...], tuple[str, ...]]:
    """Return rows of measured micro-benchmarks, and what could not become one.

    Parameters
    ----------
    board
        As stated: rows are measured over stated.
    prediction
        Of the network they were made for: weighs memories and operator families.

    Raises
    ------
    MeasurementError
        When it is of another board, or does not count cycles.
    """
    if measurement.header.board != board.name:
        raise MeasurementError(f"{where}: measured on {measurement.header.board}, not on "
                               f"{board.name}")
    machine = describe_machine(measurement, where)
    if machine.counter != "cpu_cycles":
        raise MeasurementError(f"{where}: counts {machine.counter}; accepted as evidence: "
                               "cpu_cycles")
    stated = state_memories(board)
    ratios: dict[str, tuple[float, float]] = {}
    for memory in machine.memories:
        if memory.name in stated:
            ratios[f"latency:{memory.name}"] = (memory.miss_cost, stated[memory.name].miss_cycles)
    for code in machine.code:
        if code.name in stated:
            wait = code.miss_cost if len(code.levels) > 1 else max(
                code.levels[0].cost - straight_cycles(board), 0.0)
            ratios["fetch"] = (wait, stated[code.name].fetch_cycles)
    for dtype, rate in machine.macs.items():
        ratios[f"mac:{dtype}"] = (1 / rate, 1 / (peak_macs_per_cycle(board, dtype) or math.inf))
    waits: Waits = (share_waits(prediction) if prediction is not None else
                    dict.fromkeys(ratios, UNKNOWN_REACH))
    work = (price_cycles(prediction).sum(axis=0) if prediction is not None else
            np.zeros(len(TIME_PRICES)))
    rows, remarks = [], []
    for name, (found, quoted) in ratios.items():
        if name.startswith("mac:") and waits_for_code(board):
            remarks.append(f"{name}: the core waits for its instructions from "
                           f"{dict(board.placement)['code']}, so nothing is learnt of computing")
            continue
        if found < LEAST_WAIT or quoted <= 0:
            if found >= LEAST_WAIT or quoted > 0:
                remarks.append(f"{name}: {found:.3g} cycles measured, {quoted:.3g} stated; a price "
                               "is a factor, so nothing is learnt from it: correct the board file")
            continue
        row = _make_row(name, waits, work, math.log(found / quoted))
        if row is not None and name not in ("mac:int16", "mac:float32"):
            rows.append(row)
    return tuple(rows), tuple(remarks)
