"""How fast predictions are, beside Vela on the same files: `python -m benchmarks.speed`.

Every figure is the median of several runs of the same command. The instruction count of each
network is asserted, so that speed work can never change a result.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from twin.deployment.deployment import deploy
from twin.network.writers.tflite import write_tflite
from twin.network.zoo import build
from twin.prediction.prediction import predict

NETWORKS = ("kws", "ic", "vww", "ad", "sww")
BOARD = "nucleo_h7a3zi_q"
RUNTIME = "cmsis-nn"

LIMITS_S = {"twin --help": 0.3, "twin predict kws, warm": 1.0, "twin predict kws, cold": 10.0,
            "in process, again": 0.050}
"""What each figure should stay under on a quiet machine."""


def median_s(run: Callable[[], object], times: int) -> float:
    """Median wall time of a call."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def call(command: list[str], **environment: str) -> None:
    """Run a command to its end; its output is read and dropped."""
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})


def time_commands() -> dict[str, float]:
    """Whole processes: start-up, a prediction, and one with nothing compiled yet."""
    twin = [sys.executable, "-m", "twin"]
    predict_kws = [*twin, "predict", "kws", "-b", BOARD, "--runtime", RUNTIME]
    call(predict_kws)
    figures = {"twin --help": median_s(lambda: call([*twin, "--help"]), 5),
               "twin predict kws, warm": median_s(lambda: call(predict_kws), 5)}

    def cold() -> None:
        with tempfile.TemporaryDirectory() as empty:
            call(predict_kws, TWIN_KERNELS=empty)

    figures["twin predict kws, cold"] = median_s(cold, 3)
    return figures


def time_in_process() -> dict[str, float]:
    """A second prediction of each MLPerf Tiny network, from a fresh deployment."""
    figures = {}
    for name in NETWORKS:
        graph = build(name)
        first = predict(deploy(graph, BOARD, runtime=RUNTIME))

        def again(graph=graph, first=first) -> None:  # type: ignore[no-untyped-def]
            second = predict(deploy(graph, BOARD, runtime=RUNTIME))
            assert second.bill == first.bill, "a second prediction differs"

        figures[name] = median_s(again, 5)
        instructions = sum(layer.instructions for layer in first.layers)
        print(f"{name:24} {figures[name] * 1e3:9.1f} ms   {instructions:>12,} instructions, "
              f"{sum(layer.accesses for layer in first.layers):>11,} cache lines looked up")
    return figures


def time_vela() -> dict[str, float]:
    """Vela, whole process, on the same networks as files."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            path = Path(folder) / f"{name}.tflite"
            write_tflite(build(name), path)
            vela = [sys.executable, "-m", "ethosu.vela.vela", str(path), "--output-dir", folder,
                    "--accelerator-config", "ethos-u55-128"]
            ours = [sys.executable, "-m", "twin", "predict", str(path), "-b", BOARD]
            figures[name] = median_s(lambda vela=vela: call(vela), 3)
            own = median_s(lambda ours=ours: call(ours), 3)
            print(f"{name:24} vela {figures[name]:6.2f} s   twin predict {own:6.2f} s   "
                  f"ratio {figures[name] / own:.2f}")
    return figures


def main() -> int:
    """Print all figures; fail when one is over its limit."""
    print(f"whole process, median; {BOARD}, {RUNTIME}")
    figures = time_commands()
    for name, seconds in figures.items():
        print(f"{name:24} {seconds:9.2f} s    limit {LIMITS_S[name]:g} s")
    print("in process, second prediction of a fresh deployment, median")
    figures["in process, again"] = max(time_in_process().values())
    print("whole process on the same .tflite files (Vela predicts an Ethos-U55, twin a Cortex-M7)")
    try:
        time_vela()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"vela was not run: {error}; install the 'bench' extra", file=sys.stderr)
    over = [name for name, limit in LIMITS_S.items() if figures[name] > limit]
    print("over the limit: " + ", ".join(over) if over else "all within their limits")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
