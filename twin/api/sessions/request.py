"""What a kept run was asked: a verb and its arguments, the files among them inside its folder.

A request is data: reading one runs nothing, and only the verbs listed here can be asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any

from hwmodels.errors import check_known
from hwmodels.files import JsonObject, check_keys
from hwmodels.frozen import frozen
from twin.api import requests
from twin.api.requests import Predict
from twin.api.requests.attribution import Attribute, Diagnose, Why
from twin.api.requests.firmware import Build
from twin.api.requests.measurement import MeasureNetwork
from twin.api.requests.studies import Select, Study, Sweep
from twin.errors import SessionError
from twin.pricing.calibration import AUTO, NONE

INPUTS = "inputs"
"""Folder of a session that holds copies of every file its run read."""


FORMS: Mapping[str, type[requests.Request]] = {
    "predict": Predict, "attribute": Attribute, "diagnose": Diagnose, "why": Why, "sweep": Sweep,
    "select": Select, "build_firmware": Build, "measure": MeasureNetwork, "study": Study}
"""Verbs whose runs can be kept, and asked again."""


@frozen
class Request:
    """A verb and its arguments.

    Parameters
    ----------
    verb : str
        Key of `FORMS`.
    arguments : mapping of str to value
        Those that were given; files relative to the session's folder.
    """

    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def find_files(self) -> Iterator[tuple[str, str]]:
        """Yield arguments that name a file or a folder, each path of a list by itself."""
        for name, (option, _) in FORMS[self.verb].list_options().items():
            value = self.arguments.get(name)
            for one in value if isinstance(value, list | tuple) else [value]:
                if one is not None and option.files is not None and (
                        not option.files or _is_file(name, str(one), option.files)):
                    yield name, str(one)

    def rename(self, move: Callable[[str, str], str]) -> JsonObject:
        """Return the arguments with the paths of files that a function of name and path gives."""
        moved = {(name, path): move(name, path) for name, path in self.find_files()}
        return {name: [moved.get((name, str(one)), one) for one in value]
                if isinstance(value, list | tuple) else moved.get((name, str(value)), value)
                for name, value in self.arguments.items()}

    def resolve(self, folder: Path) -> JsonObject:
        """Return the arguments with paths of files as they are from here."""
        return self.rename(lambda name, path: str(folder / path))


def make_request(verb: str, arguments: Mapping[str, Any]) -> Request:
    """Return a checked request; arguments that are None are as good as not given.

    Raises
    ------
    SessionError
        For a verb that cannot be kept, or an argument that is missing, unknown or of another type.
    """
    if arguments.get("accuracy") is not None:
        raise SessionError(f"{verb}.accuracy: its data and code are not kept; accepted: no "
                           "accuracy, or a study")
    if arguments.get("output") is not None:
        raise SessionError(f"{verb}.output: is not kept; accepted: no output")
    check_known("no runs are kept of", verb, FORMS, SessionError)
    form = FORMS[verb]
    options = form.list_options()
    given = {name: value for name, value in arguments.items() if value not in (None, (), [])
             and not (value == "" and name not in form.list_required())}
    check_keys(f"{verb}.", given, options, SessionError, form.list_required())
    for name, value in given.items():
        expected, is_right = _judge(options[name][1], value)
        if not is_right:
            raise SessionError(f"{verb}.{name}: {str(value)[:60]!r} is not {expected}")
    return Request(verb=verb, arguments=given)


def read_request(head: JsonObject) -> Request:
    """Return the request of a session's head, whose files must lie in its folder of inputs."""
    arguments = head.get("arguments")
    if not isinstance(arguments, dict):
        raise SessionError("arguments: a mapping is expected")
    request = make_request(str(head.get("verb")), arguments)
    for name, path in request.find_files():
        parts = PurePosixPath(path).parts
        if "\\" in path or len(parts) < 2 or parts[0] != INPUTS or ".." in parts:
            raise SessionError(f"{request.verb}.{name}: {path[:60]!r} is not below {INPUTS}/")
    return request


def _is_file(name: str, value: str, suffixes: tuple[str, ...]) -> bool:
    """Whether a verb may open what an argument names, rather than look it up."""
    return (value.lower().endswith(suffixes) or "/" in value or "\\" in value
            or (name == "calibration" and value not in (AUTO, NONE)))


def _judge(hint: Any, value: object) -> tuple[str, bool]:
    """Return what a field of a type takes in a file, and whether a value is that."""
    kind = requests.primitive(hint)
    if kind is bool:
        return "true or false", isinstance(value, bool)
    if kind is int:
        return "a whole number from 0 on", (isinstance(value, int) and not isinstance(value, bool)
                                            and value >= 0)
    if kind is float:
        return "a number above zero", (isinstance(value, int | float)
                                       and not isinstance(value, bool) and 0 < value < math.inf)
    if requests.is_mapping(hint):
        return "a mapping of paths to values", isinstance(value, dict) and all(
            isinstance(key, str) and isinstance(one, str | int | float | bool)
            for key, one in value.items())
    if isinstance(value, list | tuple):
        return "texts", all(isinstance(one, str | int | float) for one in value)
    return "a text", isinstance(value, str) and bool(value)
