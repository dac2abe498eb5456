"""Logs of another network than was named, or of a slow operator: what ran is lowered, prices drawn.

    python -m benchmarks.diagnosis.logs SEEDS

A log holds the time of each layer. What ran is built by the zoo at its own width and resolution and
lowered for the board by one of two releases of the library; each cause, kind of kernel and layer
then costs what the seed draws. No silicon is in it.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.diagnosis.score import Outcome, describe_outcomes, note_outcome
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from hwmodels.counts import CAUSES
from hwmodels.errors import TwinError
from hwmodels.isa import load_isa
from twin.attribution.diagnosis.diagnosis import diagnose
from twin.attribution.diagnosis.fault_effects import Forecasts
from twin.deployment.deploy import deploy
from twin.network.zoo.networks import ds_cnn, mobilenet_v1
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction

BOARDS = ("nucleo_l4r5zi", "nucleo_f746zg", "nucleo_u575zi_q", "nucleo_h7a3zi_q")
NETWORKS = {"kws": lambda width, side: ds_cnn("kws", round(64 * width)),
            "vww": lambda width, side: mobilenet_v1("vww", 0.25 * width, side or 96, 2)}
LIBRARIES = ("tflm-cmsis-nn@2026", "tflm-cmsis-nn@2024")
"""What ran is one of these; named is the first."""

WIDTHS = (0.5, 0.75, 1.5, 2.0, 3.0)
SIDES = {"kws": (), "vww": (64, 128)}
"""Of other images, in pixels."""

OPERATORS, SLOWER = ("depthwise_conv_2d", "conv_2d"), (2.0, 3.0)
"""Each alone so many times as slow."""

SPREAD = {"cause": 0.15, "kernel": 0.1, "layer": 0.04, "all": 0.1}
"""Standard deviations of logarithms."""


@cache
def run(network: str, board: str, width: float, library: str, *changes: str,
        side: int = 0) -> Prediction:
    """Predict what ran; changes are paths of the board's file, each set to "off" or its value."""
    ran = deploy(NETWORKS[network](width, side), board, runtime=library)
    pairs = (change.split("=") for change in changes)
    return predict(ran.replace({path: value != "off" and value for path, value in pairs}))


def measure(made: Prediction, named: Prediction, random: np.random.Generator,
            slower: tuple[str, float] = ("", 1.0)) -> Measurement:
    """Return the times of what was made, at drawn prices, under the name of another.

    The operator that is slower takes so many times as long.
    """
    own = {layer.op: random.normal(0, SPREAD["kernel"]) for layer in named.layers}
    prices = np.exp(random.normal(0, SPREAD["cause"], len(CAUSES)))
    times = [float(prices @ [layer.bill.cycles(layer.clock, cause) for cause in CAUSES]) * np.exp(
        own[layer.op] + random.normal(0, SPREAD["layer"])) / made.deployment.board.core_clock
        .frequency_hz * 1e6 * (slower[1] if layer.op == slower[0] else 1.0)
             for layer in made.layers]
    times = np.array(times) * np.exp(random.normal(0.05, SPREAD["all"]))
    graph = named.deployment.graph
    return Measurement(
        header=Header(kind="measured", model=graph.name, model_sha256="", temperature="warm",
                      architecture_id=graph.architecture_id, board=named.deployment.board.name,
                      runtime=LIBRARIES[0], clocks_hz=(), source="drawn by seed"),
        samples=tuple(Sample(run=0, layer=layer, counter="latency", value=float(time), unit="us",
                             clock=None) for layer, time in enumerate(times)))


class Plant(NamedTuple):
    """What is wrong: its kind, and another width or image, paths of the board, or an operator."""

    kind: str
    width: float = 1.0
    changes: tuple[str, ...] = ()
    side: int = 0
    slower: tuple[str, float] = ("", 1.0)

    @property
    def name(self) -> str:
        """Of this one, for tables."""
        op, times = self.slower
        return (f"{self.kind}{op and f' {op}'}{f' of {self.side} pixels' if self.side else ''}"
                f" {times if op else self.width:g}")


def judge(network: str, board: str, seeds: list[int]) -> list[Outcome]:
    """Plant each fault on the hidden boards of the seeds, and diagnose it."""
    named, forecasts, found = run(network, board, 1.0, LIBRARIES[0]), Forecasts(), []
    core = named.deployment.board.core
    caches = [f"caches.{name}.enabled=off" for name in {core.dcache, core.icache} if name]
    plants = [Plant("as declared"), *(Plant("another network", width) for width in WIDTHS),
              Plant("cache off", changes=tuple(caches)), Plant("reference kernels"),
              *(Plant("SIMD", changes=(f"cores.main.isa={isa}",))
                for isa in load_isa(core.isa).without.values()),
              *(Plant("another network", side=side) for side in SIDES[network]),
              *(Plant("one operator", slower=one) for one in product(OPERATORS, SLOWER))]
    for seed in seeds:
        random = np.random.default_rng([seed, *board.encode(), *network.encode()])
        for plant in plants:
            library = str(random.choice(LIBRARIES))
            try:
                made = run(network, board, plant.width, library.replace(
                    "cmsis-nn", "reference" if plant.kind == "reference kernels" else "cmsis-nn"),
                    *plant.changes, side=plant.side)
            except TwinError:  # it does not fit
                continue
            found.append(note_outcome(
                diagnose(named.deployment, measure(made, named, random, plant.slower),
                         calibration="none", forecasts=forecasts),
                seed=seed, bench=f"{network} {board}", plant=plant.name, group="core",
                planted=plant.kind, effective=plant.kind, mode="times"))
    return found


if __name__ == "__main__":
    print(describe_outcomes([outcome for network in NETWORKS for board in BOARDS
                             for outcome in judge(network, board, [*map(int, sys.argv[1:])])]))
