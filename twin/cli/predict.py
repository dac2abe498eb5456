"""`twin predict`: cycles, time and energy per layer, and why."""

from __future__ import annotations

from collections.abc import Mapping
from os import fspath
from typing import TYPE_CHECKING, Annotated

import typer

import twin
from twin.api.commands.predict import deploy_request, describe_measured_runtime
from twin.api.requests import AUTO, BoardNames, Deployed, Option, Predict, Priced
from twin.cli.options import (
    AsJson,
    Begin,
    Call,
    ElfFile,
    End,
    Flames,
    Keep,
    LayersBy,
    Limit,
    MemoryFiles,
    ModelsOrNone,
    Nth,
    Registers,
    check_outputs,
    command,
)
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from calibration.microbench.machine import Machine
    from twin import Prediction
    from twin.program.deployment import Program

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
TraceFile = Annotated[str | None, Option(
    "--trace", "FILE", "Write a timeline for chrome://tracing or Perfetto (.json): layers and "
    "causes, or an accelerator's units and engines.")]
Exports = Annotated[list[str] | None, Option(
    "--export", "FILE", "Write for another tool, by how the name ends: .mlia.json, .node-data.json "
    "(Model Explorer), .speedscope.json, .trace.json, .bencher.json; may be given several times.")]
Details = Annotated[bool | None, Option(
    "--details/--brief", None, "Every layer and line of the bill, or one screen; by default one "
    "screen with an accelerator.")]

REFUSED = 3
"""Exit code where a model or a board was refused."""


@command
def predict(boards: BoardNames, placed: Deployed, priced: Priced, models: ModelsOrNone = None,
            as_json: AsJson = False, csv_folder: CsvFolder = None, plot: PlotTarget = None,
            epochs: Epochs = None, details: Details = None, trace: TraceFile = None,
            exports: Exports = None, per_operand: PerOperand = False, roofs: Roofs = None,
            elf: ElfFile = None, begin: Begin = None, end: End = None, call: Call = None,
            nth: Nth = None, layers_by: LayersBy = AUTO, memory: MemoryFiles = None,
            registers: Registers = None, limit: Limit = None, flames: Flames = None,
            keep: Keep = None) -> None:
    """Predict cycles, time and energy per layer, and say why; of several a row each."""
    if elf is not None:
        refuse_beside("--elf", accepted="--elf bills the program alone; leave this out", options={
            "MODEL": models, "--runtime": placed.runtime, "--weights": placed.weights,
            "--arena": placed.arena, "--assume-unsupported": placed.assume_unsupported,
            "--trace": trace, "--epochs": epochs, "--export": exports, "--roofs": roofs,
            "--keep": keep, "a second --board": boards[1:]})
        from twin.cli.program import deploy_from_options

        check_beside(csv_folder, plot, flames, fspath(priced.calibration))
        program = deploy_from_options(
            elf, boards[0], begin=begin, end=end, call=call, nth=nth, layers=layers_by,
            memory=memory, registers=registers, limit=limit, placed=placed)
        predict_program(program, priced, as_json=as_json, csv_folder=csv_folder, plot=plot,
                        per_operand=per_operand, flames=flames)
        return
    if not models:
        raise UsageError("MODEL is missing; accepted: a .tflite or .onnx file, a network of "
                         "`twin models`, or --elf FILE")
    refuse_beside("a network", accepted="beside --elf FILE", options={
        "--from": begin, "--to": end, "--call": call, "--memory": memory,
        "--set-register": registers, "--flamegraph": flames, "--nth": nth, "--limit": limit})
    if len(models) * len(boards) > 1:
        refuse_beside("several models or boards", {
            "--csv": csv_folder, "--trace": trace, "--epochs": epochs, "--export": exports,
            "--per-operand": per_operand, "--roofs": roofs, "--keep": keep})
        from twin.cli.studying import show_several

        if show_several(models, boards, placed, priced, plot=plot, as_json=as_json).failed:
            raise typer.Exit(REFUSED)
        return
    (model,), (board,) = models, boards
    if model.endswith((".json", ".csv")) and is_compiled(model):
        refuse_beside(f"a compiler's output such as {model}", {
            "--json": as_json, "--csv": csv_folder, "--plot": plot, "--trace": trace,
            "--export": exports, "--set": placed.changes, "--keep": keep})
        show_compiled(model, board)
        return
    predict_network(
        Predict(model=model, board=board, **placed.arguments, **priced.arguments),
        as_json=as_json, csv_folder=csv_folder, plot=plot, roofs=roofs, trace=trace,
        per_operand=per_operand, epochs=epochs, details=details, exports=exports or [], keep=keep)


def predict_network(asked: Predict, *, as_json: bool, csv_folder: str | None, plot: str | None,
                    roofs: str | None, trace: str | None, per_operand: bool,
                    epochs: bool | None, details: bool | None, exports: list[str],
                    keep: str | None) -> None:
    """Report one network on one board, and write what was asked for beside it."""
    check_targets(csv_folder, plot)
    check_exports(trace, exports)
    check_outputs(folder=keep)
    board, calibration = fspath(asked.board), fspath(asked.calibration)
    roofline = None if roofs is None else read_roofline(roofs, board, plot)
    deployment = deploy_request(asked)
    effects: tuple[str, ...] = ()
    if asked.changes:
        changed = twin.what_if(deployment, asked.changes, temperature=asked.temperature,
                               calibration=calibration)
        prediction, effects = changed.after, changed.effects
    else:
        prediction = twin.predict(deployment, temperature=asked.temperature,
                                  calibration=calibration)
    # Files first: a reader that closes the pipe (`| head`) ends this at the report.
    exported = write_exports(prediction, trace, exports)
    beside = write_beside(prediction, csv_folder, plot, roofline)
    if as_json:
        show_json(prediction, per_operand=per_operand)
    else:
        show_report(prediction, per_operand, epochs, details)
    note_paths(exported)
    warn(dict.fromkeys((*prediction.warnings, *effects,
                        *describe_measured_runtime(prediction, calibration))))
    note_paths(beside)
    if keep is not None:
        from twin.cli.sessions import run_kept

        run_kept("predict", asked.arguments, keep)


def check_exports(trace: str | None, exports: list[str]) -> None:
    """Refuse what could not be written, before anything is computed."""
    if trace is not None:
        from twin.reports.trace import check_trace

        check_trace(trace)
    for path in exports:
        from twin.reports.formats import check_format

        check_format(path)


def write_exports(prediction: Prediction, trace: str | None, exports: list[str]) -> list[Path]:
    """Write the files of other tools."""
    written = []
    if trace is not None:
        from twin.reports.trace import write_trace

        written.append(write_trace(prediction, trace))
    for path in exports:
        from twin.reports.formats import write_format

        written.append(write_format(prediction, path))
    return written


def predict_program(program: Program, priced: Priced, *, as_json: bool, csv_folder: str | None,
                    plot: str | None, per_operand: bool, flames: str | None) -> None:
    """Report a program as a network is reported, and by function."""
    from twin.cli.program import show_functions, write_flames

    prediction = twin.predict(program, **priced.arguments)
    written = write_beside(prediction, csv_folder, plot, None)
    if flames is not None:
        written.append(write_flames(prediction, flames))
    if as_json:
        show_json(prediction, per_operand=per_operand)
    else:
        show_report(prediction, per_operand, None, None)
        show_functions(prediction)
    warn(dict.fromkeys(prediction.warnings))
    note_paths(written)


def check_beside(csv_folder: str | None, plot: str | None, flames: str | None,
                 calibration: str) -> None:
    """Refuse what could not be written or read, before a program runs."""
    check_targets(csv_folder, plot)
    if flames is not None:
        from twin.reports.functions import check_flames

        check_flames(flames)
    from twin.api.commands.predict import runtime_of

    runtime_of(calibration)  # reads it, where it is a file


def write_beside(prediction: Prediction, csv_folder: str | None, plot: str | None,
                 roofline: Machine | None) -> list[Path]:
    """Write tables and pictures into files."""
    written: list[Path] = []
    if csv_folder is not None:
        from twin.reports.export import write_csv_files

        written.extend(write_csv_files(prediction, csv_folder))
    if plot is not None:
        from twin.reports.figures.sheet import write_pictures

        written.extend(write_pictures(prediction, plot, roofline))
    return written


def note_paths(written: list[Path]) -> None:
    """Say on stderr which files were written, behind the report."""
    for path in written:
        note_written(path)


def is_compiled(path: str) -> bool:
    """Whether a file is what an accelerator's compiler wrote, not a model."""
    from twin.api.commands import compiled

    return compiled.is_compiled(path)


def refuse_beside(shown: str, options: Mapping[str, object],
                  accepted: str = "a network on a board") -> None:
    """Refuse options that mean nothing beside a program, a compiler's output, several networks."""
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"{given[0]}: not with {shown}; accepted: {accepted}")


def read_roofline(folder: str, board: str, plot: str | None) -> Machine:
    """Read micro-benchmarks for the roofline, which is one of several pictures."""
    from twin.api.commands.roofs import read_roofs
    from twin.reports.figures.sheet import is_folder

    if plot is None or not is_folder(plot):
        raise UsageError("--roofs needs --plot DIR/: the roofline is one of its pictures")
    return read_roofs(folder, board)


def check_targets(csv_folder: str | None, plot: str | None) -> None:
    """Refuse what could not be written, before anything is computed."""
    if plot is not None:
        from twin.reports.figures.sheet import check_target

        check_target(plot)
    if csv_folder is not None:
        from twin.reports.export import check_tables

        check_tables(csv_folder)


def show_report(prediction: Prediction, per_operand: bool, epochs: bool | None,
                details: bool | None) -> None:
    """Print the report, and the bill by operand and the epochs where they are asked for."""
    console = open_console()
    if details is None:
        details = not prediction.epochs
    if details:
        from twin.reports.tables.report import report

        show(console, report(prediction, console))
    else:
        from twin.reports.tables.brief import brief_report

        show(console, brief_report(prediction, console))
    if per_operand:
        from twin.reports.tables.operands import operand_table

        show(console, "")
        show(console, operand_table(prediction))
    if prediction.epochs and (epochs or (details and epochs is None)):
        from twin.reports.tables.epoch_table import epoch_table
        from twin.reports.tables.epochs import epochs_report

        show(console, "")
        show(console, epochs_report(prediction) if epochs else epoch_table(prediction, console))


def show_compiled(path: str, board: str) -> None:
    """Report the epochs of a network as its compiler laid it out."""
    from twin.reports.tables.epochs import epochs_part

    sheet, remarks = twin.predict_compiled(path, board)
    show(open_console(), epochs_part(sheet))
    warn(remarks)
