"""`twin sweep`: every combination of models, boards and settings as one table."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import (
    AUTO,
    AsJson,
    AssumeUnsupported,
    BoardNames,
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
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.progress import Rate
from twin.cli.studying import (
    Objectives,
    PlotTarget,
    Prices,
    RowCount,
    TableFile,
    check_places,
    show_table,
)

SETTINGS = ("Values of a what-if path: a,b,c (a;b where values have commas), LOW..HIGH:COUNT or, "
            "with --sample, LOW..HIGH; may be given several times.")
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUES", help=SETTINGS)]
Runtimes = Annotated[str | None, typer.Option(
    "--runtime", metavar="NAME,...", help="Runtimes; best (known on each board, the default), "
                                          "measured (there) or each.")]
Clocks = Annotated[str | None, typer.Option(
    "--clock", metavar="FREQUENCY,...", help="CPU clocks at their lowest voltage; own (the "
                                             "default) or each: the top of every voltage scale.")]
SamplePlan = Annotated[str | None, typer.Option(
    "--sample", metavar="METHOD:COUNT", help="Points drawn instead of all: sobol:500, lhs:100, "
                                             "random:50.")]


def sweep(models: Models, boards: BoardNames, settings: Settings = None,
          runtimes: Runtimes = None, clocks: Clocks = None, sample: SamplePlan = None,
          max_ms: MaxMs = None, max_uj: MaxUj = None, max_ram: MaxRam = None,
          max_flash: MaxFlash = None, max_usd: MaxUsd = None,
          objectives: Objectives = "time,energy", rows: RowCount = 40, output: TableFile = None,
          plot: PlotTarget = None, page: PageFile = None, prices: Prices = None, cold: Cold = False,
          as_json: AsJson = False, assume_unsupported: AssumeUnsupported = None,
          calibration: CalibrationChoice = AUTO) -> None:
    """Predict every combination of models, boards and settings; mark the Pareto front."""
    from twin.verbs.select import parse_prices

    check_places(output, plot)
    check_page(page)
    own = parse_prices(prices)
    with Rate() as rate:
        table = twin.sweep(
            models, boards, settings=parse_settings(settings) if settings else None,
            runtimes=runtimes or (), clocks=clocks or (), sample=sample, max_ms=max_ms,
            max_uj=max_uj, max_ram=max_ram, max_flash=max_flash, max_usd=max_usd,
            objectives=objectives, prices=own, temperature="cold" if cold else "warm",
            calibration=calibration, assume_unsupported=assume_unsupported,
            on_progress=rate.tell)
    write_result(table, page)
    show_table(table, output=output, plot=plot, as_json=as_json, rows=rows)
