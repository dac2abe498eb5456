"""`twin diff`: two predictions, or two measurements: what changed, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

import twin
from twin.api.requests import Anyway, Option
from twin.cli.options import AsJson, check_outputs, command
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin.attribution.difference import Difference

Before = Annotated[str, Option("", "A", "Before: a prediction's JSON, or a measurement folder.")]
After = Annotated[str, Option("", "B", "After: of the same kind.")]
Later = Annotated[list[str] | None, Option(
    "", "[C ...]", "Later measurements of the same board: a series, in time order.")]
AsSeries = Annotated[bool, Option(
    "--series", None, "A and B are a series, too: exit 1 when the level moved, and since which "
    "run.")]
Increase = Annotated[str | None, Option(
    "--max-increase", "PERCENT", "Exit 1 when time, energy, memory ... grows by more, such as 2%.")]
EveryPart = Annotated[bool, Option("--layers", None, "The limit holds for every layer, too.")]
JunitFile = Annotated[str | None, Option("--junit", "FILE", "Write JUnit XML.")]
BencherFile = Annotated[str | None, Option(
    "--bencher", "FILE", "Write B in Bencher's metric format (JSON).")]


@command
def diff(before: Before, after: After, later: Later = None, max_increase: Increase = None,
         layers: EveryPart = False, series: AsSeries = False, junit: JunitFile = None,
         bencher: BencherFile = None, page: PageFile = None, as_json: AsJson = False,
         anyway: Anyway = False) -> None:
    """Compare two predictions, or two measurements: what changed, and the cause of each change."""
    if later or series:
        if max_increase is not None or layers or junit is not None or bencher is not None \
                or page is not None:
            raise UsageError("a series has no limit and no report file: --max-increase, --layers, "
                             "--junit, --bencher and --report are of two sides")
        follow([before, after, *(later or ())], as_json)
        return
    limit = None if max_increase is None else parse_percent(max_increase)
    if layers and limit is None:
        raise UsageError("--layers needs --max-increase PERCENT")
    check_outputs(junit, bencher)
    check_page(page)
    from twin.reports.ci import judge_limit

    difference = twin.diff(before, after, anyway=anyway)
    if as_json:
        show_json(difference, limit=limit, with_parts=layers)
    else:
        from twin.reports.tables.difference import difference_report

        show(open_console(), difference_report(difference, limit))
    write_result(difference, page)
    write_reports(difference, limit, layers, junit, bencher)
    remarks, exceeds = judge_limit(difference, limit, with_parts=layers)
    warn((*difference.warnings, *remarks))
    if exceeds:
        raise typer.Exit(1)


def write_reports(difference: Difference, limit: float | None, with_parts: bool,
                  junit: str | None, bencher: str | None) -> None:
    """Write the files a build server reads."""
    from twin.reports.ci import write_bencher, write_junit_file

    if junit is not None:
        note_written(write_junit_file(difference, junit, limit, with_parts=with_parts))
    if bencher is not None:
        note_written(write_bencher(difference, bencher))


def follow(places: list[str], as_json: bool) -> None:
    """Say whether the level of measurements in time order moved; exit 1 when it did."""
    found = twin.diff_series(places)
    if as_json:
        show_json(found)
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
    match = re.fullmatch(r"([0-9]*\.[0-9]+|[0-9]+)\s*(%?)", text.strip())
    if match is None:
        raise UsageError(f"--max-increase {text!r} is not understood; accepted: a percentage from "
                         "0 on, such as 2%")
    share = float(match[1]) / (100 if match[2] else 1)
    if not match[2] and share >= 1:
        raise UsageError(f"--max-increase {text!r}: {100 * share:g} % is meant? write {text}%")
    return share
