"""Commands of requests: their fields become options, and what is typed becomes the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, get_type_hints

import typer

from twin.requests.request import FIELD, Option, Request, primitive


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function of requests the options of their fields."""
    hints = get_type_hints(function, include_extras=True)
    requests = {name: hint for name, hint in hints.items()
                if isinstance(hint, type) and issubclass(hint, Request)}
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        made = derive(requests[name]) if name in requests else [
            parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)]
        parameters.update((each.name, each) for each in made if each.name not in parameters)

    def call(**given: Any) -> Any:
        asked = {name: request.of_options({field: given[field] for field in request.list_options()})
                 for name, request in requests.items()}
        return function(**asked, **{name: value for name, value in given.items()
                                    if name in hints})

    call.__name__, call.__doc__, call.__module__ = (
        function.__name__, function.__doc__, function.__module__)
    call.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    call.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return call


def derive(request: type[Request]) -> Iterator[inspect.Parameter]:
    """Yield the parameters a command line has for a request."""
    defaults = {each.name: each.default for each in fields(request)}  # type: ignore[arg-type]
    for name, (option, hint) in request.list_options().items():
        default = defaults[name] if option.default is FIELD else option.default
        if default is not None and default is not MISSING and not isinstance(
                default, bool | int | float | str):
            default = None  # A list in Python: none is given.
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=annotate(option, option.text or primitive(hint), default is None))


@cache
def annotate(option: Option, text: Any, optional: bool) -> Any:
    """Return what the command line's library makes an option or an argument of."""
    made: Any = typer.Argument(metavar=option.metavar, help=option.help)
    if option.names:
        made = typer.Option(*option.names.split(), metavar=option.metavar, help=option.help,
                            min=option.least, max=option.most)
    return Annotated[text | None if optional else text, made]
