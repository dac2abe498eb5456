"""`twin cache`: how a network fares in the caches of a core."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import twin
from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    AssumeUnsupported,
    BoardName,
    CalibrationChoice,
    ClockText,
    Cold,
    Model,
    RuntimeName,
    WeightsRole,
    check_outputs,
    deploy,
    parse_settings,
)
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.progress import Steps
from twin.errors import UsageError

Sweep = Annotated[str | None, typer.Option(
    "--sweep", metavar="size,ways", help="Miss ratios over cache sizes, ways, or both.")]
Settings = Annotated[list[str] | None, typer.Option(
    "--set", metavar="PATH=VALUE", help="As for `twin whatif`; may be given several times.")]
PlotFolder = Annotated[str | None, typer.Option(
    "--plot", metavar="DIR", help="Write every picture as PNG into a folder.")]
Layer = Annotated[int | None, typer.Option(
    "--layer", metavar="INDEX", help="Layer of the access map and the bus timeline; by default "
                                     "that with most misses.")]


def cache(model: Model, board: BoardName, runtime: RuntimeName = None, clock: ClockText = None,
          weights: WeightsRole = None, arena: ArenaRole = None, cold: Cold = False,
          settings: Settings = None, sweep: Sweep = None, as_json: AsJson = False,
          plot: PlotFolder = None, layer: Layer = None,
          assume_unsupported: AssumeUnsupported = None,
          calibration: CalibrationChoice = AUTO) -> None:
    """Show what a network's accesses meet in the data caches, layer by layer."""
    axes = () if sweep is None else tuple(part.strip() for part in sweep.split(","))
    check_outputs(folder=plot)
    if plot is not None and Path(plot).suffix == ".png":
        raise UsageError(f"--plot {plot}: is a file; accepted: a folder, for there are several "
                         "pictures")
    from twin.verbs.cache import check_axes, check_layer, sweep_axes

    check_axes(axes)
    deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=assume_unsupported, settings=settings,
                        calibration=calibration)
    if settings:
        deployment = deployment.replace(parse_settings(settings))
    with Steps("caches counted") as steps:
        steps.tell(0, 1, f"{deployment.graph.name} on {deployment.board.name}"
                         + (f", over {' and '.join(axes)}" if axes else ""))
        report = twin.cache(deployment, temperature="cold" if cold else "warm", sweep=axes,
                            calibration=calibration)
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
