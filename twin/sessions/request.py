"""What a kept run was asked: a verb and its arguments, the files among them inside its folder.

A request is data: reading one runs nothing, and only the verbs listed here can be asked again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from hwmodels.errors import did_you_mean
from twin.errors import SessionError
from twin.pricing.calibration import AUTO, NONE

INPUTS = "inputs"
"""Folder of a session that holds copies of every file its run read."""

MODEL_SUFFIXES = (".tflite", ".onnx", ".json")
BOARD_SUFFIXES = (".yaml", ".yml")
OVERLAY_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Which arguments a verb takes.

    Parameters
    ----------
    required : tuple of str
        Those it cannot be asked without.
    files : mapping of str to tuple of str
        Arguments that may name a file, with its endings; none: always a file or a folder.
    texts, numbers, switches, mappings : tuple of str
        The others, by type; a mapping is of text to text.
    """

    required: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    mappings: tuple[str, ...] = ()

    def list_names(self) -> tuple[str, ...]:
        """Return every argument."""
        return (*self.files, *self.texts, *self.numbers, *self.switches, *self.mappings)


_PLACES = ("runtime", "weights", "arena")

FORMS: Mapping[str, Form] = {
    "predict": Form(
        required=("model", "board"),
        files={"model": MODEL_SUFFIXES, "board": BOARD_SUFFIXES, "calibration": OVERLAY_SUFFIXES},
        texts=(*_PLACES, "assume_unsupported", "temperature"), numbers=("clock_hz",),
        mappings=("changes",)),
    "attribute": Form(
        required=("predicted", "measured"),
        files={"predicted": MODEL_SUFFIXES, "measured": (), "healthy": (),
               "board": BOARD_SUFFIXES, "calibration": OVERLAY_SUFFIXES},
        texts=_PLACES, numbers=("clock_hz",), switches=("verdicts", "shapley", "anyway")),
    "diagnose": Form(
        required=("folder",),
        files={"folder": (), "healthy": (), "model": MODEL_SUFFIXES, "board": BOARD_SUFFIXES,
               "calibration": OVERLAY_SUFFIXES},
        texts=_PLACES, numbers=("clock_hz",)),
    "study": Form(required=("study",), files={"study": ()}),
}
"""Verbs whose runs can be kept, and asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
        """Yield arguments that name a file or a folder, with its path."""
        for name, suffixes in FORMS[self.verb].files.items():
            value = self.arguments.get(name)
            if value is not None and (not suffixes or _is_file(name, str(value), suffixes)):
                yield name, str(value)

    def resolve(self, folder: Path) -> dict[str, Any]:
        """Return the arguments with paths of files as they are from here."""
        return {**self.arguments, **{name: str(folder / path) for name, path in self.find_files()}}


def make_request(verb: str, arguments: Mapping[str, Any]) -> Request:
    """Return a checked request; arguments that are None are as good as not given.

    Raises
    ------
    SessionError
        For a verb that cannot be kept, or an argument that is missing, unknown or of another type.
    """
    form = FORMS.get(verb)
    if form is None:
        raise SessionError(f"{verb}: runs of it are not kept; {did_you_mean(verb, tuple(FORMS))}")
    given = {name: value for name, value in arguments.items() if value is not None}
    for name, value in given.items():
        if name not in form.list_names():
            raise SessionError(f"{verb}.{name}: unknown; {did_you_mean(name, form.list_names())}")
        if not _is_right(form, name, value):
            raise SessionError(f"{verb}.{name}: {str(value)[:60]!r} is not {_expected(form, name)}")
    for name in form.required:
        if name not in given:
            raise SessionError(f"{verb}.{name}: is missing")
    return Request(verb=verb, arguments=given)


def read_request(head: Mapping[str, Any]) -> Request:
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


def _is_right(form: Form, name: str, value: object) -> bool:
    if name in form.switches:
        return isinstance(value, bool)
    if name in form.numbers:
        return (isinstance(value, int | float) and not isinstance(value, bool)
                and 0 < value < math.inf)
    if name in form.mappings:
        return isinstance(value, dict) and all(
            isinstance(key, str) and isinstance(one, str | int | float | bool)
            for key, one in value.items())
    return isinstance(value, str) and bool(value)


def _expected(form: Form, name: str) -> str:
    if name in form.switches:
        return "true or false"
    if name in form.numbers:
        return "a number above zero"
    return "a mapping of paths to values" if name in form.mappings else "a text"
