"""`twin compare`: predicted beside published results, or beside a measurement."""

from __future__ import annotations

import itertools
from os import PathLike
from typing import Annotated

import twin
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
from twin.cli.options import AsJson, PlotFile, check_picture, command
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.errors import UsageError

Published = Annotated[bool, Option(
    "--published", None, "Compare with published measurements of this model and board.")]
Measured = Annotated[str | None, Option(
    "--measured", "DIR", "Compare with a measurement, layer by layer or epoch by epoch: a folder "
    "of `twin measure` or `twin import`.")]

STATED = "calibration: none: stated prices, which no published row was looked at for"
LEARNT = ("calibration: {}; rows of use fit were learnt from where the overlay is shipped: their "
          "ratios are in sample (--calibration none: stated prices)")


@command
def compare(models: ModelNames, boards: BoardNames, published: Published = False,
            measured: Measured = None, runtime: Runtime = None, clock: Clock = None,
            plot: PlotFile = None, page: PageFile = None, calibration: Calibration = AUTO,
            anyway: Anyway = False, as_json: AsJson = False) -> None:
    """Set predictions beside published results, or beside a measurement."""
    if published == (measured is not None):
        raise UsageError("compare with what? accepted: --published, or --measured DIR"
                         if not published else "--published and --measured exclude each other")
    check_picture(plot)
    check_page(page)
    if measured is None and len(models) * len(boards) > 1:
        refuse_beside(plot, page, runtime, clock, anyway)
        compare_several(models, boards, calibration, as_json=as_json)
        return
    if len(models) * len(boards) > 1:
        raise UsageError("--measured is of one network on one board; accepted: one MODEL, one -b")
    (model,), (board,) = models, boards
    if measured is None:
        if runtime is not None or clock is not None or anyway:
            raise UsageError("--published predicts each row with its own runtime and clock; "
                             "--runtime, --clock and --anyway go with --measured")
        compare_published(model, board, plot, calibration, page=page, as_json=as_json)
        return
    view = twin.compare(model, board, measured, runtime=runtime, clock_hz=clock,
                        calibration=calibration, anyway=anyway)
    warn(view.remarks)
    write_result(view, page)
    if as_json:
        show_json(view)
    else:
        from twin.reports.tables.difference import compare_report

        console = open_console()
        if calibration == "none" and view.epochs is None:
            show(console, STATED)
        show(console, compare_report(view))
    if plot is not None:
        from twin.reports.figures.beside import draw_beside
        from twin.reports.figures.canvas import save_figure

        note_written(save_figure(draw_beside(view), plot))


def compare_published(model: str, board: str, plot: str | None,
                      calibration: str | PathLike[str], *,
                      page: str | None, as_json: bool) -> None:
    """Show predictions beside the open published rows of a network on a board."""
    view = twin.compare_published(model, board, calibration=calibration)
    write_result(view, page)
    if as_json:
        show_json(view)
    else:
        from twin.reports.tables.published import published_report

        console = open_console()
        if view.comparisons:
            show(console, STATED if calibration == "none" else LEARNT.format(calibration))
        show(console, published_report(view.model, view.board.name, view.comparisons))
    drawn = [one for one in view.comparisons if one.prediction is not None and not one.sealed]
    if plot is not None and drawn:
        from twin.reports.figures.beside import draw_published
        from twin.reports.figures.canvas import save_figure

        note_written(save_figure(draw_published(view.model, view.board, drawn,
                                                learnt=calibration != "none"), plot))
    elif plot is not None:
        warn([f"{plot}: not written, nothing to set side by side"])


def refuse_beside(*given: object) -> None:
    """Refuse options of one network on one board beside several."""
    if any(given):
        raise UsageError("--plot, --report, --runtime, --clock and --anyway: not with several "
                         "models or boards; accepted: one MODEL, one -b")


def compare_several(models: list[str], boards: list[str],
                    calibration: str | PathLike[str], *,
                    as_json: bool) -> None:
    """Show predictions of several networks or boards beside their open published rows."""
    from twin.cli.progress import Steps

    pairs = list(itertools.product(dict.fromkeys(models), dict.fromkeys(boards)))
    views = []
    with Steps("compared") as steps:
        for done, (model, board) in enumerate(pairs):
            steps.tell(done, len(pairs), f"{model} on {board}")
            views.append(twin.compare_published(model, board, calibration=calibration))
    if as_json:
        show_json(views)
        return
    from twin.reports.tables.published import several_report

    console = open_console()
    show(console, STATED if calibration == "none" else LEARNT.format(calibration))
    show(console, several_report([(view.model, view.board.name, view.comparisons)
                                  for view in views]))
