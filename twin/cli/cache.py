"""`twin cache`: how a network fares in the caches of a core."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import twin
from twin.api.requests import BoardName, Deployed, Model, Option, prediction
from twin.cli.options import AsJson, check_outputs, command, deploy
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.progress import Steps
from twin.errors import UsageError

PlotFolder = Annotated[str | None, Option(
    "--plot", "DIR", "Write every picture as PNG into a folder.")]
Layer = Annotated[int | None, Option(
    "--layer", "INDEX", "Layer of the access map and the bus timeline; by default that with most "
    "misses.")]


@command
def cache(model: Model, board: BoardName, placed: Deployed, asked: prediction.Cache,
          as_json: AsJson = False, plot: PlotFolder = None, layer: Layer = None) -> None:
    """Show what a network's accesses meet in the data caches, layer by layer."""
    check_outputs(folder=plot)
    if plot is not None and Path(plot).suffix == ".png":
        raise UsageError(f"--plot {plot}: is a file; accepted: a folder, for there are several "
                         "pictures")
    from twin.api.commands.cache import check_axes, check_layer, sweep_axes

    check_axes(asked.sweep)
    deployment = deploy(model, board, placed, asked.calibration)
    with Steps("caches counted") as steps:
        steps.tell(0, 1, f"{deployment.graph.name} on {deployment.board.name}"
                         + (f", over {' and '.join(asked.sweep)}" if asked.sweep else ""))
        report = twin.cache(deployment, **asked.arguments)
    check_layer(report.locality, layer)
    if as_json:
        show_json(report)
    else:
        from twin.reports.tables.locality import locality_report

        console = open_console()
        show(console, locality_report(report.locality, report.policies, report.points, console,
                                      report.prices))
    if not report.locality.caches:
        warn([f"{deployment.board.name}: no data cache is in use"])
    if plot is not None:
        from twin.reports.figures.cache_sheet import write_cache_pictures

        for path in write_cache_pictures(
                report.locality, report.points or sweep_axes(report.locality), plot, layer):
            note_written(path)
