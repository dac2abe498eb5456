"""How requests become options of commands, and the options only a command line has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from functools import cache
from os import PathLike, fspath
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from twin.api.requests import AUTO, FIELD, Deployed, Limited, Option, Request, primitive

if TYPE_CHECKING:
    from twin import Deployment

ModelsOrNone = Annotated[list[str] | None, Option(
    "", "MODEL...", "Files .tflite or .onnx, or networks of `twin models`; none with --elf.")]
AsJson = Annotated[bool, Option("--json", None, "Write JSON to stdout instead of tables.")]
PlotFile = Annotated[str | None, Option("--plot", "FILE", "Write a picture: .png, .svg or .pdf.")]

ElfFile = Annotated[str | None, Option(
    "--elf", "FILE", "Instead of MODEL: a linked program of a Cortex-M or of RISC-V, run under "
    "emulation and billed as it is.")]
Begin = Annotated[str | None, Option(
    "--from", "SYMBOL", "With --elf: where the billed part begins; ends where that function "
    "returns.")]
End = Annotated[str | None, Option("--to", "SYMBOL", "With --from: where it ends instead.")]
Call = Annotated[str | None, Option(
    "--call", "SYMBOL", "With --elf: a function called once main is reached, or --from in a file "
    "without symbols.")]
Nth = Annotated[str | None, Option("--nth", "N", "With --from: which time it is reached.")]
LayersBy = Annotated[str, Option(
    "--layers", "PATTERNS", "With --elf: functions whose calls are layers, such as 'run_*,pool*', "
    "a shipped set, auto or none.")]
MemoryFiles = Annotated[list[str] | None, Option(
    "--memory", "FILE@ADDRESS", "With --elf: what is found at an address; may be given several "
    "times.")]
Registers = Annotated[list[str] | None, Option(
    "--set-register", "REG=VALUE", "With --elf: r0, sp, a0 (RISC-V) ... as the billed part begins, "
    "or 0xADDRESS of a peripheral's.")]
Limit = Annotated[str | None, Option(
    "--limit", "N", "With --elf: instructions after which it is given up.")]
Flames = Annotated[str | None, Option(
    "--flamegraph", "FILE", "With --elf: layers, functions and causes as .svg, or as "
    ".speedscope.json.")]


def place(model: str, board: str, asked: Deployed,
          calibration: str | PathLike[str] = AUTO) -> Deployment:
    """Put a model on a board as a request says; its changes are not made yet."""
    from twin.api.commands.predict import deploy_as_told

    return deploy_as_told(model, board, calibration=fspath(calibration), **asked.arguments)


def deploy(model: str, board: str, asked: Deployed,
           calibration: str | PathLike[str] = AUTO) -> Deployment:
    """Put a model on a board as a request says, with its changes."""
    deployment = place(model, board, asked, calibration)
    return deployment.replace(asked.changes) if asked.changes else deployment


def parse_limits(asked: Limited) -> dict[str, Any]:
    """Return limits as numbers, as `twin.check` takes them: ms, uJ, bytes; None where not given."""
    from twin.api.commands.check import read_limit

    names = {"max_ms": "max_ms", "max_uj": "max_uj", "max_ram": "max_ram_bytes",
             "max_flash": "max_flash_bytes"}
    return {key: None if (limit := getattr(asked, name)) is None else read_limit(name, limit)
            for name, key in names.items()}


def check_picture(plot: str | None) -> None:
    """Refuse a picture that could not be written, before anything is computed."""
    if plot is not None:
        from pathlib import Path

        from twin.reports.figures.canvas import check_suffix

        check_suffix(Path(plot))
        check_outputs(plot)


def check_outputs(*files: str | None, folder: str | None = None) -> None:
    """Refuse files and a folder that could not be written, before anything is computed."""
    if folder is None and not any(files):
        return
    from twin.reports.export import check_place

    for file in filter(None, files):
        check_place(file)
    if folder is not None:
        check_place(folder, folder=True)


Keep = Annotated[str | None, Option(
    "--keep", "DIR", "Keep what was read, what stood between and the result in a new folder below "
    "DIR; `twin sessions`, `twin bundle`.")]
NO_DEFAULT, KEYWORD_ONLY = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function of requests the options of their fields."""
    hints = get_type_hints(function, include_extras=True)
    requests = {name: hint for name, hint in hints.items()
                if isinstance(hint, type) and issubclass(hint, Request)}
    own = {name: hint.__metadata__[0] for name, hint in hints.items()
           if isinstance(getattr(hint, "__metadata__", (None,))[0], Option)}
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        made = derive(requests[name]) if name in requests else [
            make_parameter(name, own[name], get_args(hints[name])[0], parameter.default)
            if name in own else parameter.replace(annotation=hints[name], kind=KEYWORD_ONLY)]
        parameters.update((each.name, each) for each in made if each.name not in parameters)

    def call(**given: Any) -> Any:
        asked = {name: request.of_options({field: given[field] for field in request.list_options()})
                 for name, request in requests.items()}
        return function(**asked, **{
            name: own[name].read(value) if name in own and value is not None else value
            for name, value in given.items() if name in hints})

    call.__name__, call.__doc__, call.__module__ = (
        function.__name__, function.__doc__, function.__module__)
    call.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    call.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return call


def derive(request: type[Request]) -> Iterator[inspect.Parameter]:
    """Yield the parameters a command line has for a request."""
    defaults = {each.name: each.default for each in fields(request)}  # type: ignore[arg-type]
    for name, (option, hint) in request.list_options().items():
        yield make_parameter(name, option, hint, NO_DEFAULT if defaults[name] is MISSING
                             else defaults[name])


def make_parameter(name: str, option: Option, hint: Any, default: Any) -> inspect.Parameter:
    """Return what a command line has for a field."""
    default = default if option.default is FIELD else option.default
    if default is not NO_DEFAULT and not isinstance(default, bool | int | float | str):
        default = None  # Nothing is given where Python has a list.
    return inspect.Parameter(
        name, KEYWORD_ONLY, default=default,
        annotation=annotate(option, option.text or primitive(hint), default is None))


@cache
def annotate(option: Option, text: Any, optional: bool) -> Any:
    """Return what the command line's library makes an option or an argument of."""
    made: Any = typer.Argument(metavar=option.metavar, help=option.help)
    if option.names:
        made = typer.Option(*option.names.split(), metavar=option.metavar, help=option.help,
                            min=option.least, max=option.most)
    return Annotated[text | None if optional else text, made]
