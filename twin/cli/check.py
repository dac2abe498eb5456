"""`twin check`: does it fit, and does it meet the limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

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
    WeightsRole,
    deploy,
    parse_quantity,
)
from twin.cli.output import open_console, show, warn

if TYPE_CHECKING:
    from twin.prediction.limits import Requirement
    from twin.prediction.prediction import Prediction

MaxMs = Annotated[float | None, typer.Option(
    "--max-ms", min=0.0, metavar="MS", help="Longest time of an inference, in milliseconds.")]
MaxUj = Annotated[float | None, typer.Option(
    "--max-uj", min=0.0, metavar="UJ", help="Most energy of an inference, in microjoules.")]
MaxRam = Annotated[str | None, typer.Option(
    "--max-ram", metavar="SIZE", help="Most RAM, such as 64KiB.")]
Sure = Annotated[bool, typer.Option(
    "--sure", help="Limits are met only where the whole interval meets them: exit 1 where a limit "
                   "lies inside it.")]


def check(model: Model, board: BoardName, max_ms: MaxMs = None, max_uj: MaxUj = None,
          max_ram: MaxRam = None, runtime: RuntimeName = None, clock: ClockText = None,
          weights: WeightsRole = None, arena: ArenaRole = None, cold: Cold = False,
          assume_unsupported: AssumeUnsupported = None,
          calibration: CalibrationChoice = AUTO, sure: Sure = False) -> None:
    """Say whether a model fits a board and meets limits."""
    from twin.errors import DoesNotFitError, UsageError
    from twin.learning.calibrated import predict_calibrated
    from twin.reports.tables.limits import requirement_table

    for option, limit in (("--max-ms", max_ms), ("--max-uj", max_uj)):
        if limit is not None and not 0 < limit < math.inf:
            raise UsageError(f"{option} {limit}: is no limit; accepted: a number above 0")
    max_ram_bytes = None if max_ram is None else parse_quantity(max_ram, "bytes", "--max-ram")
    console = open_console()
    try:
        deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights,
                            arena=arena, assume_unsupported=assume_unsupported)
    except DoesNotFitError as error:
        show(console, str(error))
        raise typer.Exit(1) from error
    prediction = predict_calibrated(deployment, temperature="cold" if cold else "warm",
                                    calibration=calibration)
    requirements = list_requirements(prediction, max_ms, max_uj, max_ram_bytes)
    if sure:
        require_intervals(requirements)
    show(console, requirement_table(requirements))
    warn(prediction.warnings)
    if sure:
        warn(f"--sure: {one.name} may exceed its limit" for one in requirements
             if one.met and not one.surely_met)
    if not all(one.surely_met if sure else one.met for one in requirements):
        raise typer.Exit(1)


def require_intervals(requirements: list[Requirement]) -> None:
    """Refuse to be sure of a time or an energy that is a point."""
    from twin.errors import UsageError

    for one in requirements:
        if one.unit != "bytes" and one.predicted is not None and one.interval is None:
            raise UsageError(f"--sure: no interval of {one.name} is known, for no measurement "
                             "stands behind it; accepted: a board, runtime or --calibration "
                             f"with one of {one.name}")


def list_requirements(prediction: Prediction, max_ms: float | None, max_uj: float | None,
                      max_ram_bytes: float | None) -> list[Requirement]:
    """Return what a deployment must meet: its memories, and the limits that were asked."""
    from twin.prediction.limits import Requirement

    certainty = prediction.certainty
    ram = prediction.deployment.plan.filled or {
        "RAM": (prediction.ram_bytes, prediction.ram_available_bytes)}
    requirements = [
        *(Requirement(name=f"fits {name}", unit="bytes", predicted=used, limit=size)
          for name, (used, size) in ram.items()),
        Requirement(name="fits flash", unit="bytes", predicted=prediction.flash_bytes,
                    limit=prediction.flash_available_bytes),
    ]
    if max_ms is not None:
        requirements.append(Requirement(
            name="time", unit="ms", limit=max_ms, decimals=3, predicted=prediction.time_us / 1e3,
            interval=None if certainty is None else replace(
                certainty.time_us, low=certainty.time_us.low / 1e3,
                high=certainty.time_us.high / 1e3)))
    if max_uj is not None:
        requirements.append(Requirement(
            name="energy", unit="uJ", limit=max_uj, decimals=1, predicted=prediction.energy_uj,
            interval=None if certainty is None else certainty.energy_uj))
    if max_ram_bytes is not None:
        requirements.append(Requirement(name="RAM", unit="bytes", limit=max_ram_bytes,
                                        predicted=prediction.ram_bytes))
    return requirements
