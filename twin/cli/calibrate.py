"""`twin calibrate`: measurements become prices, written as an overlay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.fitting.overlay import Overlay

PUBLISHED = "published"

DataNames = Annotated[list[str], typer.Argument(
    metavar="DATA...", help="Measurement folders of one board; or `published`: every published "
                            "result that may be learnt from.")]
OfBoard = Annotated[str | None, typer.Option(
    "--board", "-b", metavar="BOARD", help="Board the folders were measured on.")]
Output = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="FILE", help="Overlay to write, by default BOARD.overlay.yaml; with "
                                           "`published` a folder of overlays.")]
ForRuntime = Annotated[str | None, typer.Option(
    "--runtime", metavar="NAME", help="Whose prices micro-benchmarks are to correct; by default "
                                      "the runtime their plan was made for.")]
CacheFolder = Annotated[str | None, typer.Option(
    "--cache", metavar="DIR", help="Keep counts here, by content, for the next time.")]


def calibrate(data: DataNames, board: OfBoard = None, output: Output = None,
              cache: CacheFolder = None, runtime: ForRuntime = None) -> None:
    """Learn prices from measurements and write them as an overlay."""
    kept = None if cache is None else Path(cache)
    if PUBLISHED in data:
        if len(data) > 1 or board is not None:
            raise UsageError("`published` is calibrated on its own, without --board")
        calibrate_published(output, kept)
        return
    if board is None:
        raise UsageError("--board is needed: which board was measured?")
    from calibration.fitting.overlay import write_overlay
    from hwmodels.board.file import load_board
    from twin.learning.folders import warm_of_campaign
    from twin.learning.observations import observe_folder
    from twin.learning.portability.probed import learn_all, learn_probes, split_folders

    machine = load_board(board)
    probes, folders = split_folders(map(warm_of_campaign, data))
    if runtime is not None and not probes:
        raise UsageError("--runtime is for micro-benchmarks; a network's folder names its own")
    probed = learn_probes(probes, machine, runtime) if probes else None
    observations = [one for folder in folders
                    for one in observe_folder(folder, board, cache=kept)]
    if probed is not None:
        warn(probed.remarks)
    overlay = learn_all(observations, probed, machine)
    show_overlay(overlay)
    note_written(write_overlay(output or f"{machine.name}.overlay.yaml", overlay))


def calibrate_published(output: str | None, cache: Path | None) -> None:
    """Learn from every published row that may be learnt from; write the overlays to ship."""
    from calibration.datasets import published_rows
    from calibration.fitting.lineages import SHIPPED
    from calibration.fitting.overlay import shipped_path, write_overlay
    from twin.learning.observations import observe_pmu_layers, observe_rows
    from twin.learning.overlays import learn, make_overlays

    observations = (*observe_rows(published_rows(), cache=cache),
                    *observe_pmu_layers(cache=cache))
    overlays = make_overlays(learn(observations))
    for (library, board), overlay in overlays.items():
        if board is not None:
            show_overlay(overlay)
        if output is not None:
            path = Path(output) / shipped_path(library, board).relative_to(SHIPPED)
            path.parent.mkdir(parents=True, exist_ok=True)
            note_written(write_overlay(path, overlay))


def show_overlay(overlay: Overlay) -> None:
    """Print what was learnt, and what could not be."""
    from twin.reports.tables.calibration import overlay_table

    console = open_console()
    for entry in overlay.entries:
        if entry.time.rows or entry.time.residuals:
            show(console, overlay_table(overlay, entry))
            warn(f"{entry.runtime} on {entry.board}: {name} cannot be told from the rest and keeps "
                 "its prior" for name in entry.time.unidentified)
