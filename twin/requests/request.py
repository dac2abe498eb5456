"""What a request is: a dataclass whose fields say how a command line and a file give them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import Any, ParamSpec, TypeVar, get_args

Fields = ParamSpec("Fields")
Asked = TypeVar("Asked")
Result = TypeVar("Result")

FIELD = object()
"""The command line's default is that of the field."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of a request is given.

    Parameters
    ----------
    names : str
        "--board -b"; empty for an argument that goes by its place.
    metavar, help : str or None
        As the help shows them.
    text : type or None
        What the command line takes, where that is not the field's own type.
    parse : callable or None
        Makes the field's value of it; raises `UsageError`.
    default : object
        Of the command line, where the field's is not of its type.
    least, most : float or None
        The range of a number.
    files : tuple of str or None
        Endings of files the value may name; empty: it is always a file or a folder.
    """

    names: str = ""
    metavar: str | None = None
    help: str | None = None
    text: Any = None
    parse: Callable[[Any], Any] | None = None
    default: Any = FIELD
    least: float | None = None
    most: float | None = None
    files: tuple[str, ...] | None = None

    def read(self, text: Any) -> Any:
        """Return the field's value of what was typed."""
        return text if self.parse is None else self.parse(text)


class Request:
    """Base of all requests; a field without an option is given in Python only."""

    @classmethod
    def list_options(cls) -> Mapping[str, tuple[Option, Any]]:
        """Return the option and the type of each field, a class's own before its bases'."""
        found: dict[str, tuple[Option, Any]] = {}
        for each in cls.__mro__:
            for name, hint in inspect.get_annotations(each).items():
                if hasattr(hint, "__metadata__"):
                    found.setdefault(name, (hint.__metadata__[0], get_args(hint)[0]))
        return found

    @classmethod
    def list_required(cls) -> tuple[str, ...]:
        """Return the fields a request cannot be without."""
        return tuple(each.name for each in fields(cls)  # type: ignore[arg-type]
                     if each.default is MISSING)

    @classmethod
    def of_options(cls, given: Mapping[str, Any]) -> Any:
        """Make the request of a command line's values; None is as good as not given."""
        options = cls.list_options()
        made = {name: options[name][0].read(value)
                for name, value in given.items() if value is not None}
        later = [name for name in cls.list_required() if name not in options]
        return cls(**dict.fromkeys(later), **made)

    @property
    def arguments(self) -> dict[str, Any]:
        """The fields a command line can give, by name."""
        return {name: getattr(self, name) for name in self.list_options()}


def primitive(hint: Any) -> Any:
    """Return bool, int, float or str where a type is that or none; else None."""
    kinds = [one for one in get_args(hint) or (hint,) if one is not type(None)]
    return kinds[0] if kinds[0] in (bool, int, float, str) and len(kinds) == 1 else None


def takes(request: Callable[Fields, Asked]
          ) -> Callable[[Callable[[Asked], Result]], Callable[Fields, Result]]:
    """Make a function of a request one of the request's fields, documented as they are."""
    def decorate(perform: Callable[[Asked], Result]) -> Callable[Fields, Result]:
        @wraps(perform)
        def function(*args: Fields.args, **named: Fields.kwargs) -> Result:
            return perform(request(*args, **named))

        signature = inspect.signature(request)
        parameters = [each.replace(annotation=_plain(each.annotation))
                      for each in signature.parameters.values()]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=parameters, return_annotation=inspect.signature(perform).return_annotation)
        function.__doc__ = f"{inspect.getdoc(perform)}\n\n{_describe(request)}"
        return function
    return decorate


def _plain(hint: Any) -> Any:
    """Return a type as a signature shows it, without its option."""
    kind = get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    return getattr(kind, "__forward_arg__", kind)


def _describe(request: Any) -> str:
    """Write the parameters of a request as numpy's docstrings do."""
    lines = ["Parameters", "----------"]
    for name, (option, hint) in request.list_options().items():
        kind = _plain(hint)
        lines += [f"{name} : {kind if isinstance(kind, str) else inspect.formatannotation(kind)}",
                  *([f"    {option.help}"] if option.help else [])]
    return "\n".join(lines)
