"""Vela's estimate beside our whole-model bill, and what each says when the depthwise layers move.

    python -m benchmarks.accuracy.vela            needs the extra: pip install -e '.[bench]'

Vela estimates the cycles of what it maps to an Ethos-U NPU and counts operators left to the host as
nothing. So taking work off the NPU makes its estimate better; a bill of the whole model gets worse.
The machines differ (Ethos-U55, 256 MAC, 500 MHz; Neural-ART on the STM32N6, 1 GHz): compare each
column with its neighbour, not Vela's with ours.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hwmodels.errors import ToolMissingError, TwinError, extra_missing
from twin.deployment.costs import HAND_OVER_EVENTS
from twin.deployment.deployment import deploy
from twin.network import zoo
from twin.network.writers.tflite import write_tflite
from twin.pricing.prediction import Prediction, predict

MODELS = ("kws", "vww", "mobilenet_v1_0.25_224")
ACCELERATOR = "ethos-u55-256"
MOVED, MOVED_BY_VELA = "depthwise_conv_2d", "DEPTHWISE_CONV_2D"


@dataclass(frozen=True, slots=True, kw_only=True)
class VelaEstimate:
    """What Vela says of a model.

    Parameters
    ----------
    npu_cycles : int
        `cycles_total` of its summary: the NPU's, and only the NPU's.
    time_ms : float
        Its inference time.
    host_operators, npu_operators : int
        Where it put them.
    """

    npu_cycles: int
    time_ms: float
    host_operators: int
    npu_operators: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One model: Vela and the twin, everything offloaded and with the depthwise layers moved."""

    model: str
    vela: tuple[VelaEstimate, VelaEstimate]
    twin: tuple[Prediction, Prediction]


def find_vela() -> Path:
    """Return the vela command of this environment or of the path.

    Raises
    ------
    ToolMissingError
        When it is not installed.
    """
    beside = Path(sys.executable).with_name("vela")
    found = beside if beside.is_file() else shutil.which("vela")
    if found is None:
        raise extra_missing("estimates of Vela", "ethos-u-vela", "bench")
    return Path(found)


def run_vela(model: Path, *, ignored: str = "") -> VelaEstimate:
    """Estimate a .tflite file, operators of the type `ignored` left to the host."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(find_vela()), str(model), "--accelerator-config", ACCELERATOR,
                   "--output-dir", folder, *(["--ignore-ops", ignored] if ignored else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        summaries = list(Path(folder).glob("*_summary_*.csv"))
        if done.returncode or not summaries:
            raise ToolMissingError(f"vela failed on {model}: {done.stderr.strip()[-300:]}")
        row = next(csv.DictReader(summaries[0].read_text(encoding="utf-8").splitlines()))
    counted = {name: int(count) for name, count in re.findall(
        r"(CPU|NPU) operators = (\d+)", done.stdout)}
    return VelaEstimate(npu_cycles=int(float(row["cycles_total"])),
                        time_ms=float(row["inference_time"]) * 1e3,
                        host_operators=counted["CPU"], npu_operators=counted["NPU"])


def compare(model: str) -> Pair:
    """Ask Vela and the twin about the same .tflite file, twice each."""
    deployment = deploy(model, "stm32n6570_dk", runtime="neural-art")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{model}.tflite"
        write_tflite(zoo.build(model), path)
        estimates = run_vela(path), run_vela(path, ignored=MOVED_BY_VELA)
    return Pair(model=model, vela=estimates, twin=(
        predict(deployment), predict(deployment.replace({"offload.host": MOVED}))))


def make_report(pairs: Sequence[Pair]) -> str:
    """Return the tables as Markdown."""
    rows = [(pair.model, f"{pair.vela[0].npu_cycles:,}", f"{pair.vela[0].time_ms:.3f}",
             f"{pair.vela[1].time_ms:.3f}", f"{pair.vela[1].host_operators}",
             f"{pair.twin[0].time_us / 1e3:.3f}", f"{pair.twin[1].time_us / 1e3:.3f}")
            for pair in pairs]
    parts = [_table(("model", "Vela, NPU cycles", "Vela, ms", "depthwise on the host: Vela, ms",
                     "operators it leaves out", "twin, ms", "depthwise on the host: twin, ms"),
                    rows),
             "Where the twin's time goes, in ms:",
             _table(("model", "depthwise on", "NPU cores", "host operators", "hand-over", "total"),
                    [(pair.model, where, *(f"{part / 1e3:.3f}" for part in _parts(prediction)))
                     for pair in pairs
                     for where, prediction in zip(("NPU", "host"), pair.twin, strict=True)])]
    reasons = [_explain(pair) for pair in pairs]
    return "\n\n".join([*parts, *reasons]) + "\n"


def _parts(prediction: Prediction) -> tuple[float, float, float, float]:
    """Microseconds in the NPU's cores, the host's operators, the hand-over, and all."""
    core_us = sum(epoch.run.core_npu_cycles for epoch in prediction.tasks) / 1e3
    host_hz = prediction.deployment.board.clock("cpu").frequency_hz
    hand_over_us = sum(line.cycles for line in prediction.bill.lines
                       if line.event in HAND_OVER_EVENTS) / host_hz * 1e6
    return (core_us, prediction.time_us - core_us - hand_over_us, hand_over_us,
            prediction.time_us)


def _explain(pair: Pair) -> str:
    before, after = pair.vela
    ours = pair.twin[1].time_us / pair.twin[0].time_us
    return (f"{pair.model}: Vela calls it {before.time_ms / after.time_ms:.2f}x faster with "
            f"{after.host_operators} operators on the host, which it prices at nothing; the same "
            f"operators cost the host {_parts(pair.twin[1])[1] / 1e3:.2f} ms and the hand-over "
            f"{_parts(pair.twin[1])[2] / 1e3:.2f} ms in our bill, {ours:.1f}x the time.")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    """Print the tables; a tool that is missing is told, not traced."""
    try:
        print(make_report([compare(model) for model in MODELS]), end="")
    except TwinError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
