"""Ethos-U beside Arm's cycle model and beside Vela's own estimate: networks, operators, memories.

    TWIN_MODELS=FOLDER TWIN_VELA=COMMAND python -m benchmarks.accuracy.ethos_u

Needs the extra `ethos`. Rows name the Vela that compiled them; another compiles another schedule,
so set TWIN_VELA to one of that release for figures of the same. Networks of Arm's model zoo are
looked for by name in TWIN_MODELS: rnnoise_INT8, kws_micronet_m and ad_medium_int8 lie in
github:AmbiqAI/vela_example_generator at c284228f, example_models/. MobileNetV2 and convolutions are
built by shape, with weights drawn from a normal distribution, which compress as trained ones do.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import twin
from calibration.datasets import read_table
from hwmodels.errors import TwinError
from twin.network import zoo
from twin.network.graph import Graph
from twin.network.writers.tflite import write_tflite
from twin.network.zoo.builder import Builder
from twin.pricing.prediction import Prediction
from twin.runtimes.ethos_u.vela import find_vela, version_of

BOARDS = {"ethos-u55": "corstone300_fvp", "ethos-u65": "corstone300_fvp",
          "ethos-u85": "corstone320_fvp"}
BUILT = {"mobilenet_v2_1.0_224_INT8": "mobilenet_v2_1.0_224"}
SETTINGS = {"sram_bytes_per_cycle": (0, "bytes_per_cycle"), "ext_reads": (1, "reads_in_flight"),
            "ext_bytes_per_cycle": (1, "bytes_per_cycle"),
            "ext_read_latency": (1, "read_latency_cycles"),
            "ext_write_latency": (1, "write_latency_cycles")}
"""Columns that change a pool: which of the machine's, and the key."""

SMALLEST = 20_000
"""Cycles below which the grid of 1,000 of the published totals decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One published run: what it is of, published and predicted cycles, Vela's estimate."""

    row: Mapping[str, Any]
    published: float
    predicted: float
    interval: tuple[float, float]
    vela: float | None
    beats: tuple[tuple[float, float], ...] = ()

    @property
    def kind(self) -> str:
        """What table it belongs to."""
        changed = any(self.row[name] is not None for name in SETTINGS)
        return ("operators" if self.row["network"].startswith("conv") else
                "other memories" if changed else "networks")


def find_model(name: str, folder: Path) -> Path | None:
    """Return a network's file: of TWIN_MODELS, or built; None where it is neither."""
    for place in os.environ.get("TWIN_MODELS", "").split(os.pathsep):
        if place and (found := next(Path(place).rglob(f"{name}.tflite"), None)):
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


def judge(rows: Sequence[Mapping[str, Any]]) -> Iterator[Run]:
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
            yield Run(row=row, predicted=cycles, vela=row["vela_cycles"],
                      published=active if active is not None else row["npu_total_cycles"] - 500,
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
        runs = list(judge(rows))
        print(f"{len(runs)} of {len(rows)} runs, compiled by Vela "
              f"{version_of(command, os.stat(command).st_mtime_ns)}; rows are of "
              f"{', '.join(sorted({str(row['vela']) for row in rows}))}\n")
        print(f"| of | runs | median from {SMALLEST:,} cycles | p90 | Vela: median / largest | "
              "beats, median | in the 90 % interval, high / low |\n|---|---|---|---|---|---|---|")
        for kind in dict.fromkeys(run.kind for run in runs):
            print(describe(kind, [run for run in runs if run.kind == kind]))
    except TwinError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
