"""`twin check`: does it fit, and does it meet the limits."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import (
    AUTO,
    ArenaRole,
    AssumeUnsupported,
    BoardName,
    CalibrationChoice,
    ClockText,
    Cold,
    Model,
    RuntimeName,
    SetPaths,
    WeightsRole,
    deploy,
    parse_limit,
    parse_quantity,
    parse_settings,
)
from twin.cli.output import open_console, show, warn
from twin.errors import DoesNotFitError

MaxMs = Annotated[str | None, typer.Option(
    "--max-ms", metavar="MS", help="Longest time of an inference, in milliseconds, or as 0.2s.")]
MaxUj = Annotated[str | None, typer.Option(
    "--max-uj", metavar="UJ", help="Most energy of an inference, in microjoules, or as 5mJ.")]
MaxRam = Annotated[str | None, typer.Option(
    "--max-ram", metavar="SIZE", help="Most RAM, such as 64KiB.")]
Sure = Annotated[bool, typer.Option(
    "--sure", help="Limits are met only where the whole interval meets them: exit 1 where a limit "
                   "lies inside it.")]


def check(model: Model, board: BoardName, max_ms: MaxMs = None, max_uj: MaxUj = None,
          max_ram: MaxRam = None, runtime: RuntimeName = None, clock: ClockText = None,
          weights: WeightsRole = None, arena: ArenaRole = None, cold: Cold = False,
          assume_unsupported: AssumeUnsupported = None,
          calibration: CalibrationChoice = AUTO, sure: Sure = False,
          settings: SetPaths = None) -> None:
    """Say whether a model fits a board and meets limits."""
    from twin.reports.tables.limits import requirement_table

    most_ms = parse_limit(max_ms, "ns", "ms", "--max-ms")
    most_uj = parse_limit(max_uj, "pj", "uJ", "--max-uj")
    max_ram_bytes = None if max_ram is None else parse_quantity(max_ram, "bytes", "--max-ram")
    console = open_console()
    try:
        deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights,
                            arena=arena, assume_unsupported=assume_unsupported,
                            calibration=calibration,
                            settings=settings)
        if settings:
            deployment = deployment.replace(parse_settings(settings))
    except DoesNotFitError as error:
        show(console, str(error))
        raise typer.Exit(1) from error
    found = twin.check(deployment, max_ms=most_ms, max_uj=most_uj, max_ram_bytes=max_ram_bytes,
                       temperature="cold" if cold else "warm", calibration=calibration, sure=sure)
    show(console, requirement_table(found.requirements))
    if found.prediction.voltage:
        show(console, f"voltage {found.prediction.voltage}")
    warn(found.remarks)
    if not found.met:
        raise typer.Exit(1)
