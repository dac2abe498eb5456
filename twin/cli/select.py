"""`twin select`: boards and libraries ranked for networks under limits."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import (
    AUTO,
    AsJson,
    CalibrationChoice,
    Cold,
    MaxFlash,
    MaxMs,
    MaxRam,
    MaxUj,
    MaxUsd,
    Models,
    parse_settings,
)
from twin.cli.output import note_written, open_console, show, show_json
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.progress import Rate
from twin.cli.studying import Objectives, Prices, TableFile, check_places, write_places
from twin.cli.sweep import Clocks, Settings

SomeBoards = Annotated[list[str] | None, typer.Option(
    "--board", "-b", metavar="BOARD", help="A board to choose from; by default all that are "
                                           "shipped; may be given several times.")]
Libraries = Annotated[str, typer.Option(
    "--runtime", metavar="NAME,...", help="Runtimes to choose from: each a board may have, "
                                          "measured there, best, or names.")]
PlotTarget = Annotated[str | None, typer.Option(
    "--plot", metavar="FILE", help="Write the Pareto picture; into a folder (DIR/): all of them.")]
Suggest = Annotated[bool, typer.Option(
    "--advice/--no-advice", help="Whether to look for the nearest change that helps on boards "
                                 "that do not meet the limits.")]


def select(models: Models, boards: SomeBoards = None, max_ms: MaxMs = None, max_uj: MaxUj = None,
           max_ram: MaxRam = None, max_flash: MaxFlash = None, max_usd: MaxUsd = None,
           runtimes: Libraries = "each", clocks: Clocks = None, settings: Settings = None,
           objectives: Objectives = "time,energy,price", prices: Prices = None,
           advice: Suggest = True, output: TableFile = None, plot: PlotTarget = None,
           page: PageFile = None, cold: Cold = False, as_json: AsJson = False,
           calibration: CalibrationChoice = AUTO) -> None:
    """Rank boards and libraries for networks; exit 1 where none meets the limits."""
    from twin.verbs.select import parse_prices

    check_places(output, plot)
    check_page(page)
    own = parse_prices(prices)
    with Rate() as rate:
        found = twin.select(
            models, boards or None, settings=parse_settings(settings) if settings else None,
            runtimes=runtimes, clocks=clocks or (), max_ms=max_ms, max_uj=max_uj,
            max_ram=max_ram, max_flash=max_flash, max_usd=max_usd, objectives=objectives,
            prices=own, advise=advice, temperature="cold" if cold else "warm",
            calibration=calibration, on_progress=rate.tell)
    if as_json:
        show_json(found)
    else:
        from twin.reports.tables.selection import selection_report

        console = open_console()
        show(console, selection_report(found, console))
    for path in write_places(found.table, output, plot):
        note_written(path)
    write_result(found, page)
    if not found.feasible:
        raise typer.Exit(1)
