"""Every fault on every board: planted, diagnosed, and counted in a confusion table.

    python -m benchmarks.diagnosis [--boards NAMES] [--networks NAMES] [--keep FOLDER]

Three ways to know what is right: stated prices of another library (`stand-in`), a measurement of
the healthy set-up (`known right`), and the kernels of the binary (`binary`), where it can be built.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.diagnosis.planted import Bench, Fault, list_plants
from calibration.measurement.measurement import Measurement, read_measurement
from hwmodels.errors import TwinError
from twin.attribution.diagnosis import Diagnosis, diagnose
from twin.deployment.deployment import deploy

BOARDS = ("nucleo_l4r5zi", "nucleo_h7a3zi_q", "nucleo_u575zi_q")
NETWORKS = ("kws", "mobilenet_v1_0.25_32")
NO_EFFECT = "without effect"
SLOW = ("-O0", "reference kernels")
RUNS, SLOW_RUNS = 12, 3
MODES = ("stand-in", "known right", "binary")


def measure_all(bench: Bench, keep: bool) -> Iterator[tuple[Fault, Measurement]]:
    """Plant each fault, or read what an earlier run kept."""
    for fault in list_plants(bench):
        kept = bench.folder / "samples" / f"{bench.network}-{bench.board}-{fault.name}" / "warm"
        if keep and (kept / "samples.jsonl").exists():
            yield fault, read_measurement(kept)
            continue
        try:
            yield fault, bench.measure(fault, runs=SLOW_RUNS if fault.kind in SLOW else RUNS)
        except TwinError as error:
            print(f"{bench.network} {bench.board} {fault.name}: not planted: {error}",
                  file=sys.stderr)


def judge(bench: Bench, mode: str, measured: Measurement,
          healthy: Measurement) -> Diagnosis | None:
    """Diagnose in one way; None where it cannot be done."""
    try:
        if mode == "binary":
            return diagnose(deploy(bench.network, bench.board, runtime="firmware"), measured)
        deployment = deploy(bench.network, bench.board, runtime="cmsis-nn")
        return diagnose(deployment, measured, stands_in=True,
                        healthy=healthy if mode == "known right" else None)
    except TwinError as error:
        if mode != "binary":
            raise
        print(f"{mode}: {error}", file=sys.stderr)
        return None


def main() -> None:
    """Print one line per plant, then the confusion table of each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--keep", help="folder of images and samples, used again when there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        confusion: dict[str, Counter[tuple[str, str]]] = {mode: Counter() for mode in MODES}
        for network in options.networks.split(","):
            for board in options.boards.split(","):
                _run_bench(Bench(network=network, board=board, folder=folder), confusion,
                           options.keep is not None)
    for mode, counts in confusion.items():
        _print_table(mode, counts)


def _run_bench(bench: Bench, confusion: dict[str, Counter[tuple[str, str]]], keep: bool) -> None:
    healthy: Measurement | None = None
    for fault, measured in measure_all(bench, keep):
        healthy = healthy or measured
        for mode in MODES:
            found = judge(bench, mode, measured, healthy)
            if found is None:
                continue
            kind, chance = next(iter(found.kinds.items()))
            planted = fault.kind if has_effect(fault, measured, healthy) else NO_EFFECT
            # A fault that moves nothing and is found all the same, by its misses, is found.
            confusion[mode][fault.kind if kind == fault.kind else planted, kind] += 1
            outcome = "found" if kind == fault.kind else _outcome(planted, kind)
            print(f"{bench.network:20} {bench.board:16} {fault.name:16} {mode:12} "
                  f"{outcome:6} {kind} {chance:.3f} "
                  f"({found.verdict.fault.name}); planted has "
                  f"{found.kinds.get(fault.kind, 0.0):.3f}", flush=True)


def has_effect(fault: Fault, measured: Measurement, healthy: Measurement) -> bool:
    """Whether a plant moved the inference or its clock by a percent: else there is no fault."""
    counter = "cpu_cycles"
    moved = measured.percentile(counter, 50) / healthy.percentile(counter, 50)
    return fault.kind in ("as declared", "clock") or abs(moved - 1) > 0.01


def _outcome(planted: str, found: str) -> str:
    return "found" if planted == found or (planted, found) == (NO_EFFECT, "as declared") \
        else "MISSED"


def _print_table(mode: str, counts: Counter[tuple[str, str]]) -> None:
    kinds = sorted({kind for pair in counts for kind in pair})
    right = sum(count for pair, count in counts.items() if _outcome(*pair) == "found")
    whole = sum(counts.values())
    if not whole:
        print(f"\n{mode}: not available")
        return
    print(f"\n{mode}: {right} of {whole} found (rows planted, columns found)")
    print(f"{'':18}" + "".join(f"{kind[:11]:>12}" for kind in kinds))
    for planted in kinds:
        if any(counts[planted, found] for found in kinds):
            print(f"{planted:18}" + "".join(f"{counts[planted, found] or '':>12}"
                                            for found in kinds))


if __name__ == "__main__":
    main()
