"""`twin report`: all that is known of a deployment on one page that opens offline."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

import twin
from twin.cli.options import (
    AUTO,
    Anyway,
    ArenaRole,
    AssumeUnsupported,
    BoardName,
    CalibrationChoice,
    ClockText,
    Cold,
    MaxFlash,
    MaxMs,
    MaxRam,
    MaxUj,
    Model,
    RuntimeName,
    SetPaths,
    WeightsRole,
    check_outputs,
    deploy,
    parse_limit,
    parse_settings,
)
from twin.cli.output import note_written
from twin.cli.progress import Rate
from twin.errors import DoesNotFitError, UsageError

Output = Annotated[str, typer.Option(
    "--output", "-o", metavar="FILE", help="Where the page goes: a file ending in .html.")]
Measured = Annotated[str | None, typer.Option(
    "--measured", metavar="DIR", help="Set it beside a measurement: a folder of `twin measure` or "
                                      "`twin import`.")]
Published = Annotated[bool, typer.Option(
    "--published", help="Set it beside published measurements of this model and board.")]
Changes = Annotated[bool, typer.Option(
    "--changes/--no-changes", help="Try settings and rebuilds, and say which helps most.")]

NOT_MET = 1
"""Exit code where what was asked about does not fit."""


def report(model: Model, board: BoardName, output: Output = "report.html",
           measured: Measured = None, published: Published = False, max_ms: MaxMs = None,
           max_uj: MaxUj = None, max_ram: MaxRam = None, max_flash: MaxFlash = None,
           changes: Changes = True, runtime: RuntimeName = None, clock: ClockText = None,
           weights: WeightsRole = None, arena: ArenaRole = None, settings: SetPaths = None,
           cold: Cold = False, assume_unsupported: AssumeUnsupported = None,
           calibration: CalibrationChoice = AUTO, anyway: Anyway = False) -> None:
    """Write all that is known of a deployment on one page that opens offline."""
    check_page(output)
    limits = {
        "max_ms": parse_limit("max_ms", max_ms),
        "max_uj": parse_limit("max_uj", max_uj),
        "max_ram_bytes": parse_limit("max_ram", max_ram),
        "max_flash_bytes": parse_limit("max_flash", max_flash)}
    command = shlex.join(("twin", *sys.argv[1:]))
    try:
        deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights,
                            arena=arena, assume_unsupported=assume_unsupported,
                            settings=settings, calibration=calibration)
        if settings:
            deployment = deployment.replace(parse_settings(settings))
    except DoesNotFitError as error:
        from twin.reports.page.deployment import describe_refusal
        from twin.reports.page.page import render_page

        title = f"{Path(model).name} on {Path(board).name}"
        write_page(output, render_page(describe_refusal(title, f"{error}.", command)))
        raise typer.Exit(NOT_MET) from error
    with Rate() as rate:
        page = twin.report(
            deployment, measured=measured, published=published, limits=limits, changes=changes,
            anyway=anyway, temperature="cold" if cold else "warm", calibration=calibration,
            command=command, on_progress=rate.tell)
    write_page(output, page)


def check_page(output: str) -> None:
    """Refuse a page that could not be written, before anything is computed."""
    if not output.lower().endswith((".html", ".htm")):
        raise UsageError(f"{output}: a page ends in .html")
    check_outputs(output)


def write_page(output: str, page: str) -> None:
    """Write a page, and say so."""
    from twin.reports.export import write_file

    note_written(write_file(output, page.encode()))
