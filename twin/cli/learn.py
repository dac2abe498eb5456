"""Commands that set predictions beside measurements, and learn prices from those."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import twin
from twin.api.commands.predict import describe_numbers
from twin.api.requests import (
    AUTO,
    Anyway,
    BoardNames,
    Calibration,
    Clock,
    ModelNames,
    Option,
    Runtime,
)
from twin.api.requests.attribution import Attribute, Calibrate, Diagnose, Diff, Learnt, Why
from twin.cli.options import (
    AsJson,
    Json,
    Kept,
    Paged,
    Pictured,
    Target,
    check_outputs,
    command,
    present,
)
from twin.cli.output import note_files, note_written, open_console, show, show_json, show_view, warn
from twin.cli.progress import Steps
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.fitting.overlay import Overlay
    from hwmodels.board.facts import Board

PublishedRows = Annotated[bool, Option(
    "--published", None, "Compare with published measurements of this model and board.")]
Measured = Annotated[str | None, Option(
    "--measured", "DIR", "Compare with a measurement, layer by layer or epoch by epoch: a folder "
    "of `twin measure` or `twin import`.")]

STATED = "calibration: none: stated prices, which no published row was looked at for"
LEARNT = ("calibration: {}; rows of use fit, except those of accelerators and those whose arena "
          "lay elsewhere, were learnt from where the overlay is shipped: their ratios are in "
          "sample (--calibration none: stated prices)")


class Beside(Pictured):
    """A prediction beside a measurement as a picture."""

    draw = "beside:draw_beside"


@command
def compare(models: ModelNames, boards: BoardNames, published: PublishedRows = False,
            measured: Measured = None, runtime: Runtime = None, clock: Clock = None, *,
            plot: Beside, page: Paged, calibration: Calibration = AUTO,
            anyway: Anyway = False, json: Json) -> None:
    """Set predictions beside published results, or beside a measurement."""
    if published == (measured is not None):
        raise UsageError("compare with what? accepted: --published, or --measured DIR"
                         if not published else "--published and --measured exclude each other")
    stated = STATED if calibration == "none" else LEARNT.format(calibration)
    if measured is None and len(models) * len(boards) > 1:
        if plot.plot or page.page or runtime or clock or anyway:
            raise UsageError("--plot, --report, --runtime, --clock and --anyway: not with several "
                             "models or boards; accepted: one MODEL, one -b")
        compare_several(models, boards, calibration, stated, as_json=json.as_json)
        return
    if len(models) * len(boards) > 1:
        raise UsageError("--measured is of one network on one board; accepted: one MODEL, one -b")
    (model,), (board,) = models, boards
    if measured is None:
        if runtime is not None or clock is not None or anyway:
            raise UsageError("--published predicts each row with its own runtime and clock; "
                             "--runtime, --clock and --anyway go with --measured")
        compare_published(model, board, plot.plot, calibration, stated, page, json)
        return
    view = twin.compare(model, board, measured, runtime=runtime, clock_hz=clock,
                        calibration=calibration, anyway=anyway)
    if calibration == "none" and view.tasks is None and not json.as_json:
        show(open_console(), STATED)
    present(view, [page, plot, json], view="difference:compare_report", warnings=lambda _: (
        *view.remarks, *(describe_numbers(twin.deploy(
            model, board, runtime=view.difference.first.runtime), calibration)
            if view.difference.first.part == "layer" else ())))


def compare_published(model: str, board: str, plot: str | None, calibration: str | PathLike[str],
                      stated: str, page: Paged, json: Json) -> None:
    """Show predictions beside the open published rows of a network on a board."""
    view = twin.compare_published(model, board, calibration=calibration)
    if view.comparisons and not json.as_json:
        show(open_console(), stated)
    show_view(view, "published:published_report", view.model, view.board.name, view.comparisons,
              as_json=json.as_json)
    note_files(page.write(view))
    drawn = [one for one in view.opened if one.prediction is not None]
    warn(dict.fromkeys(line for one in drawn if one.prediction is not None
                       for line in describe_numbers(one.prediction.deployment, calibration)))
    if plot is not None and drawn:
        from twin.reports.figures.beside import draw_published
        from twin.reports.figures.canvas import save_figure

        note_written(save_figure(draw_published(view.model, view.board, drawn,
                                                learnt=calibration != "none"), plot))
    elif plot is not None:
        warn([f"{plot}: not written, nothing to set side by side"])


def compare_several(models: list[str], boards: list[str], calibration: str | PathLike[str],
                    stated: str, *, as_json: bool) -> None:
    """Show predictions of several networks or boards beside their open published rows."""
    pairs = list(itertools.product(dict.fromkeys(models), dict.fromkeys(boards)))
    views = []
    with Steps("compared") as steps:
        for done, (model, board) in enumerate(pairs):
            steps.tell(done, len(pairs), f"{model} on {board}")
            views.append(twin.compare_published(model, board, calibration=calibration))
    if not as_json:
        show(open_console(), stated)
    show_view(views, "published:several_report", [
        (view.model, view.board.name, view.comparisons) for view in views], as_json=as_json)


class Tabulated(Target):
    """Every row and cause of a comparison as a file."""

    csv_file: Annotated[str | None, Option(
        "--csv", "FILE", "Write every row and cause as CSV.")] = None

    def write_target(self, found: Any, target: str) -> Iterable[Path]:
        """Write the table."""
        from twin.reports.export import write_comparison

        return [write_comparison(found.difference, target)]


class Attributed(Pictured):
    """Gaps by cause as a picture."""

    draw = "beside:draw_attribution"

    def write_target(self, found: Any, target: str) -> Iterable[Path]:
        """Draw the account."""
        return super().write_target(found.difference, target)


@command(view="difference:attribute_report")
def attribute(asked: Attribute, json: Json, csv_file: Tabulated, plot: Attributed, page: Paged,
              keep: Kept) -> object:
    """Set a prediction beside a measurement: gaps per layer, by cause, and what explains them."""
    with Steps("predicting faults") as steps:
        return keep.run("attribute", asked, on_progress=steps.tell)


@command(view="diagnosis:diagnosis_report")
def diagnose(asked: Diagnose, page: Paged, json: Json, keep: Kept) -> object:
    """Rank faults of a set-up by how well they explain all layers."""
    with Steps("predicting faults") as steps:
        return keep.run("diagnose", asked, on_progress=steps.tell)


@command(view="why:why_report")
def why(asked: Why, json: Json, keep: Kept) -> object:
    """Say why one measured time is longer than expected; causes, their cost, what to change."""
    with Steps("predicted") as steps:
        steps.tell(0, 1, f"what each cause would do to {asked.model} on {asked.board}")
        return keep.run("why", asked)


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
MarkdownFile = Annotated[str | None, Option(
    "--markdown", "FILE", "Write Markdown for a comment of a pull request.")]
Before = Annotated[str, Diff.option("before")]
After = Annotated[str, Diff.option("after")]


@command
def diff(before: Before, after: After, later: Later = None, max_increase: Increase = None,
         layers: EveryPart = False, series: AsSeries = False, junit: JunitFile = None,
         bencher: BencherFile = None, markdown: MarkdownFile = None, *, page: Paged,
         as_json: AsJson = False, anyway: Anyway = False) -> None:
    """Compare two predictions, or two measurements: what changed, and the cause of each change."""
    if later or series:
        if layers or any(one is not None for one in (
                max_increase, junit, bencher, markdown, page.page)):
            raise UsageError("a series has no limit and no report file: --max-increase, --layers, "
                             "--junit, --bencher, --markdown and --report are of two sides")
        present(twin.diff_series([before, after, *(later or ())]), [Json(as_json=as_json)],
                view="series:series_report", ends=lambda found: not found.holds)
        return
    limit = None if max_increase is None else parse_percent(max_increase)
    if layers and limit is None:
        raise UsageError("--layers needs --max-increase PERCENT")
    check_outputs(junit, bencher, markdown)
    from twin.reports.ci import judge_limit

    difference = twin.diff(before, after, anyway=anyway)
    if as_json:
        show_json(difference, limit=limit, with_parts=layers)
    else:
        show_view(difference, "difference:difference_report", limit=limit)
    note_files(page.write(difference))
    write_reports(difference, limit, layers, junit, bencher, markdown)
    remarks, exceeds = judge_limit(difference, limit, with_parts=layers)
    warn((*difference.warnings, *remarks))
    if exceeds:
        raise typer.Exit(1)


def write_reports(difference: Any, limit: float | None, with_parts: bool,
                  junit: str | None, bencher: str | None, markdown: str | None) -> None:
    """Write the files a build server reads."""
    from twin.reports.ci import write_bencher, write_junit_file
    from twin.reports.comment import write_comment_file

    if junit is not None:
        note_written(write_junit_file(difference, junit, limit, with_parts=with_parts))
    if bencher is not None:
        note_written(write_bencher(difference, bencher))
    if markdown is not None:
        note_written(write_comment_file(difference, markdown, limit, with_parts=with_parts))


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


PUBLISHED = "published"
DataNames = Annotated[list[str], Calibrate.option("folders")]
OfBoard = Annotated[str | None, Calibrate.option("board")]
ForRuntime = Annotated[str | None, Calibrate.option("runtime")]
OfModel = Annotated[str | None, Calibrate.option("model")]
FromDoubtful = Annotated[bool, Calibrate.option("anyway")]


@command
def calibrate(data: DataNames, board: OfBoard = None, *, asked: Learnt, runtime: ForRuntime = None,
              model: OfModel = None, anyway: FromDoubtful = False, as_json: AsJson = False) -> None:
    """Learn prices from measurements and write them as an overlay."""
    if PUBLISHED in data:
        if len(data) > 1 or board is not None:
            raise UsageError("`published` is calibrated on its own, without --board")
        check_outputs(folder=asked.output)
        found = twin.calibrate_published(
            **asked.arguments, on_overlay=note_published if as_json else show_published)
        if as_json:
            show_json(found)
        return
    if board is None:
        raise UsageError("--board is needed: which board was measured?")
    measured = twin.show_board(board)
    target = Path(asked.output or f"{measured.name}.overlay.yaml")
    totals: list[Any] = []
    replaced = target.exists()
    overlay = twin.calibrate(
        data, board, runtime=runtime, model=model, output=target, anyway=anyway,
        on_remark=lambda remark: warn([remark]), on_total=totals.append)
    if as_json:
        show_json(overlay)
    else:
        show_overlay(overlay, measured)
        if totals:
            from twin.reports.tables.calibration import totals_table

            show(open_console(), totals_table(totals, "measured" if "measured" in overlay.data.kinds
                                              else overlay.data.kinds[0]))
    note_written(f"{target}, in place of the one that was there" if replaced else target)


def note_published(overlay: Overlay, board: str | None, path: Path | None) -> None:
    """Say where an overlay was written."""
    if path is not None:
        note_written(path)


def show_published(overlay: Overlay, board: str | None, path: Path | None) -> None:
    """Print an overlay of a board, and where it was written."""
    if board is not None:
        show_overlay(overlay)
    note_published(overlay, board, path)


def show_overlay(overlay: Overlay, board: Board | None = None) -> None:
    """Print what was learnt, and what could not be; beside what is shipped for a user's board."""
    from twin.api.commands.calibrate import find_start, name_doubted
    from twin.reports.tables.calibration import list_doubtful, overlay_table

    for entry in overlay.entries:
        if entry.time.rows or entry.time.residuals:
            start = None if board is None else find_start(overlay, entry, board)
            show(open_console(), overlay_table(overlay, entry, () if start is None else
                                               tuple(start.time.factors.tolist())))
            names = overlay.time_prices
            far = entry.time.strained(names) if board is None else name_doubted(
                overlay, entry, board)
            warn(f"{entry.runtime} on {entry.board}: {text}"
                 for text in list_doubtful(entry.time, names, far))
