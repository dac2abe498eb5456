"""How far off predictions are, beside baselines: `python -m benchmarks.accuracy`.

Prints the tables, writes them between the accuracy markers of README.md, and keeps a dated copy
with every fit row in `benchmarks/accuracy/results/`.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from pathlib import Path

from benchmarks.accuracy.calibrated import validate
from benchmarks.accuracy.calibrated_report import make_calibrated_report
from benchmarks.accuracy.instructions import check_pmu, check_simulator
from benchmarks.accuracy.judgement import judge
from benchmarks.accuracy.report import make_listing, make_report

HERE = Path(__file__).parent
COUNTS = HERE.parents[1] / "out" / "counts"
"""Counts kept by content between runs."""

README = HERE.parents[1] / "README.md"
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"


def replace_between(text: str, inner: str) -> str:
    """Return text with what is between the markers replaced.

    Raises
    ------
    ValueError
        Without both markers, once each and in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"{BEGIN} and {END} must each occur once, in this order")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{inner}{END}{rest.split(END)[1]}"


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step, so that a stopped run leaves the old one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def main() -> int:
    """Judge, print and record; returns the exit code."""
    start = time.perf_counter()
    judgement = judge()
    checks = {"counted by the PMU of the Apollo510 (Cortex-M55), each distinct layer of kws":
              check_pmu(),
              "counted on an instruction-set simulator": check_simulator()}
    report = (make_calibrated_report(validate(cache=COUNTS)) + "\nAt stated prices:\n\n"
              + make_report(judgement, checks))
    print(report)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    write_whole(results / f"{date}.txt", report + "\n" + make_listing(judgement, checks))
    print(f"{len(judgement.cases)} rows in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    try:
        write_whole(README, replace_between(README.read_text(encoding="utf-8"), report))
    except (OSError, ValueError) as error:
        print(f"{README}: not updated: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
