"""`twin predict`: cycles, time and energy per layer, and why."""

from __future__ import annotations

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
    suggest_setting,
)
from twin.api.requests import AUTO, BOARDS, Deployed, Fed, Option, Part, Predict, Priced
from twin.cli.options import AsJson, Kept, Output, check_outputs, command
from twin.cli.output import note_files, open_console, show, show_json, show_view, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin import Deployment, Prediction
    from twin.api.requests import Options

ModelsOrNone = Annotated[list[str] | None, Option("", "MODEL...", (
    "Files .tflite, .onnx, .pte or .espdl, or networks of `twin models`; none with --elf."))]
BoardsOrNone = Annotated[list[str] | None, BOARDS]
ElfFile = Annotated[str | None, Option(
    "--elf", "FILE", "Instead of MODEL: a linked program of a Cortex-M or of RISC-V, run under "
    "emulation and billed as it is.")]

REFUSED = 3
"""Exit code where a model or a board was refused."""


class Shown(Output):
    """How a prediction is shown, and how much of it."""

    as_json: AsJson = False
    epochs: Annotated[bool | None, Option(
        "--epochs/--no-epochs", None, "With an accelerator: report every epoch as its profiler "
        "does, or none; by default a line each.")] = None
    details: Annotated[bool | None, Option(
        "--details/--brief", None, "Every layer, line of the bill and warning, or one screen; by "
        "default one screen, of a program all.")] = None
    per_operand: Annotated[bool, Option(
        "--per-operand", None, "Split the bill by operand: weights, input, output, scratch."
        )] = False
    counters: Annotated[bool, Option(
        "--counters", None, "Counters of the platform: what is modelled, and what silicon or an "
        "emulator counts.")] = False

    def show(self, prediction: Prediction, row: object = None, every_us: float | None = None,
             better: str = "") -> None:
        """Print the report; bill by operand, counters and epochs where they are asked for."""
        if self.as_json:
            show_json(prediction, per_operand=self.per_operand, duty=row, counters=self.counters)
            return
        duty = "" if row is None else resolve_name("twin.reports.tables.study_sentences:say_duty")(
            row, every_us)
        details = prediction.deployment.target.executes if self.details is None else self.details
        views = ["report:report" if details else "brief:brief_report"]
        if self.per_operand:
            views.append("operands:operand_table")
        if self.counters:
            views.append("measured:platform_table")
        if prediction.tasks and (self.epochs or (details and self.epochs is None)):
            views.append("tasks:tasks_report" if self.epochs else "tasks:task_table")
        for place, view in enumerate(views):
            if place:
                show(open_console(), "")
            show_view(prediction, view, duty=duty, better=better)


class Files(Output):
    """What is written beside a report: tables, pictures, and files of other tools."""

    csv_folder: Annotated[str | None, Option(
        "--csv", "DIR", "Write the tables as CSV files into a folder.")] = None
    plot: Annotated[str | None, Option(
        "--plot", "FILE", "Write layers and bill as one picture (.png, .svg, .pdf); into a folder "
        "(DIR/): every picture.")] = None
    roofs: Annotated[str | None, Option(
        "--roofs", "DIR", "With --plot DIR/: micro-benchmarks of the board (`twin measure --plan "
        "all`), whose rates are the roofline's roofs.")] = None
    trace: Annotated[str | None, Option(
        "--trace", "FILE", "Write a timeline for chrome://tracing or Perfetto (.json): layers and "
        "causes, or an accelerator's units and engines.")] = None
    exports: Annotated[list[str] | None, Option(
        "--export", "FILE", "Write for another tool, by how the name ends: .mlia.json, "
        ".node-data.json (Model Explorer), .speedscope.json, .trace.json, .bencher.json; may be "
        "given several times.")] = None
    flames: Annotated[str | None, Option(
        "--flamegraph", "FILE", "With --elf: layers, functions and causes as .svg, or as "
        ".speedscope.json.")] = None

    def check(self) -> None:
        """Refuse what could not be written."""
        for path, check, *more in ((self.plot, "figures.overview:check_target"),
                                   (self.trace, "formats:check_format", ".json"),
                                   (self.csv_folder, "export:check_tables"),
                                   (self.flames, "functions:check_flames"),
                                   *((path, "formats:check_format")
                                     for path in self.exports or ())):
            if path is not None:
                resolve_name(f"twin.reports.{check}")(path, *more)

    def write(self, found: Prediction, roofline: object = None) -> list[Path]:
        """Write a prediction; returns where."""
        written: list[Path] = []
        for path, write, *more in ((self.trace, "formats:write_format", ".trace.json"),
                                   *((path, "formats:write_format") for path in self.exports or ()),
                                   (self.csv_folder, "export:write_csv_files"),
                                   (self.plot, "figures.overview:write_pictures", roofline),
                                   (self.flames, "functions:write_function_flames")):
            if path is not None:
                made = resolve_name(f"twin.reports.{write}")(found, path, *more)
                written += [made] if isinstance(made, Path) else made
        return written

    def read_roofline(self, board: str) -> object:
        """Read micro-benchmarks for the roofline, which is one of several pictures."""
        if self.roofs is None:
            return None
        from twin.api.commands.roofs import read_roofs
        from twin.reports.figures.overview import is_folder

        if self.plot is None or not is_folder(self.plot):
            raise UsageError("--roofs needs --plot DIR/: the roofline is one of its pictures")
        return read_roofs(self.roofs, board)


@command
def predict(*, boards: BoardsOrNone = None, placed: Deployed, priced: Priced, fed: Fed,
            models: ModelsOrNone = None, shown: Shown, files: Files, elf: ElfFile = None,
            part: Part, keep: Kept) -> None:
    """Predict cycles, time and energy per layer, with the causes; several: one row each.

    Without a board: five different boards, a row each.
    """
    if elf is not None:
        if not boards:
            raise UsageError("--board is missing; accepted: --elf FILE -b BOARD")
        refuse_beside("--elf", accepted="--elf FILE -b BOARD without it", options={
            "MODEL": models, "--runtime": placed.runtime, "--weights": placed.weights,
            "--arena": placed.arena, "--assume-unsupported": placed.assume_unsupported,
            "--trace": files.trace, "--epochs": shown.epochs, "--export": files.exports,
            "--roofs": files.roofs, "--keep": keep.keep, "--counters": shown.counters,
            "a second --board": boards[1:],
            **name_options(fed)})
        from twin.api.commands.predict import runtime_of
        from twin.api.commands.program import deploy_part

        runtime_of(fspath(priced.calibration))  # reads it, where it is a file
        predict_program(deploy_part(elf, boards[0], part, placed), priced, shown, files)
        return
    if not models:
        raise UsageError("MODEL is missing; accepted: a .tflite or .onnx file, a network of "
                         "`twin models`, or --elf FILE")
    refuse_beside("a network", accepted="beside --elf FILE", options={
        "--from": part.begin, "--to": part.end, "--call": part.call, "--memory": part.memory,
        "--set-register": part.registers, "--flamegraph": files.flames, "--nth": part.nth,
        "--limit": part.limit, "--skip-startup": part.skip_startup})
    if not boards or len(models) * len(boards) > 1:
        from twin.cli.studying import SWEPT, show_several

        listed = not boards and len(models) == 1
        if listed:  # Reading refuses it in a line, not once a board.
            boards = [*list_first_boards(models[0])]
        boards = boards or [*FIRST_BOARDS]
        refuse_beside("several models or boards", {
            **name_options(files), "--plot": None, "--epochs": shown.epochs,
            "--per-operand": shown.per_operand, "--counters": shown.counters, "--keep": keep.keep})
        table = show_several(models, boards, placed, priced, plot=files.plot, as_json=shown.as_json,
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
            "--json": shown.as_json, "--counters": shown.counters, "--set": placed.changes,
            "--keep": keep.keep, **name_options(files), **name_options(fed)})
        compiled, warnings = twin.predict_compiled(model, board)
        show_view(compiled, "tasks:tasks_part")
        warn(warnings)
        return
    predict_network(
        Predict(model=model, board=board, **placed.arguments, **priced.arguments), fed, shown,
        files, keep)


def name_options(asked: Options) -> Settings:
    """Return what was given of a request's options, by their names."""
    return {option.names: getattr(asked, name)
            for name, (option, _) in asked.list_options().items()}


def predict_network(asked: Predict, fed: Fed, shown: Shown, files: Files, keep: Kept) -> None:
    """Report one network on one board, and write what was asked for beside it."""
    check_outputs(folder=keep.keep)
    calibration = fspath(asked.calibration)
    roofline = files.read_roofline(fspath(asked.board))
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
    if shown.epochs and not prediction.tasks:
        raise UsageError(f"--epochs: {deployment.board.name} runs nothing on an accelerator under "
                         f"{deployment.runtime.identity}; accepted: without --epochs")
    if given and deployer.duty is not None:
        row, = deployer.predict_changed(prediction.deployment, [{}])
        every_us = deployer.duty.every_us
        if prediction.time_us > deployer.duty.every_us:
            effects = (f"--every {fed.every}: shorter than an inference, which cannot keep up",
                       *effects)
    # Files first: a reader that closes the pipe (`| head`) ends this at the report.
    written = files.write(prediction, roofline)
    better = ""
    if not (shown.as_json or asked.changes) and calibration == AUTO:
        found = suggest_setting(prediction)
        better = "" if found is None else f"{found.words}: " + resolve_name(
            "twin.reports.tables.advice:say_share")(found)
    shown.show(prediction, row, every_us, better)
    apart = prediction.warnings if shown.as_json else resolve_name(
        "twin.reports.tables.header:place_warnings")(prediction).apart
    warn(dict.fromkeys((*apart, *effects,
                        *describe_measured_runtime(prediction, calibration),
                        *describe_cold(prediction, calibration),
                        *describe_numbers(prediction.deployment, calibration,
                                          asked.temperature))))
    note_files(written)
    if keep.keep is not None:
        keep.run("predict", asked)


def predict_program(program: Deployment, priced: Priced, shown: Shown, files: Files) -> None:
    """Report a program as a network is reported, and by function."""
    prediction = twin.predict(program, **priced.arguments)
    written = files.write(prediction)
    shown.show(prediction)
    if not shown.as_json:
        show(open_console(), "")
        show_view(prediction, "functions:functions_table")
    warn(dict.fromkeys(prediction.warnings))
    note_files(written)


def refuse_beside(shown: str, options: Settings, accepted: str = "a network on a board") -> None:
    """Refuse options that mean nothing beside a program, a compiler's output, several networks."""
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"{given[0]}: not with {shown}; accepted: {accepted}")
