"""`twin diagnose`: which fault of a set-up explains a measurement."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli.attribute import Healthy, Measured, MeasuredBoard
from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    CalibrationChoice,
    ClockText,
    Keep,
    RuntimeName,
    WeightsRole,
    parse_clock,
)
from twin.cli.output import open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.sessions import run_kept

ModelFile = Annotated[str | None, typer.Option(
    "--model", metavar="MODEL", help="By default the zoo's network of the measurement's name.")]


def diagnose(measured: Measured, model: ModelFile = None, board: MeasuredBoard = None,
             runtime: RuntimeName = None, clock: ClockText = None, weights: WeightsRole = None,
             arena: ArenaRole = None, healthy: Healthy = None, page: PageFile = None,
             as_json: AsJson = False, calibration: CalibrationChoice = AUTO,
             keep: Keep = None) -> None:
    """Rank misconfigurations by how well they explain the whole pattern over layers."""
    check_page(page)
    from twin.cli.progress import Steps

    with Steps("faults predicted") as steps:
        found = run_kept("diagnose", {
            "folder": measured, "model": model, "board": board, "runtime": runtime,
            "clock_hz": parse_clock(clock), "weights": weights, "arena": arena,
            "healthy": healthy, "calibration": calibration}, keep, on_progress=steps.tell)
    if as_json:
        show_json(found)
    else:
        from twin.reports.tables.diagnosis import diagnosis_report

        show(open_console(), diagnosis_report(found))
    warn(found.remarks)
    write_result(found, page)
