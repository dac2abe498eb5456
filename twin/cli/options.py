"""How requests become options of commands, and the options only a command line has."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from os import PathLike, fspath
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_type_hints

import typer
from typer.core import TyperGroup

import twin
from twin.api.requests import AUTO, FIELD, Option, Options, Placed, Request, is_mapping, primitive
from twin.cli.output import note_files, note_written, show_view, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin import Deployment

AsJson = Annotated[bool, Option("--json", None, "Write JSON to stdout instead of tables.")]
PlotFile = Annotated[str | None, Option("--plot", "FILE", "Write a picture: .png, .svg or .pdf.")]


def place(model: str, board: str, asked: Placed,
          calibration: str | PathLike[str] = AUTO) -> Deployment:
    """Put a model on a board as a request says; its changes are not made yet."""
    from twin.api.commands.predict import check_set_once, deploy_as_stated

    placed = deploy_as_stated(model, board, calibration=fspath(calibration), **asked.arguments)
    check_set_once(placed.board, asked)
    return placed


def deploy(model: str, board: str, asked: Placed,
           calibration: str | PathLike[str] = AUTO) -> Deployment:
    """Put a model on a board as a request says, with its changes."""
    return place(model, board, asked, calibration).replace(asked.arguments.get("changes"))


def check_picture(plot: str) -> None:
    """Refuse a picture that could not be written, before anything is computed."""
    from twin.reports.figures.canvas import check_suffix

    check_suffix(Path(plot))
    check_outputs(plot)


def check_outputs(*files: str | PathLike[str] | None,
                  folder: str | PathLike[str] | None = None) -> None:
    """Refuse files and a folder that could not be written, before anything is computed."""
    if folder is None and not any(files):
        return
    from twin.reports.export import check_place

    for file in files:
        if file:
            check_place(fspath(file))
    if folder is not None:
        check_place(fspath(folder), folder=True)


Keep = Annotated[str | None, Option(
    "--keep", "DIR", "Save inputs, intermediate results and the result in a new folder below DIR, "
    "for `twin sessions` and `twin bundle`.")]
PageFile = Annotated[str | None, Option(
    "--report", "FILE", "Write it as one page that opens offline: a file ending in .html.")]
NO_DEFAULT, KEYWORD_ONLY = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY


class Output(Options):
    """Options only a command line has: where a result goes besides the terminal."""

    postponed = True

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)

    @classmethod
    def list_required(cls) -> tuple[str, ...]:
        """Return nothing: all of them have defaults."""
        return ()

    def check(self) -> None:
        """Refuse what could not be written, before anything is computed."""

    def write(self, found: Any) -> Iterable[Path]:
        """Write a result, and return the files."""
        return ()


class Json(Output):
    """The document of a result instead of its tables."""

    as_json: AsJson = False


class Target(Output):
    """One option that names a file or a folder: what a subclass does where it is given."""

    def check(self) -> None:
        """Refuse what could not be written, where anything is to be."""
        for target in filter(None, self.arguments.values()):
            self.check_target(target)

    def write(self, found: Any) -> Iterable[Path]:
        """Write a result where it is wanted."""
        return [path for target in filter(None, self.arguments.values())
                for path in self.write_target(found, target)]

    def check_target(self, target: str) -> None:
        """Refuse a file that could not be written."""
        check_outputs(target)

    def write_target(self, found: Any, target: str) -> Iterable[Path]:
        """Write a result, and return the files."""
        raise NotImplementedError


class Paged(Target):
    """A result as a page that opens offline."""

    page: PageFile = None

    def check_target(self, target: str) -> None:
        """Refuse a page that could not be written."""
        if not target.lower().endswith((".html", ".htm")):
            raise UsageError(f"{target}: a page ends in .html")
        check_outputs(target)

    def write_target(self, found: Any, target: str) -> Iterable[Path]:
        """Write the page."""
        from twin.api.commands.report import write_report

        return [write_report(found, target, command=say_command())]


def say_command() -> str:
    """Return what was typed, as a shell takes it."""
    return shlex.join(("twin", *sys.argv[1:]))


class Pictured(Target):
    """A result as a picture; `draw` is "module:function" of `twin.reports.figures`."""

    plot: PlotFile = None
    draw: ClassVar[str] = ""

    def check_target(self, target: str) -> None:
        """Refuse a picture that could not be written."""
        check_picture(target)

    def write_target(self, found: Any, target: str) -> Iterable[Path]:
        """Draw it."""
        from twin.reports.figures.canvas import save_figure

        return [save_figure(resolve_name(f"twin.reports.figures.{self.draw}")(found), target)]


class Kept(Output):
    """Whether a run is kept."""

    keep: Keep = None

    def run(self, function: str, asked: Request, **aside: Any) -> Any:
        """Ask a function of `twin`, and keep the run where a folder is given for it.

        Parameters
        ----------
        asked
            What it is asked, which is kept.
        aside
            Further arguments, which are not.
        """
        if self.keep is None:
            return getattr(twin, function)(**asked.arguments, **aside)
        result, session = twin.keep(function, asked.arguments, self.keep,
                                    command=["twin", *sys.argv[1:]], aside=aside)
        note_written(session.folder)
        return result


def command(function: Callable[..., Any] | None = None, **shown: Any) -> Callable[..., Any]:
    """Give a function of requests the options of their fields, and show what it returns.

    Parameters
    ----------
    function
        Takes requests, outputs and options of its own.
    shown
        Of `present`; without any the function shows its result itself.
    """
    if function is None:
        return partial(command, **shown)
    hints = get_type_hints(function, include_extras=True)
    requests = {name: hint for name, hint in hints.items()
                if isinstance(hint, type) and issubclass(hint, Options)}
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
        outputs = [each for each in asked.values() if isinstance(each, Output)]
        for output in outputs:
            output.check()
        found = function(**asked, **{
            name: own[name].read(value) if name in own and value is not None else value
            for name, value in given.items() if name in hints and name not in requests})
        return present(found, outputs, **shown) if shown else found

    call.__name__, call.__doc__, call.__module__ = (
        function.__name__, function.__doc__, function.__module__)
    call.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    call.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return call


def present(found: Any, outputs: Sequence[Output], *, view: str,
            warnings: Callable[[Any], Iterable[str]] = lambda found: getattr(found, "remarks", ()),
            written: Callable[[Any], Iterable[Path]] = lambda found: (),
            ends: Callable[[Any], object] = lambda found: False) -> None:
    """Show a result, warn of what is to be known of it, and write it where it is wanted.

    Parameters
    ----------
    found
        As a function of `twin` returned it.
    view
        "module:function" of `twin.reports.tables`, for `show_view`.
    warnings, written
        Return what to warn of, and which files the function wrote.
    ends
        Whether the exit code is 1.
    """
    options = {name: value for output in outputs for name, value in output.arguments.items()}
    show_view(found, view, **options)
    warn(warnings(found))
    note_files((*written(found), *(file for output in outputs for file in output.write(found))))
    if ends(found):
        raise typer.Exit(1)


def derive(request: type[Options]) -> Iterator[inspect.Parameter]:
    """Yield the parameters a command line has for a request."""
    for name, (option, hint) in request.list_options().items():
        yield make_parameter(name, option, hint, getattr(request, name, NO_DEFAULT))


def make_parameter(name: str, option: Option, hint: Any, default: Any) -> inspect.Parameter:
    """Return what a command line has for a field."""
    default = default if option.default is FIELD else option.default
    if default is not NO_DEFAULT and not isinstance(default, bool | int | float | str):
        default = None  # Nothing is given where Python has a list.
    return inspect.Parameter(
        name, KEYWORD_ONLY, default=default,
        annotation=annotate(option, option.text or (list[str] if is_mapping(hint) else
                                                    not option.parse and primitive(hint)) or str,
                            default is None))


@cache
def annotate(option: Option, text: Any, optional: bool) -> Any:
    """Return what the command line's library makes an option or an argument of."""
    made: Any = typer.Argument(metavar=option.metavar, help=option.help)
    if option.names:
        made = typer.Option(*option.names.split(), metavar=option.metavar, help=option.help,
                            min=option.least, max=option.most)
    return Annotated[text | None if optional else text, made]


class ShownByName(TyperGroup):
    """A group whose `show` is meant where no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is no command for what is to be shown."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)
