"""What explains the counters of an accelerator: causes, weighed by every figure of its log.

Its PMU counts the accelerator alone, in its own cycles and beats. With x the logarithm of a
measured figure over the predicted one, and d what a cause i does to it,

    P(i | x) ~ prior_i prod over figures of N(x; d_i, s^2 + s_i^2)

where s is the deviation of the prediction (of beats `BEATS_SD`) and s_i of the effect. A share
`RARE` lies further off. What no counter shows (a clock, loading, debug output) is not weighed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibration.measurement.measurement import Measurement
from hwmodels.quantities import sum_by_key
from twin.attribution.diagnosis.builds import list_all
from twin.attribution.diagnosis.chances import RARE, WIDER
from twin.attribution.diagnosis.faults import Fault
from twin.attribution.diagnosis.outlook import ANYTHING_SD, CAUSES, DATA, TAILED_90
from twin.attribution.diagnosis.why import Why
from twin.attribution.diagnosis.why_words import Row
from twin.deployment.deployment import Deployment
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.prediction import Prediction

KINDS = {"memory mode": "memory_mode", "NPU size": "npu_size", "slow NPU memory": "npu_memory",
         "fallback": "fallback"}
"""Kinds of faults an accelerator's counters show, and their cause."""

BEATS_SD, EFFECT_SD = 0.1, 0.1
"""Of logarithms of beats and of effects: beats of networks are 3 % off in the median where another
release of the compiler laid them out, 10 % in 90 % (`benchmarks.accuracy.ethos_u`); assumed."""

HIDDEN = ("counted", "active time of the accelerator alone, and so are the times below: layers on "
          "the CPU, what else the host does and a wrong clock show in the time of an inference "
          "(`twin why MODEL -b BOARD --measured TIME`)")


def weigh_counters(deployment: Deployment, measurement: Measurement,
                   calibration: Any) -> Why | None:
    """Weigh causes by the counters a log and the compiler have in common; None where none is.

    Parameters
    ----------
    deployment
        As asked for, on a board with an accelerator.
    measurement
        Medians over its runs are taken.
    calibration
        As for `predict_calibrated`.
    """
    base = predict_calibrated(deployment, calibration=calibration)
    own = _sum_counters(base)
    common = [name for name in sorted(own) if measurement.count(name)]
    names = [*[name for name in common if name.startswith("npu_")][:1],  # active before its total
             *(name for name in common if not name.startswith("npu_"))]
    if not names or not names[0].startswith("npu_"):
        return None
    seen = {name: measurement.percentile(name, 50) for name in names}
    offs = np.log([max(seen[name], 1.0) / own[name] for name in names])
    certainty, faults = base.certainty, [
        fault for fault in list_all(base, 0.0, 0.0, libraries=False)
        if fault.kind in KINDS and fault.deployment is not None]
    changed = [{} if fault.deployment is None or not fault.deployment.accelerated else
               _sum_counters(predict_calibrated(fault.deployment, calibration=calibration))
               for fault in faults]
    effects = np.log([[max(each.get(name, 0.0), 1.0) / own[name] for name in names]
                      for each in (own, *changed, own)])
    sd = np.full(len(names), BEATS_SD)
    sd[0] = BEATS_SD if certainty is None else math.log(
        certainty.time_us.high / certainty.time_us.low) / (2 * TAILED_90)
    spread = np.array([0.0, *(EFFECT_SD for _ in faults), ANYTHING_SD])
    chances = _weigh(offs - effects, sd, spread, _find_priors(faults))
    hertz = deployment.board.clock(deployment.board.accelerator.clock).frequency_hz
    expected, wide = own[names[0]] / hertz * 1e6, math.exp(TAILED_90 * float(sd[0]))
    return Why(
        model=deployment.graph.name, board=deployment.board.name,
        runtime=deployment.runtime.identity, measured_us=seen[names[0]] / hertz * 1e6,
        expected_us=expected, low_us=expected / wide, high_us=expected * wide,
        rows=_list_rows(faults, effects[:, 0], chances, expected),
        releases=((deployment.runtime.identity, expected, float(chances[0])),),
        as_expected=float(chances[0]), pairs=(), asked="",
        indistinct=(), also=(HIDDEN,), remarks=tuple(
            f"{name}: measured {seen[name]:,.0f}, predicted {own[name]:,.0f}, "
            f"{seen[name] / own[name]:.2f} x" for name in names))


def _sum_counters(prediction: Prediction) -> dict[str, float]:
    """Return the counters of an inference; of the PMU's total only active cycles are predicted."""
    runs = prediction.compiler.count_runs([task.run for task in prediction.tasks])
    found = {name: value for name, value in sum_by_key(
        pair for counters in runs for pair in counters.items()).items()
             if value > 0 and (name == "npu_active" or name.endswith(("_received", "_written")))}
    return found | ({"npu_cycles": found["npu_active"]} if "npu_active" in found else {})


def _find_priors(faults: list[Fault]) -> np.ndarray:
    """Return the priors of what is expected, each fault and anything else."""
    kinds = [fault.kind for fault in faults]
    weights = [CAUSES[KINDS[kind]]["prior"] / kinds.count(kind) for kind in kinds]
    rest, expected = [*weights, CAUSES["other"]["prior"]], DATA["expected"]["prior"]
    return np.array([expected, *(one / math.fsum(rest) * (1 - expected) for one in rest)])


def _weigh(rest: np.ndarray, sd: np.ndarray, spread: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Return the probability of each cause; effects of one are off by one factor in all figures."""
    logs = []
    for share, wider in ((1 - RARE, 1.0), (RARE, WIDER)):
        variance = (wider * sd) ** 2 + spread[:, None] ** 2
        logs.append(math.log(share) - 0.5 * (rest**2 / variance + np.log(variance)).sum(axis=1))
    whole = np.log(priors) + np.logaddexp(*logs)
    weights = np.exp(whole - whole.max())
    found: np.ndarray = weights / weights.sum()
    return found


def _list_rows(faults: list[Fault], effects: np.ndarray, chances: np.ndarray,
               expected_us: float) -> tuple[Row, ...]:
    """Return causes in their likeliest size, most probable first."""
    places: Mapping[str, list[int]] = {
        cause: [place for place, fault in enumerate(faults, 1) if KINDS[fault.kind] == cause]
        for cause in KINDS.values()}
    rows = []
    for cause, own in places.items():
        if own:
            best = max(own, key=lambda place: float(chances[place]))
            chance = float(chances[own].sum())
            rows.append(Row(
                cause=cause, says=CAUSES[cause]["says"], detail=faults[best - 1].name,
                probability=chance, alone=chance, question=CAUSES[cause]["question"],
                explains_us=expected_us * math.expm1(float(effects[best])),
                change=CAUSES[cause]["change"][""]))
    rows.append(Row(cause="other", says=CAUSES["other"]["says"], detail="", explains_us=0.0,
                    probability=float(chances[-1]), alone=float(chances[-1]),
                    question=CAUSES["other"]["question"], change=""))
    return tuple(sorted(rows, key=lambda row: -row.probability))
