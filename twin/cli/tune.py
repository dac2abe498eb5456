"""`twin tune`: tiles and levels of our own kernels, chosen by prediction and judged by counts."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import AsJson, BoardName, Model
from twin.cli.output import open_console, show, show_json
from twin.cli.progress import Steps
from twin.errors import UsageError

Tiles = Annotated[str, typer.Option(
    "--tiles", metavar="N,N", help="Windows a convolution copies at a time.")]
Levels = Annotated[str, typer.Option(
    "--levels", metavar="LEVEL,LEVEL", help="Of the runtime firmware: O2, Os, clang-O2 ...")]
Virtual = Annotated[str | None, typer.Option(
    "--virtual", metavar="NAME", help="Where the best few run; by default the board's core in "
                                      "Unicorn.")]
Best = Annotated[int, typer.Option("--best", metavar="N", help="How many are built and run.")]


def tune(model: Model, board: BoardName, tiles: Tiles = "1,2,4,8,16", levels: Levels = "O2",
         virtual: Virtual = None, best: Best = 3, as_json: AsJson = False) -> None:
    """Choose the tile of the firmware's kernels by prediction; run the best few, keep the best."""
    try:
        wanted = [int(one) for one in tiles.split(",") if one.strip()]
    except ValueError:
        wanted = []
    if not wanted:
        raise UsageError(f"--tiles {tiles!r}; accepted: whole numbers by commas")
    with Steps("built and run") as steps:
        tuned = twin.tune(model, board, virtual=virtual, tiles=wanted, best=best,
                          levels=[one.strip() for one in levels.split(",") if one.strip()],
                          on_progress=steps.tell)
    if as_json:
        show_json(tuned)
        return
    from twin.reports.tables.tuning import tuning_report

    show(open_console(), tuning_report(tuned))
