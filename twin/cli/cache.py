"""`twin cache`: how a network fares in the caches of a core."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    deploy,
    parse_settings,
)
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin.prediction.locality import Locality
    from twin.studies.caches import SweepPoint

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
    axes = _parse_sweep(sweep)
    if plot is not None and (Path(plot).suffix == ".png" or Path(plot).is_file()):
        raise UsageError(f"--plot {plot}: is a file; accepted: a folder, for there are several "
                         "pictures")
    from twin.learning.calibrated import apply_calibration, choose_calibration
    from twin.prediction.locality import measure_locality
    from twin.prediction.replacement import replacement_range

    deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=assume_unsupported)
    if settings:
        deployment = deployment.replace(parse_settings(settings))
    locality = measure_locality(deployment, cold=cold)
    known = [each.index for each in locality.layers]
    if layer is not None and layer not in known:
        raise UsageError(f"--layer {layer}; accepted: {', '.join(map(str, known))}")
    chosen = choose_calibration(deployment, calibration)
    policies = replacement_range(
        deployment if chosen is None else apply_calibration(deployment, chosen))
    prices = "stated" if chosen is None else chosen.description
    points = _sweep(locality, axes)
    if as_json:
        from twin.prediction.document import dump_document
        from twin.studies.caches import to_locality_document

        sys.stdout.write(dump_document(to_locality_document(
            locality, points, policies, prices)))
    else:
        from twin.reports.tables.locality import locality_report

        console = open_console()
        show(console, locality_report(locality, policies, points, console, prices))
    if not locality.caches:
        warn([f"{deployment.board.name}: no data cache is in use"])
    if plot is not None:
        _write_pictures(locality, points or _sweep(locality, ("size", "ways")), Path(plot), layer)


def _parse_sweep(text: str | None) -> tuple[str, ...]:
    axes = tuple(part.strip() for part in text.split(",")) if text is not None else ()
    if any(axis not in ("size", "ways") for axis in axes):
        raise UsageError(f"--sweep {text!r}; accepted: size, ways, or size,ways")
    return axes


def _sweep(locality: Locality, axes: tuple[str, ...]) -> tuple[SweepPoint, ...]:
    from twin.studies.caches import SIZES_BYTES, WAYS, sweep_caches

    if not axes or not locality.caches:
        return ()
    own = locality.caches[0]
    ways = sorted({*WAYS, own.ways}) if "ways" in axes else [own.ways]
    sizes = sorted({*SIZES_BYTES, own.size_bytes}) if "size" in axes else [own.size_bytes]
    return sweep_caches(locality.deployment, sizes, ways)


def _write_pictures(locality: Locality, points: tuple[SweepPoint, ...], folder: Path,
                    index: int | None) -> None:
    from twin.prediction.access_sample import run_layer_bus, sample_accesses
    from twin.reports.figures.access_map import draw_access_map_figure
    from twin.reports.figures.bus_timeline import draw_bus_figure
    from twin.reports.figures.cache_layers import draw_miss_rate_figure, draw_working_set_figure
    from twin.reports.figures.cache_sweep import draw_miss_curve_figure
    from twin.reports.figures.canvas import save_figure

    deployment, cold = locality.deployment, locality.temperature == "cold"
    if index is None:
        index = max(locality.layers, key=lambda layer: (layer.misses, layer.direct)).index
    position = next((place for place, layer in enumerate(deployment.executed.layers)
                     if layer.index == index), -1)
    pictures = {"working_set": draw_working_set_figure(locality),
                "miss_rate": draw_miss_rate_figure(locality)}
    if points and locality.accesses:
        pictures["miss_curve"] = draw_miss_curve_figure(locality, points)
    pictures["access_map"] = draw_access_map_figure(
        locality, sample_accesses(deployment, position, cold=cold))
    bus = run_layer_bus(deployment, position, cold=cold)
    if bus is not None:
        pictures["bus_timeline"] = draw_bus_figure(
            bus[1], f"{deployment.graph.name} on {deployment.board.name}, layer {index}, {bus[0]}")
    for name, figure in pictures.items():
        note_written(save_figure(figure, folder / f"{name}.png"))
