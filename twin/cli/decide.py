"""Commands that decide: does it fit, which board, library or change, which tile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import twin
from twin.api.commands.predict import describe_fastest, describe_set_up
from twin.api.requests import BoardName, BoardNames, Deployed, Model, ModelNames, Option, Priced
from twin.api.requests import prediction as requests
from twin.api.requests.advice import Advise
from twin.api.requests.studies import Select, Sweep
from twin.api.requests.tuning import Tune
from twin.cli.options import AsJson, Json, Kept, Paged, check_outputs, command, deploy
from twin.cli.output import note_files, note_written, open_console, show, show_view, warn
from twin.cli.progress import Rate, Steps
from twin.cli.studying import Pareto, Rows, Tabled, refuse_failed, show_several
from twin.errors import DoesNotFitError, UsageError

if TYPE_CHECKING:
    from twin.api.commands.check import Check

Sure = Annotated[bool, requests.Check.option("sure")]
ArenaBytes = Annotated[str | None, requests.Check.option("arena_bytes")]
MapFile = Annotated[str | None, requests.Check.option("map_file")]
CsvFolder = Annotated[str | None, Option(
    "--csv", "DIR", "Write the tables as CSV files into a folder, with whether the limits are "
    "met.")]
Share = Annotated[float | None, Option(
    "--accuracy", "SHARE", "With --csv: how accurate the network is, 0 to 1.", least=0.0, most=1.0)]
JunitFile = Annotated[str | None, Option(
    "--junit", "FILE", "Write JUnit XML: a test per requirement.")]
Suggest = Annotated[bool, Option(
    "--advice/--no-advice", None, "Where limits are not met, end with the cheapest change that "
    "meets them (`twin advise` lists all).")]
Folders = Annotated[list[str], Option(
    "", "FOLDER...", "Of finished studies: `twin study run hardware -o FOLDER` first.")]
StudyFile = Annotated[str | None, Option(
    "--output -o", "FILE", "Write the build kept as a study, tuned beside untuned: `twin study run "
    "FILE`.")]
GuideFile = Annotated[str, Option("-o --output", "FILE", "The document, Markdown.")]


@command
def check(models: ModelNames, boards: BoardNames, limits: requests.Accepted, placed: Deployed,
          priced: Priced, sure: Sure = False, as_json: AsJson = False, advice: Suggest = True,
          csv_folder: CsvFolder = None, accuracy: Share = None, junit: JunitFile = None,
          arena_bytes: ArenaBytes = None, map_file: MapFile = None) -> None:
    """Say whether models fit boards and meet limits."""
    from twin.api.commands.sweep import limits_of

    several = len(models) * len(boards) > 1
    if several and (arena_bytes is not None or map_file is not None):
        raise UsageError("--arena-bytes and --map: of one program; accepted: one MODEL, one -b")
    _check_files(csv_folder, accuracy, junit, several=several)
    if several:
        table = show_several(models, boards, placed, priced, as_json=as_json, limits=limits.given)
        if not table.all_met(sure=sure):
            raise typer.Exit(1)
        return
    limits_of(limits)
    (model,), (board,) = models, boards
    try:
        deployment = deploy(model, board, placed, priced.calibration)
    except DoesNotFitError as error:
        show(open_console(), str(error))
        if advice and not as_json and isinstance(error.draft, twin.Deployment):
            show_advice(error.draft, limits, priced, fits=False)
        raise typer.Exit(1) from error
    found = twin.check(deployment, **limits.arguments, sure=sure, arena_bytes=arena_bytes,
                       map_file=map_file, **priced.arguments)
    show_view(found, "limits:requirement_table", found.requirements, as_json=as_json)
    if found.prediction.voltage and not as_json:
        show(open_console(), f"voltage {found.prediction.voltage}")
    if found.probability is not None and not as_json:
        from twin.reports.tables.limits import format_chance

        show(open_console(), "all limits  met together with a probability of "
                             f"{format_chance(found.probability)}")
    if found.row is not None and not as_json:
        from twin.reports.tables.study_sentences import say_duty

        show(open_console(), f"duty: {say_duty(found.row)}")
    from twin.reports.tables.header import describe_prices, list_doubts

    if not as_json:
        show(open_console(), describe_prices(found.prediction))
    warn(list_doubts(found.prediction, found.remarks))
    write_files(found, csv_folder, accuracy, junit)
    if not found.met:
        if advice and not as_json:
            show_advice(deployment, limits, priced)
        raise typer.Exit(1)


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


def write_files(found: Check, csv_folder: str | None, accuracy: float | None,
                junit: str | None) -> None:
    """Write the tables with what was accepted, and the file a build server reads."""
    if csv_folder is not None:
        from twin.reports.export import write_csv_files

        note_files(write_csv_files(found.prediction, csv_folder, accepted=found.met,
                                   accuracy=accuracy))
    if junit is not None:
        from twin.reports.ci import write_check_junit
        from twin.reports.export import write_file

        note_written(write_file(junit, write_check_junit(
            found.prediction, found.requirements, sure=found.sure)))


def show_advice(deployment: twin.Deployment, limits: requests.Accepted, priced: Priced, *,
                fits: bool = True) -> None:
    """Print the cheapest change that meets the limits, or the nearest."""
    asked = {name: limit for name, limit in limits.given.items()
             if name not in ("max_usd", "prices")}
    if not fits or any(name.startswith(("max_", "min_", "every")) for name in asked):
        from twin.reports.tables.advice import say_best

        with Rate("changes tried for advice (--no-advice ends here)") as rate:
            advice = twin.advise(deployment, **asked, **priced.arguments, on_progress=rate.tell)
        if not advice.met:  # a price that is too high is no matter of settings
            show(open_console(), f"advice  {say_best(advice)}")


@command(view="studies:sweep_report", warnings=describe_fastest, ends=refuse_failed)
def sweep(asked: Sweep, rows: Rows, output: Tabled, plot: Pareto, page: Paged,
          json: Json, keep: Kept) -> object:
    """Predict every combination of models, boards and settings; mark the Pareto front.

    A sweep lists: its exit code is no verdict, whatever meets the limits; `twin select` judges.
    """
    with Rate() as rate:
        return keep.run("sweep", asked, on_progress=rate.tell)


class SelectPictures(Pareto):
    """A selection as pictures."""

    plot: Annotated[str | None, Option(
        "--plot", "FILE", "Write the Pareto picture; into a folder (DIR/): all of them.")] = None


@command(view="selection:selection_report", warnings=lambda found: describe_fastest(found.table),
         ends=lambda found: refuse_failed(found.table) or not found.feasible)
def select(asked: Select, output: Tabled, plot: SelectPictures, page: Paged,
           json: Json, keep: Kept) -> object:
    """Rank boards and libraries for networks; exit 1: none may meet limits, 3: none runs them."""
    with Rate() as rate:
        return keep.run("select", asked, on_progress=rate.tell)


@command(view="advice:advice_report", warnings=lambda advice: describe_set_up(advice.deployment),
         ends=lambda advice: not advice.met and advice.best is None)
def advise(model: Model, board: BoardName, asked: Advise, placed: Deployed, json: Json) -> object:
    """Find the cheapest change that meets limits; exit 1 where none may."""
    try:
        deployment = deploy(model, board, placed, asked.calibration)
    except DoesNotFitError as error:
        if not isinstance(error.draft, twin.Deployment):
            raise
        deployment = error.draft
        warn([str(error)])
    with Rate() as rate:
        return twin.advise(deployment, **asked.arguments, on_progress=rate.tell)


@command
def guidelines(folders: Folders, output: GuideFile = "guide.md", as_json: AsJson = False) -> None:
    """Learn a decision tree and a checklist from finished studies."""
    from twin.api.commands.guidelines import write_guidelines

    note_files([write_guidelines(folders, output)], as_json)


@command
def accuracy(asked: requests.Accuracy, as_json: AsJson = False) -> None:
    """Measure how often a network is right on your data, before and after changes."""
    from twin.reports.outcomes import Accuracies

    before, after = twin.accuracy(**asked.arguments)
    show_view(Accuracies(model=asked.model, before=before, after=after),
              "accuracy:accuracy_table", before, after, as_json=as_json)
    warn(before.notes if after is None else after.notes)


@command(view="tuning:tuning_report")
def tune(asked: Tune, json: Json, output: StudyFile = None) -> object:
    """Choose the tile of the firmware's kernels by prediction; run the best few, keep the best."""
    check_outputs(output)
    with Steps("built and run") as steps:
        tuned = twin.tune(**asked.arguments, on_progress=steps.tell)
    if output is not None:
        from twin.api.commands.tune import write_tuned

        write_tuned(tuned, asked.model, output)
        note_written(output)
    return tuned
