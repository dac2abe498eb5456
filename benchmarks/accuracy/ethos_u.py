"""Ethos-U beside Arm's cycle model and beside Vela's own estimate: networks, operators, memories.

    TWIN_MODELS=FOLDER TWIN_VELA=COMMAND python -m benchmarks.accuracy.ethos_u

Needs the extra `ethos`. Rows name the Vela that compiled them; another compiles another schedule,
so set TWIN_VELA to one of that release for figures of the same. Networks of Arm's model zoo are
looked for by name in TWIN_MODELS: rnnoise_INT8, kws_micronet_m and ad_medium_int8 lie in
github:AmbiqAI/vela_example_generator at c284228f, example_models/. MobileNetV2 and convolutions are
built by shape, with weights drawn from a normal distribution, which compress as trained ones do.

`--leave-out` judges rows whose kind, size or memory no constant saw: each fitted one may take a
step up or down for the rows that stay, whose root mean square error takes the place of the
network's deviation in the interval, with what the runtime adds for a size without rows.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import twin
from calibration.datasets import read_table
from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from hwmodels.schedule.run import run_tasks
from twin.network import zoo
from twin.network.graph import Graph
from twin.network.writers.tflite import write_tflite
from twin.network.zoo.builder import Builder
from twin.pricing.prediction import Prediction
from twin.runtimes.ethos_u.rules import compiled_of
from twin.runtimes.ethos_u.tasks import make_tasks
from twin.runtimes.ethos_u.vela import find_vela, version_of
from twin.runtimes.file import load_runtime

BOARDS = {"ethos-u55": "corstone300_fvp", "ethos-u65": "corstone300_fvp",
          "ethos-u85": "corstone320_fvp"}
BUILT = {"mobilenet_v2_1.0_224_INT8": "mobilenet_v2_1.0_224"}
SETTINGS = {"sram_bytes_per_cycle": (0, "bytes_per_cycle"), "ext_reads": (1, "reads_in_flight"),
            "ext_bytes_per_cycle": (1, "bytes_per_cycle"),
            "ext_read_latency": (1, "read_latency_cycles"),
            "ext_write_latency": (1, "write_latency_cycles")}
"""Columns that change a pool: which of the machine's, and the key."""

STEPS = ({}, {"start": 0.5}, {"start": 1.5}, {"command_bytes": 0.67}, {"command_bytes": 1.34},
         {"weight_bytes": 0.75}, {"weight_bytes": 1.25}, {"writes": 0.5}, {"writes": 2.0})
"""Factors on the rates that were fitted."""

WORTH = 0.9
"""Share of the mean error a step must leave at most to be taken."""

SMALLEST = 20_000
"""Cycles below which the grid of 1,000 of the published totals decides."""


@frozen
class Run:
    """One published run: what it is of, published and predicted cycles, Vela's estimate.

    `steps` are logarithms of predicted over published cycles after each of `STEPS`.
    """

    row: Mapping[str, Any]
    published: float
    predicted: float
    interval: tuple[float, float]
    vela: float | None
    beats: tuple[tuple[float, float], ...] = ()
    steps: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        """What table it belongs to."""
        changed = any(self.row[name] is not None for name in SETTINGS)
        return ("operators" if self.row["network"].startswith("conv") else
                "other memories" if changed else "networks")


def find_model(name: str, folder: Path) -> Path | None:
    """Return a network's file: of TWIN_MODELS, or built; None where it is neither."""
    for place in os.environ.get("TWIN_MODELS", "").split(os.pathsep):
        if place and (found := next(Path(place).rglob(f"*{name}.tflite"), None)):
            return found
    path = folder / f"{name}.tflite"
    if not path.exists():
        shape = re.fullmatch(r"conv1x1_(\d+)x(\d+)_c(\d+)", name)
        if shape is None and name not in BUILT:
            return None
        write_tflite(_draw(_build_operator(*map(int, shape.groups())) if shape
                           else zoo.build(BUILT[name])), path)
    return path


def _build_operator(rows: int, columns: int, channels: int) -> Graph:
    builder = Builder("conv1x1", 1)
    image = builder.input((1, rows, columns, channels))
    return builder.finish(builder.conv(image, channels, 1, activation=None))


def _draw(graph: Graph) -> Graph:
    """Return a network with weights of a normal distribution whose largest are four deviations."""
    random = np.random.default_rng(0)
    return replace(graph, tensors=tuple(
        replace(tensor, data=np.clip(np.round(random.standard_normal(tensor.shape) * 127 / 4),
                                     -127, 127).astype(np.int8))
        if tensor.is_constant and tensor.dtype == "int8" and len(tensor.shape) > 1 else tensor
        for tensor in graph.tensors))


def predict_row(row: Mapping[str, Any], model: Path) -> Prediction:
    """Return the prediction of a published run."""
    board = BOARDS[row["config"].rpartition("-")[0]]
    deployment = twin.deploy(model, board, runtime="ethos-u-vela").replace(
        {"npu.config": row["config"], "npu.memory_mode": row["memory_mode"]})
    pools = [pool.name for pool in deployment.board.npu.pools]
    changes = {f"npu.pools.{pools[place]}.{key}": row[name]
               for name, (place, key) in SETTINGS.items() if row[name] is not None}
    return twin.predict(deployment.replace(changes) if changes else deployment)


def step(prediction: Prediction, published: float) -> Iterator[float]:
    """Yield logarithms of cycles after each of `STEPS` over those published."""
    deployment = prediction.deployment
    npu = deployment.board.npu
    streams = [one.stream for one in compiled_of(deployment.executed, npu).file.streams]
    for factors in STEPS:
        rates = tuple((name, value * factors.get(name, 1.0)) for name, value in npu.rates)
        changed = replace(npu, rates=rates)
        yield float(np.log(sum(
            run.core_npu_cycles for stream in streams for run in run_tasks(make_tasks(
                stream, changed, npu.memory_mode), changed)) / published))


def leave_out(runs: Sequence[Run], column: str) -> str:
    """Return a table's line: what rows are off by where no constant saw their kind."""
    errors, inside, widths = [], 0, []
    spread = load_runtime("ethos-u-vela").offload.spread
    groups = [run.kind if column == "kind" else run.row[column] for run in runs]
    for group in dict.fromkeys(groups):
        stay = np.array([run.steps for run, own in zip(runs, groups, strict=True) if own != group])
        means = np.abs(stay).mean(axis=0)
        best = int(means.argmin()) if means.min() < WORTH * means[0] else 0
        for run, own in zip(runs, groups, strict=True):
            if own == group:
                shipped = np.log(run.interval[1] / run.interval[0]) / (2 * spread.reach)
                sd = float(np.sqrt(
                    shipped ** 2 - spread.network ** 2 + (stay[:, best] ** 2).mean()
                    + spread.unseen ** 2 * (column == "config")))
                errors.append(abs(float(np.expm1(run.steps[best]))))
                inside += abs(run.steps[best]) <= spread.reach * sd
                widths.append(float(np.exp(2 * spread.reach * sd)))
    return (f"| {column} | {len(runs)} | {np.median(errors):.1%} | {np.quantile(errors, 0.9):.1%} "
            f"| {inside} of {len(runs)}, {np.median(widths):.2f} |")


def judge(rows: Sequence[Mapping[str, Any]], steps: bool = False) -> Iterator[Run]:
    """Yield published runs with their predictions, of rows whose network is at hand."""
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            model = find_model(row["network"], Path(folder))
            if model is None:
                continue
            prediction = predict_row(row, model)
            cycles = prediction.cycles_by_clock["npu"]
            whole, ends = prediction.time_us, prediction.certainty.time_us
            active = row["npu_active_cycles"]
            published = active or row["npu_total_cycles"] - 500
            yield Run(row=row, predicted=cycles, vela=row["vela_cycles"], published=published,
                      steps=tuple(step(prediction, published)) if steps else (),
                      interval=(cycles * ends.low / whole, cycles * ends.high / whole),
                      beats=tuple(_beats(prediction, row)))


def _beats(prediction: Prediction, row: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    inner, totals = prediction.deployment.board.npu.pools[0].name, [0, 0]
    for task in prediction.tasks:
        for one in task.run.transfers:
            totals[one.pool.name != inner] += one.beats
    for name, own in zip(("inner_beats", "outer_beats"), totals, strict=True):
        if row[name]:
            yield row[name], own


def describe(kind: str, runs: Sequence[Run]) -> str:
    """Return a table's line: runs, errors beside Vela's, coverage and width of the intervals."""
    large = [run for run in runs if run.published >= SMALLEST]
    own = sorted(abs(run.predicted / run.published - 1) for run in large)
    theirs = [abs(run.vela / run.row["npu_total_cycles"] - 1) for run in large if run.vela]
    inside = sum(low <= run.published <= high for run in runs for low, high in (run.interval,))
    width = statistics.median(run.interval[1] / run.interval[0] for run in runs)
    beats = [abs(own / real - 1) for run in runs for real, own in run.beats]
    return (f"| {kind} | {len(runs)} | {statistics.median(own):.1%} | "
            f"{own[int(0.9 * (len(own) - 1))]:.1%} | "
            + (f"{statistics.median(theirs):.1%} / {max(theirs):.0%}" if theirs else "") + " | "
            + (f"{statistics.median(beats):.1%}" if beats else "")
            + f" | {inside} of {len(runs)}, {width:.2f} |")


def main() -> int:
    """Print the table; what is missing is said, not traced."""
    try:
        command = find_vela()
        rows = read_table("ethos_u_fvp").rows
        runs = list(judge(rows, "--leave-out" in sys.argv))
        print(f"{len(runs)} of {len(rows)} runs, compiled by Vela "
              f"{version_of(command, os.stat(command).st_mtime_ns)}; rows are of "
              f"{', '.join(sorted({str(row['vela']) for row in rows}))}\n")
        print(f"| of | runs | median from {SMALLEST:,} cycles | p90 | Vela: median / largest | "
              "beats, median | in the 90 % interval, high / low |\n|---|---|---|---|---|---|---|")
        for kind in dict.fromkeys(run.kind for run in runs):
            print(describe(kind, [run for run in runs if run.kind == kind]))
        if "--leave-out" in sys.argv:
            print("\n| left out, one by one | runs | median | p90 | inside, high / low |\n"
                  "|---|---|---|---|---|")
            print("\n".join(leave_out(runs, column) for column in (
                "kind", "config", "memory_mode", "ext_read_latency", "network")))
    except TwinError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
