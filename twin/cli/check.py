"""`twin check`: does it fit, and does it meet the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import twin
from twin.api.requests import BoardNames, Deployed, LimitedAndPriced, ModelNames, Option, Priced
from twin.cli.options import AsJson, check_outputs, command, deploy, parse_limits
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.studying import show_several
from twin.errors import DoesNotFitError, UsageError

if TYPE_CHECKING:
    from twin.api.commands.check import Check
    from twin.reports.tables.parts import Console

Sure = Annotated[bool, Option(
    "--sure", None, "Limits are met only where the whole interval meets them: exit 1 where a limit "
    "lies inside it.")]

CsvFolder = Annotated[str | None, Option(
    "--csv", "DIR", "Write the tables as CSV files into a folder, with whether the limits are "
    "met.")]
Accuracy = Annotated[float | None, Option(
    "--accuracy", "SHARE", "With --csv: how accurate the network is, 0 to 1.", least=0.0, most=1.0)]
JunitFile = Annotated[str | None, Option(
    "--junit", "FILE", "Write JUnit XML: a test per requirement.")]

Suggest = Annotated[bool, Option(
    "--advice/--no-advice", None, "Where limits are not met, end with the cheapest setting or "
    "rebuild that meets them (`twin advise` tries more).")]


@command
def check(models: ModelNames, boards: BoardNames, limits: LimitedAndPriced, placed: Deployed,
          priced: Priced, sure: Sure = False, as_json: AsJson = False, advice: Suggest = True,
          csv_folder: CsvFolder = None, accuracy: Accuracy = None,
          junit: JunitFile = None) -> None:
    """Say whether models fit boards and meet limits."""
    several = len(models) * len(boards) > 1
    _check_files(csv_folder, accuracy, junit, several=several)
    if several:
        table = show_several(models, boards, placed, priced, plot=None, as_json=as_json,
                             limits=limits)
        if not table.all_met(sure=sure):
            raise typer.Exit(1)
        return
    (model,), (board,) = models, boards
    from twin.reports.tables.limits import requirement_table

    held = parse_limits(limits)
    console = open_console()
    try:
        deployment = deploy(model, board, placed, priced.calibration)
    except DoesNotFitError as error:
        show(console, str(error))
        raise typer.Exit(1) from error
    found = twin.check(deployment, **held, max_usd=limits.max_usd, sure=sure, **priced.arguments)
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
            show_advice(deployment, limits, priced, console)
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


def show_advice(deployment: twin.Deployment, limits: LimitedAndPriced, priced: Priced,
                console: Console) -> None:
    """Print the cheapest single setting or rebuild that meets the limits, or the nearest."""
    from twin.reports.tables.advice import say_best

    asked = {name: limit for name, limit in limits.arguments.items()
             if limit and name != "max_usd"}
    if asked:
        advice = twin.advise(deployment, **asked, efforts=("setting", "rebuild"), pairs=False,
                             **priced.arguments)
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
