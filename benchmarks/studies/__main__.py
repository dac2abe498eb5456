"""Run every shipped study and write what each found: `python -m benchmarks.studies [NAME...]`.

Folders go to out/studies (one that is there goes on, of another version begins anew). What all
found goes to benchmarks/studies/results: findings.md in words computed from their rows, NAME.csv
the data of each study's picture, guide.md the guidelines learnt from them.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import time
from pathlib import Path

import twin
from twin.errors import StudyError
from twin.studies.results import Table, list_columns
from twin.studies.study.definition import Finding
from twin.studies.study.findings import list_effects

OUT = Path("out/studies")
RESULTS = Path(__file__).parent / "results"

TAUGHT = ("hardware", "a_libraries", "placement", "caches_off", "cold_and_warm", "npu_coverage",
          "e1_quantisation", "e2_fusion", "e3_frequency", "e4_tile_and_cache", "impact")
"""Studies the guidelines are learnt from."""

FRONT = ("model", "board", "runtime", "clock_hz", "voltage_scale", "time_us", "time_low_us",
         "time_high_us", "energy_uj", "energy_low_uj", "energy_high_uj", "ram_bytes", "front")
"""Columns of a study without a baseline: its rows on the front."""


def run(name: str, jobs: int) -> tuple[str, str]:
    """Return the finding of a study and the data of its picture; says how long it took."""
    began = time.perf_counter()
    try:
        done = twin.run_study(name, OUT / name, jobs=jobs)
    except StudyError:
        shutil.rmtree(OUT / name, ignore_errors=True)
        done = twin.run_study(name, OUT / name, jobs=jobs)
    took, table = time.perf_counter() - began, done.load_results()
    print(f"{name}: {len(table.rows)} configurations, {took:.1f} s", flush=True)
    text = (done.folder / "finding.md").read_text(encoding="utf-8")
    return text.replace("# ", "## ", 1), write_data(done.study.finding, table)


def write_data(finding: Finding | None, table: Table) -> str:
    """Return the data of a finding's picture as CSV: effects with their spread, or the front."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    if finding is None:
        networks = [name for name in table.axes if name.startswith("network.")]
        write([*networks, *FRONT])
        for row in table.predicted:
            if row.front:
                told = list_columns(row)
                write([*(told[f"in.{name}"] for name in networks), *(_shorten(told[name])
                                                                     for name in FRONT)])
        return out.getvalue()
    write([finding.vary, "figure", "median_ratio", "least_ratio", "most_ratio", "pairs"])
    for one in list_effects(table, finding):
        write([one.value, one.figure, *map(_shorten, (one.median, one.ratios[0], one.ratios[-1])),
               len(one.ratios)])
    return out.getvalue()


def _shorten(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def main(names: list[str]) -> None:
    """Run the named studies, or all of them."""
    jobs = os.cpu_count() or 1
    found = {name: run(name, jobs) for name in names or twin.list_studies()}
    if names:
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "findings.md").write_text(
        "# What the shipped studies find\n\nMade by `python -m benchmarks.studies`; the data of "
        "each picture is in NAME.csv beside this.\n\n"
        + "\n".join(text for text, _ in found.values()), encoding="utf-8")
    for name, (_, data) in found.items():
        (RESULTS / f"{name}.csv").write_text(data, encoding="utf-8")
    (RESULTS / "guide.md").write_text(twin.guidelines([OUT / name for name in TAUGHT]),
                                      encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
