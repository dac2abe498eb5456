"""`twin report`: all that is known of a deployment on one page that opens offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import twin
from twin.cli.options import (
    AUTO,
    Anyway,
    ArenaRole,
    AsJson,
    AssumeUnsupported,
    CalibrationChoice,
    ClockText,
    Cold,
    MaxFlash,
    MaxMs,
    MaxRam,
    MaxUj,
    SetPaths,
    WeightsRole,
    deploy,
    parse_clock,
    parse_limit,
    parse_settings,
)
from twin.cli.output import note_files
from twin.cli.paging import say_command
from twin.cli.progress import Rate
from twin.errors import (
    DoesNotFitError,
    PlacementError,
    RuntimeRefusedError,
    UsageError,
)

if TYPE_CHECKING:
    from twin import Deployment, TwinError

Output = Annotated[str, typer.Option(
    "--output", "-o", metavar="FILE", help="Where it goes: .html opens offline, .md and .pdf are "
                                           "read and printed.")]
Length = Annotated[str, typer.Option(
    "--length", metavar="full|short", help="Of .md and .pdf: all there is, or one page.")]
Measured = Annotated[str | None, typer.Option(
    "--measured", metavar="DIR", help="Set it beside a measurement: a folder of `twin measure` or "
                                      "`twin import`.")]
Published = Annotated[bool, typer.Option(
    "--published", help="Set it beside published measurements of this model and board.")]
Power = Annotated[str | None, typer.Option(
    "--power", metavar="DIR", help="Draw its power over time, with the layers' marks: a folder of "
                                   "`twin energy`.")]
Changes = Annotated[bool, typer.Option(
    "--changes/--no-changes", help="Try settings and rebuilds, and say which helps most.")]

Boards = Annotated[list[str] | None, typer.Option(
    "--board", "-b", metavar="BOARD", help="A board of `twin boards`, or a board file; several "
                                           "stand beside each other.")]
Runtimes = Annotated[list[str] | None, typer.Option(
    "--runtime", metavar="NAME", help="A kernel library of `twin runtimes`, as name@version; "
                                      "several stand beside each other.")]
Stage = Annotated[list[str] | None, typer.Option(
    "--stage", metavar="PATH=VALUE,...", help="A stage of optimisation made of the one before; "
                                              "may be given several times.")]
Stages = Annotated[int | None, typer.Option(
    "--stages", metavar="N", help="Find the stages: N times the setting or rebuild that saves most "
                                  "time.")]
Subject = Annotated[str, typer.Argument(
    metavar="MODEL|FOLDER", help="A .tflite or .onnx file, or a network of `twin models`; without "
                                 "a board the folder of a study, or a table of a sweep.")]

NOT_MET = 1
"""Exit code where what was asked about does not fit, or misses a limit."""


def report(model: Subject, boards: Boards = None, output: Output = "report.html",
           measured: Measured = None, published: Published = False, power: Power = None,
           max_ms: MaxMs = None,
           max_uj: MaxUj = None, max_ram: MaxRam = None, max_flash: MaxFlash = None,
           changes: Changes = True, runtimes: Runtimes = None, clock: ClockText = None,
           weights: WeightsRole = None, arena: ArenaRole = None, settings: SetPaths = None,
           stage: Stage = None, stages: Stages = None, cold: Cold = False,
           assume_unsupported: AssumeUnsupported = None,
           calibration: CalibrationChoice = AUTO, anyway: Anyway = False,
           length: Length = "full", as_json: AsJson = False) -> None:
    """Write all that is known of a deployment on one page that opens offline.

    Several boards or libraries, or stages of optimisation, stand beside each other.
    """
    from twin.verbs.predict import runtime_of
    from twin.verbs.report import check_report, deploy_beside

    check_report(output, length)
    limits = {
        "max_ms": parse_limit("max_ms", max_ms),
        "max_uj": parse_limit("max_uj", max_uj),
        "max_ram_bytes": parse_limit("max_ram", max_ram),
        "max_flash_bytes": parse_limit("max_flash", max_flash)}
    command, temperature = say_command(), "cold" if cold else "warm"
    if not boards:
        note_files([twin.write_report(model, output, length=length, command=command)], as_json)
        return

    several = name_several(boards, runtimes)

    def put(board: str, runtime: str | None) -> Deployment:
        beside = measured or power
        if beside is not None and len(several) == 1:
            deployment = deploy_beside(beside, model, board, runtime=runtime or runtime_of(
                calibration), clock_hz=parse_clock(clock), weights=weights, arena=arena,
                assume_unsupported=assume_unsupported)
        else:
            deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights,
                                arena=arena, assume_unsupported=assume_unsupported,
                                settings=settings, calibration=calibration)
        return deployment.replace(parse_settings(settings)) if settings else deployment

    if len(several) > 1 and (stage or stages):
        raise UsageError("--stage and --stages are of one board and library; accepted: one -b, one "
                         "--runtime")
    chain = bool(stage or stages)
    with Rate() as rate:
        if len(several) > 1:
            subject: Any = {label: try_deploying(put, *which) for label, which in several.items()}
        else:
            (which,) = several.values()
            try:
                subject = put(*which)
            except DoesNotFitError as error:
                refuse(output, model, which[0], error, command, as_json)
            if chain:
                subject = list_stages(subject, stage or [], stages, temperature, calibration,
                                      rate.tell)
        written = twin.write_report(
            subject, output, length=length, measured=measured, published=published, power=power,
            limits=limits, changes=changes, chain=chain, anyway=anyway, temperature=temperature,
            calibration=calibration, command=command, on_progress=rate.tell)
    held: dict[str, Any] = {name: one for name, one in limits.items() if one is not None}
    met = None if not held or len(several) > 1 or chain else twin.check(
        subject, temperature=temperature, calibration=calibration, **held).met
    note_files([written], as_json, met)
    if met is False:
        raise typer.Exit(NOT_MET)


def name_several(boards: list[str],
                 runtimes: list[str] | None) -> dict[str, tuple[str, str | None]]:
    """Return each board with each library, by what tells it from the others."""
    found: dict[str, tuple[str, str | None]] = {}
    for board in dict.fromkeys(boards):
        for runtime in dict.fromkeys(runtimes or [""]):
            parts = [Path(board).stem if len(set(boards)) > 1 else "",
                     runtime if len(set(runtimes or [])) > 1 else ""]
            found[" · ".join(filter(None, parts)) or board] = board, runtime or None
    return found


def try_deploying(put: Callable[[str, str | None], Deployment], board: str,
                  runtime: str | None) -> Deployment | TwinError:
    """Return a deployment, or why it cannot be."""
    try:
        return put(board, runtime)
    except (DoesNotFitError, PlacementError, RuntimeRefusedError) as error:
        return error


def list_stages(deployment: Deployment, texts: list[str], most: int | None, temperature: str,
                calibration: str, told: Callable[[int, int, int], None]) -> dict[str, Any]:
    """Return the stages that were given, then as many as are to be found after them."""
    from twin.verbs.variants import chain_stages, find_stages, make_deployer

    given = [parse_settings(text.split(",")) for text in texts]
    if most is not None:
        last = deployment
        for settings in given:
            last = last.replace(settings)
        given += find_stages(last, most, make_deployer(temperature, calibration), told)
    return chain_stages(deployment, given)


def refuse(output: str, model: str, board: str, error: DoesNotFitError, command: str,
           as_json: bool = False) -> NoReturn:
    """Write the page of what does not fit, and end."""
    from twin.reports.page.deployment import describe_refusal
    from twin.verbs.report import write_page

    title = f"{Path(model).name} on {Path(board).name}"
    written = write_page(describe_refusal(title, f"{error}.", command), output)
    note_files([written], as_json, met=False)
    raise typer.Exit(NOT_MET) from error
