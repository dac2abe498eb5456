"""`twin compare`: predicted beside published results of the same model and board."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli.options import BoardName, Model, PlotFile
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

Published = Annotated[bool, typer.Option(
    "--published", help="Compare with published measurements of this model and board.")]


def compare(model: Model, board: BoardName, published: Published = False,
            plot: PlotFile = None) -> None:
    """Set predictions beside published results."""
    if not published:
        raise UsageError("compare with what? accepted: --published")
    if plot is not None:
        from pathlib import Path

        from twin.figures.canvas import check_suffix

        check_suffix(Path(plot))
    from hwmodels.board_file import load_board
    from twin.published import compare_published
    from twin.readers import read_model
    from twin.tables.comparison import published_report

    graph, machine = read_model(model), load_board(board)
    comparisons = compare_published(graph, machine.name)
    show(open_console(), published_report(graph.name, machine.name, comparisons))
    predicted = [comparison for comparison in comparisons if comparison.predicted_ms is not None]
    if plot is not None and predicted:
        from twin.figures.canvas import save_figure
        from twin.figures.published import draw_published

        note_written(save_figure(draw_published(graph.name, machine, predicted), plot))
    elif plot is not None:
        warn([f"{plot}: not written, nothing to set side by side"])
