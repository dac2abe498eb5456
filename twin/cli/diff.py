"""`twin diff`: two predictions, or two measurements: what changed, and why."""

from __future__ import annotations

import math
import re
import sys
from typing import Annotated

import typer

from twin.cli.options import Anyway, AsJson
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

Before = Annotated[str, typer.Argument(
    metavar="A", help="Before: a prediction's JSON, or a measurement folder.")]
After = Annotated[str, typer.Argument(metavar="B", help="After: of the same kind.")]
Later = Annotated[list[str] | None, typer.Argument(
    metavar="[C ...]", help="Later measurements of the same board: a series, in time order.")]
AsSeries = Annotated[bool, typer.Option(
    "--series", help="A and B are a series, too: exit 1 when the level moved, and since which "
                     "run.")]
Increase = Annotated[str | None, typer.Option(
    "--max-increase", metavar="PERCENT", help="Exit 1 when time, energy, memory ... grows by more, "
                                              "such as 2%.")]
EveryPart = Annotated[bool, typer.Option(
    "--layers", help="The limit holds for every layer, too.")]
JunitFile = Annotated[str | None, typer.Option(
    "--junit", metavar="FILE", help="Write JUnit XML.")]
BencherFile = Annotated[str | None, typer.Option(
    "--bencher", metavar="FILE", help="Write B in Bencher's metric format (JSON).")]


def diff(before: Before, after: After, later: Later = None, max_increase: Increase = None,
         layers: EveryPart = False, series: AsSeries = False, junit: JunitFile = None,
         bencher: BencherFile = None, as_json: AsJson = False, anyway: Anyway = False) -> None:
    """Compare two predictions, or two measurements: what changed, and the cause of each change."""
    if later or series:
        if max_increase is not None or layers or junit is not None or bencher is not None:
            raise UsageError("a series has no limit and no report file: --max-increase, --layers, "
                             "--junit and --bencher are of two sides")
        follow([before, after, *(later or ())], as_json)
        return
    limit = None if max_increase is None else parse_percent(max_increase)
    if layers and limit is None:
        raise UsageError("--layers needs --max-increase PERCENT")
    from twin.attribution.ci import describe_increase, to_bencher, write_junit
    from twin.attribution.document import difference_document
    from twin.attribution.views import diff_files
    from twin.prediction.document import dump_document
    from twin.reports.export import check_place, write_file

    for place in (junit, bencher):
        if place is not None:
            check_place(place)
    difference = diff_files(before, after, anyway=anyway)
    exceeding = () if limit is None else difference.exceeding(limit, with_parts=layers)
    if as_json:
        sys.stdout.write(dump_document(difference_document(difference, limit, exceeding)))
    else:
        from twin.reports.tables.difference import difference_report

        show(open_console(), difference_report(difference, limit))
    if junit is not None:
        note_written(write_file(junit, write_junit(
            difference, math.inf if limit is None else limit, with_parts=layers)))
    if bencher is not None:
        note_written(write_file(bencher, dump_document(to_bencher(difference.second)).encode()))
    warn(difference.warnings)
    spread = max(difference.first.spread, difference.second.spread)
    if limit is not None and spread > limit:
        warn([f"runs scatter by {100 * spread:.1f} % (p95 / p50), more than the limit: a change of "
              "that size may be noise"])
    if exceeding:
        assert limit is not None
        warn(describe_increase(row, limit) for row in exceeding)
        raise typer.Exit(1)


def follow(places: list[str], as_json: bool) -> None:
    """Say whether the level of measurements in time order moved; exit 1 when it did."""
    from dataclasses import asdict
    from pathlib import Path

    from calibration.measurement.measurement import read_measurement
    from twin.attribution.series import follow_series
    from twin.learning.folders import find_folder
    from twin.prediction.document import dump_document

    folders = [find_folder(Path(place)) for place in places]
    found = follow_series([(str(folder), read_measurement(folder)) for folder in folders])
    if as_json:
        sys.stdout.write(dump_document({"schema": 1, "kind": "series", **asdict(found)}))
    else:
        from twin.reports.tables.series import series_report

        show(open_console(), series_report(found))
    if found.change is not None:
        raise typer.Exit(1)


def parse_percent(text: str) -> float:
    """Read a share: "2%", "2 %" or "0.02".

    Raises
    ------
    UsageError
        When it is none, or negative.
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", text)
    if match is None:
        raise UsageError(f"--max-increase {text!r} is not understood; accepted: a percentage from "
                         "0 on, such as 2%")
    share = float(match[1]) / (100 if match[2] else 1)
    if not match[2] and share >= 1:
        raise UsageError(f"--max-increase {text!r}: {100 * share:g} % is meant? write {text}%")
    return share
