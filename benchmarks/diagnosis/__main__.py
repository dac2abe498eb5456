"""Every fault on every board: planted, diagnosed, and counted in a confusion table.

    python -m benchmarks.diagnosis [--boards NAMES] [--networks NAMES] [--keep FOLDER]

Three ways to know what is right: stated prices of another library (`stand-in`), a measurement of
the healthy set-up (`known right`), and the kernels of the binary (`binary`), where it can be built.
Each twice on the same samples: with what the core itself counts (`core counters`, cycles, as a real
Cortex-M4, M7 or M33 without a PMU), and with the emulator's exact counts of instructions, accesses
and misses besides (`emulator counters`), which only cores with a PMU come near.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.diagnosis.planted import Bench, Fault, as_a_core_counts, list_plants
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
CORE, EMULATOR = "core counters", "emulator counters"
HEADING = """\
Faults planted in emulated boards. The emulator takes its timing from the twin's own tables: this
tests the method, not the model; no silicon is in it. `core counters`: what a Cortex-M4, M7 or M33
counts; `emulator counters`: exact instructions, accesses and misses besides, which those cores
cannot count.
"""

Confusion = dict[tuple[str, str], Counter[tuple[str, str]]]


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
    print(HEADING)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        confusion: Confusion = {(mode, counted): Counter() for mode in MODES
                                for counted in (CORE, EMULATOR)}
        for network in options.networks.split(","):
            for board in options.boards.split(","):
                _run_bench(Bench(network=network, board=board, folder=folder), confusion,
                           options.keep is not None)
    _print_summary(confusion)
    for way, counts in confusion.items():
        _print_table(", ".join(way), counts)


def _run_bench(bench: Bench, confusion: Confusion, keep: bool) -> None:
    healthy: Measurement | None = None
    for fault, measured in measure_all(bench, keep):
        healthy = healthy or measured
        planted = fault.kind if has_effect(fault, measured, healthy) else NO_EFFECT
        for counted, view in ((CORE, as_a_core_counts), (EMULATOR, lambda one: one)):
            for mode in MODES:
                found = judge(bench, mode, view(measured), view(healthy))
                if found is None:
                    continue
                kind, chance = next(iter(found.kinds.items()))
                # A fault that moves nothing and is found all the same, by its misses, is found.
                confusion[mode, counted][fault.kind if kind == fault.kind else planted, kind] += 1
                outcome = "found" if kind == fault.kind else _outcome(planted, kind)
                print(f"{bench.network:20} {bench.board:16} {fault.name:16} {counted:17} "
                      f"{mode:12} {outcome:6} {kind} {chance:.3f} "
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


def _print_summary(confusion: Confusion) -> None:
    print(f"\nplants found {CORE:>18} {EMULATOR:>18}")
    for mode in MODES:
        print(f"{mode:12} " + " ".join(
            f"{_count_found(confusion[mode, counted]):>18}" for counted in (CORE, EMULATOR)))


def _count_found(counts: Counter[tuple[str, str]]) -> str:
    right = sum(count for pair, count in counts.items() if _outcome(*pair) == "found")
    return f"{right} of {sum(counts.values())}"


def _print_table(way: str, counts: Counter[tuple[str, str]]) -> None:
    kinds = sorted({kind for pair in counts for kind in pair})
    if not counts:
        print(f"\n{way}: not available")
        return
    print(f"\n{way}: {_count_found(counts)} found (rows planted, columns found)")
    print(f"{'':18}" + "".join(f"{kind[:11]:>12}" for kind in kinds))
    for planted in kinds:
        if any(counts[planted, found] for found in kinds):
            print(f"{planted:18}" + "".join(f"{counts[planted, found] or '':>12}"
                                            for found in kinds))


if __name__ == "__main__":
    main()
