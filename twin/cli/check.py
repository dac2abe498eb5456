"""`twin check`: does it fit, and does it meet the limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

import twin
from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    AssumeUnsupported,
    BoardNames,
    CalibrationChoice,
    ClockText,
    Cold,
    MaxFlash,
    MaxMs,
    MaxRam,
    MaxUj,
    MaxUsd,
    Models,
    RuntimeName,
    SetPaths,
    WeightsRole,
    check_outputs,
    deploy,
    parse_limit,
    parse_settings,
)
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.studying import show_several
from twin.errors import DoesNotFitError, UsageError

if TYPE_CHECKING:
    from twin.reports.tables.parts import Console
    from twin.verbs.check import Check

Sure = Annotated[bool, typer.Option(
    "--sure", help="Limits are met only where the whole interval meets them: exit 1 where a limit "
                   "lies inside it.")]

CsvFolder = Annotated[str | None, typer.Option(
    "--csv", metavar="DIR", help="Write the tables as CSV files into a folder, with whether the "
                                 "limits are met.")]
Accuracy = Annotated[float | None, typer.Option(
    "--accuracy", metavar="SHARE", min=0.0, max=1.0,
    help="With --csv: how accurate the network is, 0 to 1.")]
JunitFile = Annotated[str | None, typer.Option(
    "--junit", metavar="FILE", help="Write JUnit XML: a test per requirement.")]

Suggest = Annotated[bool, typer.Option(
    "--advice/--no-advice", help="Where limits are not met, end with the cheapest setting or "
                                 "rebuild that meets them (`twin advise` tries more).")]


def check(models: Models, boards: BoardNames, max_ms: MaxMs = None, max_uj: MaxUj = None,
          max_ram: MaxRam = None, max_flash: MaxFlash = None, max_usd: MaxUsd = None,
          runtime: RuntimeName = None, clock: ClockText = None,
          weights: WeightsRole = None, arena: ArenaRole = None, cold: Cold = False,
          assume_unsupported: AssumeUnsupported = None,
          calibration: CalibrationChoice = AUTO, sure: Sure = False,
          settings: SetPaths = None, as_json: AsJson = False, advice: Suggest = True,
          csv_folder: CsvFolder = None, accuracy: Accuracy = None,
          junit: JunitFile = None) -> None:
    """Say whether models fit boards and meet limits."""
    limits = {"max_ms": max_ms, "max_uj": max_uj, "max_ram": max_ram, "max_flash": max_flash,
              "max_usd": max_usd}
    several = len(models) * len(boards) > 1
    _check_files(csv_folder, accuracy, junit, several=several)
    if several:
        table = show_several(models, boards, plot=None, as_json=as_json, limits=limits,
                             settings=settings, runtime=runtime, clock=clock, weights=weights,
                             arena=arena, cold=cold, assume_unsupported=assume_unsupported,
                             calibration=calibration)
        if not table.all_met(sure=sure):
            raise typer.Exit(1)
        return
    (model,), (board,) = models, boards
    from twin.reports.tables.limits import requirement_table

    most_ms, most_uj = parse_limit("max_ms", max_ms), parse_limit("max_uj", max_uj)
    max_ram_bytes = parse_limit("max_ram", max_ram)
    max_flash_bytes = parse_limit("max_flash", max_flash)
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
    found = twin.check(
        deployment, max_ms=most_ms, max_uj=most_uj, max_ram_bytes=max_ram_bytes,
        max_flash_bytes=max_flash_bytes, max_usd=max_usd, calibration=calibration, sure=sure,
        temperature="cold" if cold else "warm")
    if as_json:
        show_json(found)
    else:
        show(console, requirement_table(found.requirements))
        if found.prediction.voltage:
            show(console, f"voltage {found.prediction.voltage}")
    warn(found.remarks)
    write_files(found, csv_folder, accuracy, junit)
    if not found.met:
        if advice and not as_json:
            show_advice(deployment, limits, "cold" if cold else "warm", calibration, console)
        raise typer.Exit(1)


def write_files(found: Check, csv_folder: str | None, accuracy: float | None,
                junit: str | None) -> None:
    """Write the tables with what was accepted, and the file a build server reads."""
    if csv_folder is not None:
        from twin.reports.export import write_csv_files

        for path in write_csv_files(found.prediction, csv_folder, accepted=found.met,
                                    accuracy=accuracy):
            note_written(path)
    if junit is not None:
        from twin.reports.ci import write_check_junit
        from twin.reports.export import write_file

        note_written(write_file(junit, write_check_junit(
            found.prediction, found.requirements, sure=found.sure)))


def show_advice(deployment: twin.Deployment, limits: Mapping[str, Any], temperature: str,
                calibration: str, console: Console) -> None:
    """Print the cheapest single setting or rebuild that meets the limits, or the nearest."""
    from twin.reports.tables.advice import say_best

    asked = {name: limit for name, limit in limits.items() if limit and name != "max_usd"}
    if asked:
        advice = twin.advise(deployment, **asked, efforts=("setting", "rebuild"), pairs=False,
                             temperature=temperature, calibration=calibration)
        show(console, f"advice  {say_best(advice)}")


def _check_files(csv_folder: str | None, accuracy: float | None, junit: str | None, *,
                 several: bool) -> None:
    """Refuse files that cannot be written, before anything is predicted."""
    if accuracy is not None and csv_folder is None:
        raise UsageError("--accuracy goes into the files of --csv DIR")
    check_outputs(junit)
    if csv_folder is not None:
        from twin.reports.export import check_tables

        check_tables(csv_folder)
    if several and (csv_folder is not None or junit is not None):
        raise UsageError("--csv and --junit: not with several models or boards; accepted: one "
                         "MODEL, one -b")
