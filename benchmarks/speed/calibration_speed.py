"""Processor time of a calibration, of intervals: `python -m benchmarks.speed.calibration_speed`.

300 whole inferences and 1,500 layers: the counts behind published rows, at prices and errors drawn
anew.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.speed.row import median_cpu_s
from calibration.datasets import published_rows
from twin.attribution.observations import Observation, observe_rows
from twin.deployment.deploy import deploy
from twin.learning.overlays import learn, stated_sds
from twin.pricing.calibrated import predict_calibrated

WHOLE, LAYERS = 300, 1500
LIMITS_S = {"calibration": 20.0, "prediction with intervals": 0.1}
"""What each figure should stay under; processor time, so that a busy machine says the same."""


def draw_observations(rows: Sequence[Observation]) -> list[Observation]:
    """Return as many whole inferences and layers as are asked for, measured at drawn prices."""
    rng = np.random.default_rng(1)
    truths = {cell: rng.normal(0, stated_sds()[0]) for cell in {row.cell for row in rows}}
    layers = [(row, layer) for row in rows for layer in range(len(row.design.cycles))
              if row.design.cycles[layer].sum()]
    drawn = [rows[place % len(rows)] for place in range(WHOLE)]
    for row, layer in [layers[one] for one in rng.permutation(len(layers))[:LAYERS]]:
        drawn.append(dataclasses.replace(
            row, whole=False, energy_pj=None, network=f"{row.network} layer {layer}",
            design=row.design.select(slice(layer, layer + 1))))
    return [dataclasses.replace(
        row, label=f"{place} {row.label}", cycles=float(
            (row.design.cycles @ np.exp(truths[row.cell])).sum() * np.exp(rng.normal(0, 0.03))))
        for place, row in enumerate(drawn)]


def main() -> int:
    """Print every figure; 1 when one is over its limit."""
    figures = {}
    rows = observe_rows(published_rows())
    drawn = draw_observations(rows)
    start = time.process_time()
    learning = learn(drawn)
    figures["calibration"] = time.process_time() - start
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0")
    assert predict_calibrated(deployment).certainty is not None
    figures["prediction with intervals"] = median_cpu_s(lambda: predict_calibrated(deployment), 9)
    whole = sum(one.whole for one in drawn)
    print(f"{whole} inferences, {len(drawn) - whole} layers; {learning.time.steps} last steps")
    for name, seconds in figures.items():
        print(f"{name:28} {seconds:8.3f} s    limit {LIMITS_S[name]:g} s")
    return int(any(seconds > LIMITS_S[name] for name, seconds in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
