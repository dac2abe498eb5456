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
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import twin
from calibration.datasets.published import published_rows
from hwmodels.errors import TwinError
from twin.attribution.diagnosis.outlook import foresee
from twin.attribution.diagnosis.why import EXPECTED, Why, explain
from twin.deployment.deployment import Deployment, deploy

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


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A number, what is the matter (no cause is healthy), and what somebody published."""

    board: str
    causes: tuple[str, ...]
    time_us: float
    published_us: float
    factor: float


def plant_case(board: str, network: str, family: str, seed: int) -> Iterator[Plant]:
    """Yield every plant of a board that changes something, and healthy numbers."""
    own = [seed, len(board), len(network), ord(board[-1])]
    random, others = np.random.default_rng(own), np.random.default_rng([*own, 1])
    for causes in (*((),) * HEALTHY, *((one,) for one in CAUSES), *PAIRS):
        runtime = str(random.choice(LIBRARIES[family]))
        truth = deploy(network, board, runtime=runtime)
        healthy = twin.predict(truth, calibration="auto").time_us
        slow = _slow_down(truth, causes, healthy, random)
        silicon, noise = random.lognormal(0, SILICON_SD), random.lognormal(0, NOISE_SD)
        if slow is not None and (not causes or slow > LEAST * healthy):
            yield Plant(board=board, causes=causes, time_us=slow * silicon * noise,
                        factor=slow / healthy, published_us=healthy * silicon * math.exp(
                            others.choice(list_published())))


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


def _slow_down(truth: Deployment, causes: tuple[str, ...], healthy: float,
               random: np.random.Generator) -> float | None:
    """Return the time under causes; None where one of them cannot be, or changes nothing."""
    changes: dict[str, object] = {}
    factor, added, temperature, single = 1.0, 0.0, "warm", []
    for cause in causes:
        if cause in FACTORS:
            if cause == "memcpy" and "cmsis" not in truth.runtime.identity:
                return None
            if truth.target.offloads:
                return None
            single.append(math.exp(random.uniform(*map(math.log, FACTORS[cause]))))
            factor *= single[-1]
        elif cause == "loading":
            added += healthy * math.exp(random.uniform(*map(math.log, LOADING)))
        elif cause == "debug":
            lines = random.choice([1, len(truth.graph.layers), 2 * len(truth.graph.layers)])
            added += float(lines * random.uniform(*CHARACTERS)) * 86.8
        elif cause == "cold":
            temperature = "cold"
            added += healthy * math.exp(random.uniform(math.log(0.05), math.log(1.0)))
        elif cause == "other":
            return _run_another(truth, random)
        else:
            chosen = _choose(truth, cause, random)
            if chosen is None:
                return None
            changes |= chosen
    try:
        slow = twin.predict(truth.replace(changes) if changes else truth, temperature=temperature)
    except TwinError:
        return None
    if changes and len(causes) > 1 and slow.time_us < LEAST * healthy:
        return None
    return slow.time_us * factor + added


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
            [] if truth.target.offloads else [{"cores.main.isa": weaker[core.isa]}]),
        "reference": [] if truth.target.offloads else [{"runtime": "tflm-reference@2023"}],
        "float": [] if truth.target.offloads else [
            {"network.precision": "float32", "runtime": "float-reference@1"}],
        "fallback": [] if not truth.target.offloads else [
            {"runtime": "cmsis-nn@6.0"}, {"offload.host": "conv_2d"},
            {"offload.host": pick([layer.op for layer in truth.graph.layers])}]}
    possible = options[cause]
    return possible[int(random.integers(len(possible)))] if possible else None


def _run_another(truth: Deployment, random: np.random.Generator) -> float | None:
    """Return the time of another network of the same kind, or of another board."""
    if random.random() < 0.5:
        other = str(random.choice([one for one in ("kws", "ic", "vww", "ad") if
                                   one != truth.graph.name]))
        return float(twin.predict(
            deploy(other, truth.board, runtime=truth.runtime.identity)).time_us)
    boards = [case[0] for case in CASES if case[0] != truth.board.name] + ["nucleo_f401re"]
    return float(twin.predict(deploy(truth.graph, str(random.choice(boards)))).time_us)


ASKERS = ("number", "half", "1", "2", "3", "published", "published, half", "published, 2",
          "published, 3")
"""What the asker gives: the number alone, half of what is not so ruled out, true answers to so many
questions, and what somebody published of the same board, network and release besides."""


def answer(outlook, plant: Plant, asker: str) -> Why:
    """Return what is said to an asker."""
    known: dict[bool, list[str]] = {True: [], False: []}
    published = plant.published_us if "published" in asker else None
    if "half" in asker:
        random = np.random.default_rng(int(plant.time_us))
        known[False] = [cause for cause in CAUSES
                        if cause not in plant.causes and random.random() < 0.5]
    found = explain(outlook, [plant.time_us], published_us=published, absent=known[False])
    for _ in range(int(asker[-1]) if asker[-1].isdigit() else 0):
        if not found.asked:
            break
        known[found.asked in plant.causes].append(found.asked)
        found = explain(outlook, [plant.time_us], published_us=published, present=known[True],
                        absent=known[False])
    return found


def rank(found: Why) -> list[str]:
    """Return causes, and that nothing is the matter, most probable first."""
    chances = {row.cause: row.probability for row in found.rows} | {EXPECTED: found.as_expected}
    return sorted(chances, key=lambda name: -chances[name])


def judge(seeds, cases=CASES) -> dict[str, list[tuple[Plant, Why]]]:
    """Return by asker what was planted and said."""
    found: dict[str, list[tuple[Plant, Why]]] = {asker: [] for asker in ASKERS}
    for board, network, runtime, family in cases:
        outlook = foresee([deploy(network, board, runtime=runtime)], library="name")
        for seed in seeds:
            for plant in plant_case(board, network, family, seed):
                for asker, said in found.items():
                    said.append((plant, answer(outlook, plant, asker)))
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
