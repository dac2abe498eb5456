"""`twin calibrate`: measurements become prices, written as an overlay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import twin
from twin.api.requests import Option
from twin.cli.options import AsJson, check_outputs, command
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.fitting.overlay import Learnt, Overlay

PUBLISHED = "published"

DataNames = Annotated[list[str], Option(
    "", "DATA...", "Measurement folders of one board; or `published`: every published result that "
    "may be learnt from.")]
OfBoard = Annotated[str | None, Option(
    "--board -b", "BOARD", "Board the folders were measured on.")]
Output = Annotated[str | None, Option(
    "--output -o", "FILE", "Overlay to write, by default BOARD.overlay.yaml; with `published` a "
    "folder of overlays.")]
ForRuntime = Annotated[str | None, Option(
    "--runtime", "NAME", "Library the folders are of, where they do not say; whose prices "
    "micro-benchmarks correct, by default that of their plan.")]
CacheFolder = Annotated[str | None, Option(
    "--cache", "DIR", "Keep counts here, by content, for the next time.")]


@command
def calibrate(data: DataNames, board: OfBoard = None, output: Output = None,
              cache: CacheFolder = None, runtime: ForRuntime = None,
              as_json: AsJson = False) -> None:
    """Learn prices from measurements and write them as an overlay."""
    if PUBLISHED in data:
        if len(data) > 1 or board is not None:
            raise UsageError("`published` is calibrated on its own, without --board")
        check_outputs(folder=output)
        found = twin.calibrate_published(output, cache=cache,
                                         on_overlay=note_published if as_json else show_published)
        if as_json:
            show_json(found)
        return
    if board is None:
        raise UsageError("--board is needed: which board was measured?")
    target = output or f"{twin.show_board(board).name}.overlay.yaml"
    overlay = twin.calibrate(data, board, runtime=runtime, output=target, cache=cache,
                             on_remark=lambda remark: warn([remark]))
    if as_json:
        show_json(overlay)
    else:
        show_overlay(overlay)
    note_written(Path(target))


def note_published(overlay: Overlay, board: str | None, path: Path | None) -> None:
    """Say where an overlay was written."""
    if path is not None:
        note_written(path)


def show_published(overlay: Overlay, board: str | None, path: Path | None) -> None:
    """Print an overlay of a board, and where it was written."""
    if board is not None:
        show_overlay(overlay)
    note_published(overlay, board, path)


def show_overlay(overlay: Overlay) -> None:
    """Print what was learnt, and what could not be."""
    from twin.reports.tables.calibration import overlay_table

    console = open_console()
    for entry in overlay.entries:
        if entry.time.rows or entry.time.residuals:
            show(console, overlay_table(overlay, entry))
            warn(f"{entry.runtime} on {entry.board}: {said}"
                 for said in _name_doubtful(entry.time, overlay.time_prices))


def _name_doubtful(time: Learnt, names: Sequence[str]) -> Iterator[str]:
    """Say which prices are no findings, and why."""
    tied = [name for name in time.tied if name not in time.unidentified]
    for found, why in (
            (time.unidentified, "not told from the rest: each keeps its prior"),
            (tied, "no row asks for prices of their own: fitted as one, and none is a finding by "
                   "itself; micro-benchmarks tell (twin plan)"),
            (time.strained(names), "further from what is stated than it is unsure: it stands for "
                                   "what no price counts, and is no finding; micro-benchmarks "
                                   "tell (twin plan)")):
        if found:
            yield f"{', '.join(found)}: {why}"
