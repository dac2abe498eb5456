"""`twin report`: all that is known of a deployment on one page that opens offline."""

from __future__ import annotations

from collections.abc import Callable
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import twin
from twin.api.requests import Anyway, AssumeUnsupported, Changes, Deployed, Option, Priced, Settled
from twin.api.requests.prediction import Accepted
from twin.api.requests.reporting import Beside
from twin.api.requests.studies import Progress
from twin.api.requests.values import parse_settings
from twin.cli.options import AsJson, command, place, say_command
from twin.cli.output import note_files
from twin.cli.progress import Rate
from twin.errors import DoesNotFitError, PlacementError, RuntimeRefusedError, UsageError

if TYPE_CHECKING:
    from twin import Deployment, TwinError

Output = Annotated[str, Option(
    "--output -o", "FILE", "Where it goes: .html opens offline, .md and .pdf are read and "
    "printed.")]
Length = Annotated[str, Option(
    "--length", "full|short", "Of .md and .pdf: all there is, or one page.")]
Boards = Annotated[list[str] | None, Option(
    "--board -b", "BOARD", "A board of `twin boards`, or a board file; several stand beside each "
    "other.")]
Runtimes = Annotated[list[str] | None, Option(
    "--runtime", "NAME", "A kernel library of `twin runtimes`, as name@version; several stand "
    "beside each other.")]
Stage = Annotated[list[str] | None, Option(
    "--stage", "PATH=VALUE,...", "A stage of optimisation made of the one before; may be given "
    "several times.")]
Stages = Annotated[int | None, Option(
    "--stages", "N", "Find the stages: N times the setting or rebuild that saves most time.")]
Subject = Annotated[str, Option(
    "", "MODEL|FOLDER", "A .tflite, .onnx, .pte or .espdl file, or a network of `twin models`; "
    "without a board the folder of a study, or a table of a sweep.")]

NOT_MET = 1
"""Exit code where what was asked about does not fit, or misses a limit."""


@command
def report(model: Subject, limits: Accepted, priced: Priced, boards: Boards = None,
           output: Output = "report.html", *, beside: Beside, runtimes: Runtimes = None,
           settled: Settled, settings: Changes = None, stage: Stage = None, stages: Stages = None,
           assume_unsupported: AssumeUnsupported = None, anyway: Anyway = False,
           length: Length = "full", as_json: AsJson = False) -> None:
    """Write all results of a deployment on one offline page.

    Several boards or libraries, or stages of optimisation, stand beside each other.
    """
    from twin.api.commands.predict import runtime_of
    from twin.api.commands.report import check_report, deploy_beside, judge_measured
    from twin.api.commands.sweep import limits_of

    check_report(output, length)
    calibration, command = fspath(priced.calibration), say_command()
    limits_of(limits)
    held = limits.given
    if not boards:
        if held:
            raise UsageError("limits and a duty are of a model on a board; accepted: with -b BOARD")
        note_files([twin.write_report(model, output, length=length, command=command)], as_json)
        return

    several = name_several(boards, runtimes)

    def put(board: str, runtime: str | None) -> Deployment:
        folder = beside.measured or beside.power
        if folder is not None and len(several) == 1:
            deployment = deploy_beside(
                fspath(folder), model, board, runtime=runtime or runtime_of(calibration),
                assume_unsupported=assume_unsupported, **settled.arguments)
        else:
            deployment = place(model, board, Deployed(
                runtime=runtime, changes=settings, assume_unsupported=assume_unsupported,
                **settled.arguments), calibration)
        return deployment.replace(settings)

    chain = bool(stage or stages)
    if len(several) > 1 and chain:
        raise UsageError("--stage and --stages are of one board and library; accepted: one -b, one "
                         "--runtime")
    with Rate() as rate:
        if len(several) > 1:
            subject: Any = dict(try_deploying(put, label, *which)
                                for label, which in several.items())
        else:
            (which,) = several.values()
            try:
                subject = put(*which)
            except DoesNotFitError as error:
                refuse(output, model, which[0], error, command, as_json)
            if chain:
                subject = list_stages(subject, stage or [], stages, priced, rate.tell)
        written = twin.write_report(
            subject, output, length=length, limits=held, chain=chain, anyway=anyway,
            command=command, on_progress=rate.tell, **beside.arguments, **priced.arguments)
    met = None if not held or len(several) > 1 or chain else judge_measured(twin.check(
        subject, **priced.arguments, **held), beside.measured).met
    note_files([written], as_json, met)
    if met is False:
        raise typer.Exit(NOT_MET)


def name_several(boards: list[str],
                 runtimes: list[str] | None) -> dict[str, tuple[str, str | None]]:
    """Return each board with each library, by what distinguishes it from the others."""
    found: dict[str, tuple[str, str | None]] = {}
    for board in dict.fromkeys(boards):
        for runtime in dict.fromkeys(runtimes or [""]):
            parts = [Path(board).stem if len(set(boards)) > 1 else "",
                     runtime if len(set(runtimes or [])) > 1 else ""]
            found[" · ".join(filter(None, parts)) or board] = board, runtime or None
    return found


def try_deploying(put: Callable[[str, str | None], Deployment], label: str, board: str,
                  runtime: str | None) -> tuple[str, Deployment | TwinError]:
    """Return a label, its library with the release, and the deployment, or why it cannot be."""
    try:
        made = put(board, runtime)
    except (DoesNotFitError, PlacementError, RuntimeRefusedError) as error:
        return label, error
    named = bool(runtime) and label.endswith(runtime or "")
    return label.removesuffix(runtime or "") + made.runtime.identity if named else label, made


def list_stages(deployment: Deployment, texts: list[str], most: int | None, priced: Priced,
                progress: Progress) -> dict[str, Any]:
    """Return the stages that were given, then as many as are to be found after them."""
    from twin.api.commands.variants import chain_stages, find_stages

    given = [parse_settings(text.split(",")) for text in texts]
    if most is not None:
        last = deployment
        for settings in given:
            last = last.replace(settings)
        given += find_stages(last, most, priced.temperature, fspath(priced.calibration), progress)
    return chain_stages(deployment, given)


def refuse(output: str, model: str, board: str, error: DoesNotFitError, command: str,
           as_json: bool = False) -> NoReturn:
    """Write the page of what does not fit, and end."""
    from twin.api.commands.report import write_page
    from twin.reports.page.deployment import describe_refusal

    title = f"{Path(model).name} on {Path(board).name}"
    written = write_page(describe_refusal(title, f"{error}.", command), output)
    note_files([written], as_json, met=False)
    raise typer.Exit(NOT_MET) from error
