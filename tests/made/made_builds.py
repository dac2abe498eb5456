"""Slow builds planted by another library, other tables and public figures, and what `why` says.

    python tests/made/made_builds.py [SEED ...]
    python tests/made/made_builds.py observer [SEED ...]

The truth is another library or release than the one the prediction uses, on silicon that is off by
13 % (standard deviation), with 3 % of noise. What a plant costs is predicted for that library (its
reference kernels, float kernels, caches, clocks, memories), or drawn from figures of public threads
`causes.yaml` does not use. Nothing here reads a prior, a range or a likelihood of `why`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

import twin
from calibration.datasets.published import published_rows
from hwmodels.errors import TwinError
from twin.api.commands.why import observe_clock
from twin.attribution.diagnosis.outlook import Outlook, foresee
from twin.attribution.diagnosis.why import EXPECTED, Why, explain
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.errors import UsageError

CASES = (
    # board, network, what the asker says runs, what may run
    ("nucleo_l4r5zi", "kws", "tflm-cmsis-nn@2026", "arm"),
    ("stm32h747i_disco", "ic", "tflm-cmsis-nn@2026", "arm"),
    ("rpi_pico2", "ic", "tflm-cmsis-nn@2026", "arm"),
    ("esp32s3_devkitc", "vww", "tflm-esp-nn@2026", "esp"),
    ("stm32n6570_dk", "vww", "neural-art@3.0.0", "npu"))
LIBRARIES = {
    "arm": ("tflm-cmsis-nn@2023", "cmsis-nn@6.0", "microtvm-cmsis-nn@2022", "tflm-cmsis-nn@2.3.1"),
    "esp": ("esp-nn@1.2.3",), "npu": ("neural-art@2.0.0",)}

CAUSES = ("optimisation", "simd", "reference", "assertions", "memcpy", "clock", "cache",
          "placement", "fallback", "float", "cold", "loading", "debug", "other")
PAIRS = (
    ("optimisation", "assertions"), ("optimisation", "debug"), ("optimisation", "clock"),
    ("optimisation", "cache"), ("optimisation", "reference"), ("reference", "assertions"),
    ("reference", "clock"), ("reference", "loading"), ("simd", "clock"), ("simd", "loading"),
    ("simd", "cache"), ("memcpy", "clock"), ("clock", "cache"), ("clock", "debug"),
    ("cache", "placement"), ("float", "clock"), ("float", "debug"), ("fallback", "debug"),
    ("fallback", "clock"), ("loading", "debug"))

HEALTHY = 10
"""Healthy numbers of each board."""

LEAST = 1.15
"""A plant that makes less than this is no fault to find."""

SILICON_SD, NOISE_SD = 0.13, 0.03
"""The first is 9 % at the median, what held-out boards of the fit are off by (docs/accuracy.md)."""

FACTORS: dict[str, tuple[float, float]] = {
    # tensorflow/tflite-micro#3258: more than 4 without -O2; maxbbraun/llama4micro#8: 1.46 by -Os;
    # rust-lang/rust#162519: 1.05 to 3.5 by opt-level s on a Cortex-M55
    "optimisation": (1.4, 12.0),
    # tensorflow/tensorflow#44863: nearly 2
    "assertions": (1.15, 2.2),
    # ARM-software/CMSIS_5#761: 5, #1039: 8.9, #1495: 2 at least, Recognition2/tfmicro#5: 1.2
    "memcpy": (1.2, 8.9)}
"""Least and most, drawn evenly as logarithms."""

LOADING = (0.3, 6.0)
"""Inferences that loading takes besides: MAX78000_SDK#74 published 1.9 and 2.5 ms beside 14.0 and
12.5 ms; a keyword's features take a third of a small network upward."""

CHARACTERS = (25, 45)
"""Of a line, as MicroProfiler writes one for each layer; a character takes 87 us."""


SECOND = {"kws": "ad", "ic": "kws", "vww": "kws"}
"""Another network somebody runs in the same build."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """Numbers, what is the matter (no cause is healthy), and what somebody published.

    The second network runs in the same build; `hertz` is the clock its core has.
    """

    board: str
    causes: tuple[str, ...]
    time_us: float
    second_us: float | None
    hertz: float
    published_us: float
    factor: float


@dataclass(kw_only=True)
class Slowness:
    """What causes do to a build: drawn once, for each network of it."""

    changes: dict[str, object] = field(default_factory=dict)
    factor: float = 1.0
    shares: float = 0.0
    lines: tuple[float, float] = (0.0, 0.0)
    temperature: str = "warm"
    network: str = ""
    board: str = ""


def plant_case(board: str, network: str, family: str, seed: int) -> Iterator[Plant]:
    """Yield every plant of a board that changes something, and healthy numbers."""
    own = [seed, len(board), len(network), ord(board[-1])]
    random, others, besides = (np.random.default_rng(one) for one in (own, [*own, 1], [*own, 2]))
    for causes in (*((),) * HEALTHY, *((one,) for one in CAUSES), *PAIRS):
        runtime = str(random.choice(LIBRARIES[family]))
        truth = deploy(network, board, runtime=runtime)
        healthy = twin.predict(truth, calibration="auto").time_us
        drawn = _draw(truth, causes, random)
        slow = None if drawn is None else _slow_down(truth, drawn, len(causes))
        silicon, noise = random.lognormal(0, SILICON_SD), random.lognormal(0, NOISE_SD)
        if slow is None or (causes and slow[0] <= LEAST * healthy):
            continue
        assert drawn is not None
        if "loading" in causes:  # What is before one network is not what is before another.
            drawn.shares = math.exp(besides.uniform(*map(math.log, LOADING)))
        second = _slow_down(deploy(SECOND[network], board, runtime=runtime),
                            replace(drawn, network=""), 0)
        yield Plant(board=board, causes=causes, time_us=slow[0] * silicon * noise,
                    second_us=second and second[0] * silicon * besides.lognormal(0, NOISE_SD),
                    hertz=slow[1] * besides.lognormal(0, 0.003), factor=slow[0] / healthy,
                    published_us=healthy * silicon * math.exp(others.choice(list_published())))


@lru_cache
def list_published() -> tuple[float, ...]:
    """Return how far results of one board, network and named software lie apart, as logarithms.

    Rows of MLPerf Tiny that are no copies of each other, of int8 and boards there is a file of,
    either way round.
    """
    groups: dict[tuple[object, ...], set[float]] = {}
    for row in published_rows():
        if row.dataset == "mlperf_tiny" and row.board and row.runtime and row.precision == "int8":
            key = row.board, row.model, row.software.partition("|")[0], row.clock_hz
            groups.setdefault(key, set()).add(round(row.latency_ms, 3))
    return tuple(math.log(one / two) for times in groups.values()
                 for one, two in itertools.permutations(sorted(times), 2))


def _draw(truth: Deployment, causes: tuple[str, ...],
          random: np.random.Generator) -> Slowness | None:
    """Return what causes do to a build; None where one of them cannot be."""
    found = Slowness()
    for cause in causes:
        if cause in FACTORS:
            if truth.accelerated or (
                    cause == "memcpy" and "cmsis" not in truth.runtime.identity):
                return None
            found.factor *= math.exp(random.uniform(*map(math.log, FACTORS[cause])))
        elif cause == "loading":
            found.shares += math.exp(random.uniform(*map(math.log, LOADING)))
        elif cause == "debug":
            layers = len(truth.graph.layers)
            lines = random.choice([1, layers, 2 * layers])
            width = float(random.uniform(*CHARACTERS)) * 86.8
            found.lines = (width, 0.0) if lines == 1 else (0.0, width * float(lines) / layers)
        elif cause == "cold":
            found.temperature = "cold"
            found.shares += math.exp(random.uniform(math.log(0.05), math.log(1.0)))
        elif cause == "other":
            _draw_another(truth, random, found)
        else:
            chosen = _choose(truth, cause, random)
            if chosen is None:
                return None
            found.changes |= chosen
    return found


def _slow_down(truth: Deployment, slowness: Slowness,
               causes: int) -> tuple[float, float] | None:
    """Return the time under causes, and the clock; None where that cannot be, or is nothing."""
    if slowness.network or slowness.board:
        board = slowness.board or truth.board
        truth = deploy(slowness.network or truth.graph, board,
                       **{} if slowness.board else {"runtime": truth.runtime.identity})
    try:
        healthy = twin.predict(truth, calibration="auto").time_us
        changed = truth.replace(slowness.changes) if slowness.changes else truth
        slow = twin.predict(changed, temperature=slowness.temperature).time_us
    except TwinError:
        return None
    if slowness.changes and causes > 1 and slow < LEAST * healthy:
        return None
    once, each = slowness.lines
    return (slow * slowness.factor + healthy * slowness.shares + once
            + each * len(truth.graph.layers),
            changed.board.clock(changed.board.core.clock).frequency_hz)


def _choose(truth: Deployment, cause: str, random: np.random.Generator) -> dict[str, object] | None:
    """Return the changes of a cause that the models predict."""
    board, core = truth.board, truth.board.core
    hertz = board.clock(core.clock).frequency_hz
    caches = [name for name in (core.dcache, core.icache) if name]
    slow = [one.name for one in board.memories if one.role in ("external_ram", "external_flash")]
    weaker = {"armv7e-m": "armv7-m", "armv8-m-dsp": "armv8-m", "armv8.1-m-mve": "armv8-m-dsp"}
    esp = truth.runtime.library == "esp_nn"
    pick: Callable[..., str] = lambda names: str(random.choice(names))  # noqa: E731
    options: dict[str, list[dict[str, object]]] = {
        "clock": [{f"clocks.{core.clock}.frequency_hz": one,
                   "supply.voltage_scale": board.power.voltage_scale}
                  for one in (8e6, 16e6, hertz / 2, hertz / 4, hertz * 2 / 3)],
        "cache": [{f"caches.{name}.enabled": False} for name in caches] + [
            {f"caches.{name}.size_bytes": board.cache(name).size_bytes // 8} for name in caches],
        "placement": [{f"placement.{role}": name} for name in slow
                      for role in ("weights", "arena")],
        "simd": [{"runtime": "esp-nn-ansi@1.2.3"}] if esp else (
            [] if truth.accelerated else [{"cores.main.isa": weaker[core.isa]}]),
        "reference": [] if truth.accelerated else [{"runtime": "tflm-reference@2023"}],
        "float": [] if truth.accelerated else [
            {"network.precision": "float32", "runtime": "float-reference@1"}],
        "fallback": [] if not truth.accelerated else [
            {"runtime": "cmsis-nn@6.0"}, {"offload.host": "conv_2d"},
            {"offload.host": pick([layer.op for layer in truth.graph.layers])}]}
    possible = options[cause]
    return possible[int(random.integers(len(possible)))] if possible else None


def _draw_another(truth: Deployment, random: np.random.Generator, found: Slowness) -> None:
    """Draw another network of the same kind, or another board."""
    if random.random() < 0.5:
        found.network = str(random.choice([one for one in ("kws", "ic", "vww", "ad") if
                                           one != truth.graph.name]))
    else:
        boards = [case[0] for case in CASES if case[0] != truth.board.name] + ["nucleo_f401re"]
        found.board = str(random.choice(boards))


ASKERS = ("number", "1", "2", "3", "published", "published, 3", "half", "network", "cycles",
          "network, cycles", "network, cycles, published", "network, cycles, 1",
          "network, cycles, half")
"""What the asker gives: the number alone, half of what is not so ruled out, true answers to so many
questions, what somebody published of the same board, network and release, the time of another
network of the build, and the cycles the core counted."""


class Desk:
    """What is foreseen of a board, by what an asker gives."""

    def __init__(self, board: str, network: str, runtime: str) -> None:
        self.deployments = [deploy(one, board, runtime=runtime)
                            for one in (network, SECOND[network])]
        self.outlooks: dict[tuple[int, float | None], Outlook] = {}
        self.explained: dict[str, Why] = {}

    def foresee(self, count: int, hertz: float | None) -> Outlook:
        """Return what is foreseen of so many numbers at a clock, or at the one asked for."""
        if (count, hertz) not in self.outlooks:
            self.outlooks[count, hertz] = foresee(
                self.deployments[:count], library="name", clock_hz=hertz)
        return self.outlooks[count, hertz]

    def answer(self, plant: Plant, asker: str) -> Why:
        """Return what is said to an asker."""
        known: dict[bool, list[str]] = {True: [], False: []}
        published = plant.published_us if "published" in asker else None
        if "half" in asker:
            random = np.random.default_rng(int(plant.time_us))
            known[False] = [cause for cause in CAUSES
                            if cause not in plant.causes and random.random() < 0.5]
        numbers = [plant.time_us]
        if "network" in asker and plant.second_us is not None:
            numbers.append(plant.second_us)
        hertz = None
        if "cycles" in asker:
            cycles = round(plant.hertz * plant.time_us / 1e6)
            with suppress(UsageError):  # Faster than the board: the command refuses them.
                hertz = float(f"{observe_clock(cycles, plant.time_us, self.deployments[0]):.2g}")
        outlook = self.foresee(len(numbers), hertz)

        def explain_now() -> Why:
            """Explain once what several askers know alike, before some of them answer."""
            given = str((numbers, hertz, published, known))
            if given not in self.explained:
                self.explained[given] = explain(outlook, numbers, published_us=published,
                                                present=known[True], absent=known[False])
            return self.explained[given]

        found = explain_now()
        for _ in range(int(asker[-1]) if asker[-1].isdigit() else 0):
            if not found.asked:
                break
            known[found.asked in plant.causes].append(found.asked)
            found = explain_now()
        return found


def rank(found: Why) -> list[str]:
    """Return causes, and that nothing is the matter, most probable first."""
    chances = {row.cause: row.probability for row in found.rows} | {EXPECTED: found.as_expected}
    return sorted(chances, key=lambda name: -chances[name])


def judge(seeds, cases=CASES, askers=ASKERS) -> dict[str, list[tuple[Plant, Why]]]:
    """Return by asker what was planted and said."""
    found: dict[str, list[tuple[Plant, Why]]] = {asker: [] for asker in askers}
    for board, network, runtime, family in cases:
        desk = Desk(board, network, runtime)
        for seed in seeds:
            for plant in plant_case(board, network, family, seed):
                for asker, said in found.items():
                    said.append((plant, desk.answer(plant, asker)))
    return found


def score(judged: list[tuple[Plant, Why]]) -> dict[str, float]:
    """Return shares: of plants found first and among three, of healthy numbers as expected."""
    def share(hits) -> float:
        return float(np.mean(list(hits)))

    ranks = [(plant.causes, rank(found)) for plant, found in judged]
    single, pair = ([one for one in ranks if len(one[0]) == size] for size in (1, 2))
    both = single + pair
    return {
        "first": share(bool({ranked[0]} & set(causes)) for causes, ranked in both),
        "three": share(bool(set(ranked[:3]) & set(causes)) for causes, ranked in both),
        "single first": share(ranked[0] in causes for causes, ranked in single),
        "single three": share(bool(set(ranked[:3]) & set(causes)) for causes, ranked in single),
        "pair first": share(ranked[0] in causes for causes, ranked in pair),
        "pair three": share(bool(set(ranked[:3]) & set(causes)) for causes, ranked in pair),
        "both in three": share(set(causes) <= set(ranked[:3]) for causes, ranked in pair),
        "healthy": share(ranked[0] == EXPECTED for causes, ranked in ranks if not causes),
        "plants": len(both)}


SHARES = (0.38, 0.42, 0.2)
"""Of healthy numbers, of one cause and of two among all: a choice, as stated priors are."""

EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def calibrate(judged: list[tuple[Plant, Why]]) -> list[tuple[float, float, float, int]]:
    """Return bins of stated probabilities: lower edge, mean stated, share true, how many.

    Healthy numbers, single causes and pairs count `SHARES` of all.
    """
    sizes = [sum(len(plant.causes) == size for plant, _ in judged) for size in range(3)]
    weights = [share / max(size, 1) for share, size in zip(SHARES, sizes, strict=True)]
    rows = []
    for plant, found in judged:
        chances = [(row.probability, row.cause in plant.causes) for row in found.rows]
        chances.append((found.as_expected, not plant.causes))
        rows += [(chance, true, weights[len(plant.causes)]) for chance, true in chances]
    table = np.array(rows)
    bins = []
    for low, high in itertools.pairwise(EDGES):
        inside = table[(table[:, 0] >= low) & (table[:, 0] < high + (high == 1.0))]
        if len(inside):
            bins.append((low, float(np.average(inside[:, 0], weights=inside[:, 2])),
                         float(np.average(inside[:, 1], weights=inside[:, 2])), len(inside)))
    return bins


WIDTH = 0.12
"""Of the observer's densities, as a logarithm."""


def observe(seeds, drawn) -> tuple[float, float, float]:
    """Return first, among three and healthy for who knew how plants are drawn, from one number.

    The density of each plant's times on each board is that of its own draws, smoothed; its share of
    all is `SHARES`.
    """
    times: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    judged = []
    for board, network, _, family in CASES:
        for seed in drawn:
            for plant in plant_case(board, network, family, seed):
                times.setdefault((board, plant.causes), []).append(math.log(plant.time_us))
        judged += [plant for seed in seeds for plant in plant_case(board, network, family, seed)]
    first, three, healthy = [], [], []
    numbers = (HEALTHY, len(CAUSES), len(PAIRS))
    for plant in judged:
        chances: dict[str, float] = {}
        for (board, causes), logs in times.items():
            if board == plant.board:
                off = (np.array(logs) - math.log(plant.time_us)) / WIDTH
                chance = SHARES[len(causes)] / numbers[len(causes)] * np.exp(-off**2 / 2).sum()
                for cause in causes or (EXPECTED,):
                    chances[cause] = chances.get(cause, 0.0) + float(chance)
        ranked = sorted(chances, key=lambda name: -chances[name])
        if plant.causes:
            first.append(ranked[0] in plant.causes)
            three.append(bool(set(ranked[:3]) & set(plant.causes)))
        else:
            healthy.append(ranked[0] == EXPECTED)
    return float(np.mean(first)), float(np.mean(three)), float(np.mean(healthy))


def main(seeds: list[int]) -> None:
    """Print what is found after no to three answers, and how true what is stated is."""
    for asker, judged in judge(seeds).items():
        print(f"{asker}:", "  ".join(
            f"{name} {value:.3g}" for name, value in score(judged).items()))
        for low, stated, true, count in calibrate(judged):
            print(f"    from {low:.1f}: stated {stated:.2f}, true {true:.2f} of {count}")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "observer"]
    asked = [int(word) for word in words] or [1]
    if "observer" in sys.argv:
        print("first {:.3g}, among three {:.3g}, healthy {:.3g}".format(
            *observe(asked, range(1000, 1030))))
    else:
        main(asked)
