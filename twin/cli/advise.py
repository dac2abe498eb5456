"""`twin advise`: the cheapest change that makes a deployment meet limits."""

from __future__ import annotations

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
    MaxFlash,
    MaxMs,
    MaxRam,
    MaxUj,
    Model,
    RuntimeName,
    SetPaths,
    WeightsRole,
    deploy,
    parse_settings,
)
from twin.cli.output import open_console, show, show_json, warn
from twin.cli.progress import Rate

Effort = Annotated[str, typer.Option(
    "--effort", metavar="CLASS", help="The dearest class of changes: setting, rebuild, conversion "
                                      "or retraining.")]
Thorough = Annotated[bool, typer.Option(
    "--thorough", help="Try dearer classes too where a cheaper one has a change that is sure.")]


def advise(model: Model, board: BoardName, max_ms: MaxMs = None, max_uj: MaxUj = None,
           max_ram: MaxRam = None, max_flash: MaxFlash = None, effort: Effort = "retraining",
           thorough: Thorough = False, runtime: RuntimeName = None, clock: ClockText = None,
           weights: WeightsRole = None, arena: ArenaRole = None, settings: SetPaths = None,
           cold: Cold = False, as_json: AsJson = False,
           assume_unsupported: AssumeUnsupported = None,
           calibration: CalibrationChoice = AUTO) -> None:
    """Find the cheapest change that meets limits; exit 1 where none does."""
    from twin.verbs.advise import efforts_up_to

    efforts = efforts_up_to(effort)
    deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=assume_unsupported, settings=settings,
                        calibration=calibration)
    if settings:
        deployment = deployment.replace(parse_settings(settings))
    with Rate() as rate:
        advice = twin.advise(
            deployment, max_ms=max_ms, max_uj=max_uj, max_ram=max_ram, max_flash=max_flash,
            efforts=efforts, thorough=thorough, temperature="cold" if cold else "warm",
            calibration=calibration, on_progress=rate.tell)
    if as_json:
        show_json(advice)
    else:
        from twin.reports.tables.advice import advice_report

        show(open_console(), advice_report(advice))
    warn(deployment.chosen)
    if not advice.met and advice.best is None:
        raise typer.Exit(1)
