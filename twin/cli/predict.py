"""`twin predict`: cycles, time and energy per layer, and why."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from os import fspath
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated

import typer

import twin
from hwmodels.errors import TwinError
from hwmodels.quantities import Settings
from twin.api.commands.predict import (
    FIRST_BOARDS,
    deploy_request,
    describe_cold,
    describe_measured_runtime,
    describe_numbers,
    list_first_boards,
)
from twin.api.requests import BOARDS, Deployed, Fed, Option, Part, Predict, Priced
from twin.cli.options import AsJson, Kept, check_outputs, command
from twin.cli.output import note_files, open_console, show, show_json, show_view, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin import Deployment, Prediction
    from twin.api.requests import Request

ModelsOrNone = Annotated[list[str] | None, Option("", "MODEL...", (
    "Files .tflite, .onnx, .pte or .espdl, or networks of `twin models`; none with --elf."))]
BoardsOrNone = Annotated[list[str] | None, BOARDS]
ElfFile = Annotated[str | None, Option(
    "--elf", "FILE", "Instead of MODEL: a linked program of a Cortex-M or of RISC-V, run under "
    "emulation and billed as it is.")]
Flames = Annotated[str | None, Option(
    "--flamegraph", "FILE", "With --elf: layers, functions and causes as .svg, or as "
    ".speedscope.json.")]
CsvFolder = Annotated[str | None, Option(
    "--csv", "DIR", "Write the tables as CSV files into a folder.")]
PlotTarget = Annotated[str | None, Option(
    "--plot", "FILE", "Write layers and bill as one picture (.png, .svg, .pdf); into a folder "
    "(DIR/): every picture.")]
Roofs = Annotated[str | None, Option(
    "--roofs", "DIR", "With --plot DIR/: micro-benchmarks of the board (`twin measure --plan "
    "all`), whose rates are the roofline's roofs.")]
Epochs = Annotated[bool | None, Option(
    "--epochs/--no-epochs", None, "With an accelerator: report every epoch as its profiler does, "
    "or none; by default a line each.")]
PerOperand = Annotated[bool, Option(
    "--per-operand", None, "Split the bill by operand: weights, input, output, scratch.")]
Counted = Annotated[bool, Option(
    "--counters", None, "Counters of the platform: what is modelled, and what silicon or an "
    "emulator counts.")]
TraceFile = Annotated[str | None, Option(
    "--trace", "FILE", "Write a timeline for chrome://tracing or Perfetto (.json): layers and "
    "causes, or an accelerator's units and engines.")]
Exports = Annotated[list[str] | None, Option(
    "--export", "FILE", "Write for another tool, by how the name ends: .mlia.json, .node-data.json "
    "(Model Explorer), .speedscope.json, .trace.json, .bencher.json; may be given several times.")]
Details = Annotated[bool | None, Option(
    "--details/--brief", None, "Every layer, line of the bill and warning, or one screen; by "
    "default one screen.")]

REFUSED = 3
"""Exit code where a model or a board was refused."""


@command
def predict(*, boards: BoardsOrNone = None, placed: Deployed, priced: Priced, fed: Fed,
            models: ModelsOrNone = None, as_json: AsJson = False, csv_folder: CsvFolder = None,
            plot: PlotTarget = None, epochs: Epochs = None, details: Details = None,
            trace: TraceFile = None, exports: Exports = None, per_operand: PerOperand = False,
            counters: Counted = False, roofs: Roofs = None, elf: ElfFile = None, part: Part,
            flames: Flames = None, keep: Kept) -> None:
    """Predict cycles, time and energy per layer, with the causes; several: one row each.

    Without a board: five different boards, a row each.
    """
    if elf is not None:
        if not boards:
            raise UsageError("--board is missing; accepted: --elf FILE -b BOARD")
        refuse_beside("--elf", accepted="--elf FILE -b BOARD without it", options={
            "MODEL": models, "--runtime": placed.runtime, "--weights": placed.weights,
            "--arena": placed.arena, "--assume-unsupported": placed.assume_unsupported,
            "--trace": trace, "--epochs": epochs, "--export": exports, "--roofs": roofs,
            "--keep": keep.keep, "--counters": counters, "a second --board": boards[1:],
            **name_options(fed)})
        from twin.api.commands.predict import runtime_of
        from twin.api.commands.program import deploy_part

        check_files(csv_folder, plot, flames=flames)
        runtime_of(fspath(priced.calibration))  # reads it, where it is a file
        predict_program(deploy_part(elf, boards[0], part, placed), priced, as_json=as_json,
                        csv_folder=csv_folder, plot=plot, per_operand=per_operand, flames=flames)
        return
    if not models:
        raise UsageError("MODEL is missing; accepted: a .tflite or .onnx file, a network of "
                         "`twin models`, or --elf FILE")
    refuse_beside("a network", accepted="beside --elf FILE", options={
        "--from": part.begin, "--to": part.end, "--call": part.call, "--memory": part.memory,
        "--set-register": part.registers, "--flamegraph": flames, "--nth": part.nth,
        "--limit": part.limit, "--skip-startup": part.skip_startup})
    if not boards or len(models) * len(boards) > 1:
        from twin.cli.studying import SWEPT, show_several

        listed = not boards and len(models) == 1
        if listed:  # Reading refuses it in a line, not once a board.
            boards = [*list_first_boards(models[0])]
        boards = boards or [*FIRST_BOARDS]
        refuse_beside("several models or boards", {
            "--csv": csv_folder, "--trace": trace, "--epochs": epochs, "--export": exports,
            "--per-operand": per_operand, "--counters": counters, "--roofs": roofs,
            "--keep": keep.keep})
        table = show_several(models, boards, placed, priced, plot=plot, as_json=as_json,
                             limits=fed.arguments,
                             view=SWEPT if not listed else "studies:first_boards"
                             if boards == [*FIRST_BOARDS] else "studies:compiled_boards")
        if table.failed and not listed:
            raise typer.Exit(REFUSED)
        return
    (model,), (board,) = models, boards
    if model.endswith((".json", ".csv")) and resolve_name(
            "twin.api.commands.compiled:is_compiled")(model):
        refuse_beside(f"a compiler's output such as {model}", {
            "--json": as_json, "--csv": csv_folder, "--plot": plot, "--trace": trace,
            "--counters": counters, "--export": exports, "--set": placed.changes,
            "--keep": keep.keep, **name_options(fed)})
        compiled, warnings = twin.predict_compiled(model, board)
        show_view(compiled, "tasks:tasks_part")
        warn(warnings)
        return
    predict_network(
        Predict(model=model, board=board, **placed.arguments, **priced.arguments), fed,
        as_json=as_json, csv_folder=csv_folder, plot=plot, roofs=roofs, trace=trace,
        per_operand=per_operand, counters=counters, epochs=epochs, details=details,
        exports=exports or [], keep=keep)


def name_options(asked: Request) -> Settings:
    """Return what was given of a request's options, by their names."""
    return {option.names: getattr(asked, name)
            for name, (option, _) in asked.list_options().items()}


def predict_network(asked: Predict, fed: Fed, *, as_json: bool, csv_folder: str | None,
                    plot: str | None, roofs: str | None, trace: str | None, per_operand: bool,
                    counters: bool, epochs: bool | None, details: bool | None, exports: list[str],
                    keep: Kept) -> None:
    """Report one network on one board, and write what was asked for beside it."""
    check_files(csv_folder, plot, trace=trace, exports=exports)
    check_outputs(folder=keep.keep)
    calibration = fspath(asked.calibration)
    roofline = None if roofs is None else read_roofline(roofs, fspath(asked.board), plot)
    deployment, row, every_us = deploy_request(asked), None, None
    if given := any(fed.arguments.values()):
        from twin.api.commands.sweep import make_deployer
        from twin.api.requests.prediction import Duty

        refuse_beside("--keep", name_options(fed) if keep.keep else {}, "twin check, or no --keep")
        deployer = make_deployer(Duty(**fed.arguments, temperature=asked.temperature,
                                      calibration=asked.calibration), [deployment.board])
        deployment = deployer.state(deployment)
    effects: tuple[str, ...] = ()
    if asked.changes:
        changed = twin.what_if(deployment, asked.changes, temperature=asked.temperature,
                               calibration=calibration)
        prediction = changed.after
        with suppress(TwinError):  # Where it does not fit unchanged, it has changes already.
            deploy_request(replace(asked, changes=None))
            effects = changed.effects
    else:
        prediction = twin.predict(deployment, temperature=asked.temperature,
                                  calibration=calibration)
    if epochs and not prediction.tasks:
        raise UsageError(f"--epochs: {deployment.board.name} runs nothing on an accelerator under "
                         f"{deployment.runtime.identity}; accepted: without --epochs")
    if given and deployer.duty is not None:
        row, = deployer.predict_changed(prediction.deployment, [{}])
        every_us = deployer.duty.every_us
        if prediction.time_us > deployer.duty.every_us:
            effects = (f"--every {fed.every}: shorter than an inference, which cannot keep up",
                       *effects)
    # Files first: a reader that closes the pipe (`| head`) ends this at the report.
    written = write_files(prediction, trace=trace, exports=exports, csv_folder=csv_folder,
                          plot=plot, roofline=roofline)
    show_report(prediction, as_json, per_operand, epochs, details, row, counters, every_us)
    shown = prediction.warnings if as_json else resolve_name(
        "twin.reports.tables.header:place_warnings")(prediction).apart
    warn(dict.fromkeys((*shown, *effects,
                        *describe_measured_runtime(prediction, calibration),
                        *describe_cold(prediction, calibration),
                        *describe_numbers(prediction.deployment, calibration,
                                          asked.temperature))))
    note_files(written)
    if keep.keep is not None:
        keep.run("predict", asked)


def predict_program(program: Deployment, priced: Priced, *, as_json: bool, csv_folder: str | None,
                    plot: str | None, per_operand: bool, flames: str | None) -> None:
    """Report a program as a network is reported, and by function."""
    prediction = twin.predict(program, **priced.arguments)
    written = write_files(prediction, csv_folder=csv_folder, plot=plot, flames=flames)
    show_report(prediction, as_json, per_operand)
    if not as_json:
        show(open_console(), "")
        show_view(prediction, "functions:functions_table")
    warn(dict.fromkeys(prediction.warnings))
    note_files(written)


def check_files(csv_folder: str | None, plot: str | None, *, trace: str | None = None,
                exports: Iterable[str] = (), flames: str | None = None) -> None:
    """Refuse what could not be written, before anything is computed."""
    for path, check, *more in ((plot, "figures.overview:check_target"),
                               (trace, "formats:check_format", ".json"),
                               (csv_folder, "export:check_tables"),
                               (flames, "functions:check_flames"),
                               *((path, "formats:check_format") for path in exports)):
        if path is not None:
            resolve_name(f"twin.reports.{check}")(path, *more)


def write_files(prediction: Prediction, *, trace: str | None = None, exports: Iterable[str] = (),
                csv_folder: str | None, plot: str | None, roofline: object = None,
                flames: str | None = None) -> list[Path]:
    """Write tables, pictures and the files of other tools; returns where."""
    written: list[Path] = []
    for path, write, *more in ((trace, "formats:write_format", ".trace.json"),
                               *((path, "formats:write_format") for path in exports),
                               (csv_folder, "export:write_csv_files"),
                               (plot, "figures.overview:write_pictures", roofline),
                               (flames, "functions:write_function_flames")):
        if path is not None:
            found = resolve_name(f"twin.reports.{write}")(prediction, path, *more)
            written += [found] if isinstance(found, Path) else found
    return written


def refuse_beside(shown: str, options: Settings, accepted: str = "a network on a board") -> None:
    """Refuse options that mean nothing beside a program, a compiler's output, several networks."""
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"{given[0]}: not with {shown}; accepted: {accepted}")


def read_roofline(folder: str, board: str, plot: str | None) -> object:
    """Read micro-benchmarks for the roofline, which is one of several pictures."""
    from twin.api.commands.roofs import read_roofs
    from twin.reports.figures.overview import is_folder

    if plot is None or not is_folder(plot):
        raise UsageError("--roofs needs --plot DIR/: the roofline is one of its pictures")
    return read_roofs(folder, board)


def show_report(prediction: Prediction, as_json: bool, per_operand: bool,
                epochs: bool | None = None, details: bool | None = None, row: object = None,
                counters: bool = False, every_us: float | None = None) -> None:
    """Print the report; bill by operand, counters and epochs where they are asked for."""
    if as_json:
        show_json(prediction, per_operand=per_operand, duty=row, counters=counters)
        return
    duty = "" if row is None else resolve_name("twin.reports.tables.study_sentences:say_duty")(
        row, every_us)
    if details is None:
        details = prediction.deployment.target.executes
    views = ["report:report" if details else "brief:brief_report"]
    if per_operand:
        views.append("operands:operand_table")
    if counters:
        views.append("measured:platform_table")
    if prediction.tasks and (epochs or (details and epochs is None)):
        views.append("tasks:tasks_report" if epochs else "task_table:task_table")
    for place, view in enumerate(views):
        if place:
            show(open_console(), "")
        show_view(prediction, view, duty=duty)
