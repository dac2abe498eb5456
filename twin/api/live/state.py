"""What the page asks for: a network on a board with what was changed, checked before it is used.

The page keeps it in its address, so that a link opens what its sender saw; whatever comes from
there is text of somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from hwmodels.board.file import list_boards, load_board
from hwmodels.errors import did_you_mean
from hwmodels.files import JsonObject, is_path
from twin.api.requests import Predict
from twin.errors import UsageError
from twin.network import zoo

MOST_CHANGES = 40
"""What-if paths of one state."""

UPLOAD = "upload:"
"""A model or board that came over the wire: this, and the SHA-256 of its bytes."""

GONE = "a file of this state is not here, or not any more; accepted: uploading it again"
"""Of an upload that is none of those kept."""

_UPLOADED = re.compile(rf"{UPLOAD}[0-9a-f]{{64}}")

COMPILED = "firmware"
"""The runtime whose kernels are built by a compiler: never for whoever asks over the wire."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Library = Annotated[str, StringConstraints(pattern=r"^\w[\w.+-]*(@[\w.+-]+)?$", max_length=80)]
Path = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][\w.]*$", max_length=120)]
Value = Annotated[str, StringConstraints(min_length=1, max_length=120)]


class Wire(BaseModel):
    """What comes over the wire: of its type, and nothing beside."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class State(Wire):
    """The request `Predict` as it comes over the wire: the part of it a client may set.

    Parameters
    ----------
    model, board : str
        A name of the zoo and of `twin boards`, or "upload:" with a SHA-256. Never a path.
    runtime : str or None
        "name@version"; None: the best known on the board.
    temperature : str
        "warm" or "cold".
    calibration : str
        "auto" or "none".
    set : dict of str to str
        What-if path to value, as `--set` takes them.
    """

    model: Name
    board: Name
    runtime: Library | None = Predict.runtime
    temperature: Literal["warm", "cold"] = Predict.temperature  # type: ignore[assignment]
    calibration: Literal["auto", "none"] = Predict.calibration  # type: ignore[assignment]
    set: dict[Path, Value] = Field(default_factory=dict, max_length=MOST_CHANGES)

    @field_validator("set")
    @classmethod
    def _check_values(cls, values: dict[str, str]) -> dict[str, str]:
        for path, value in values.items():
            if not value.isprintable() or not value.strip():
                raise ValueError(f"{path}: its value is not printable text")
        return values

    @property
    def key(self) -> str:
        """The state as text: the same for the same state, in whatever order it was changed."""
        return repr({**dict(self), "set": sorted(self.set.items())})

    def without(self, path: str) -> State:
        """Return the state with a path not set."""
        return self.model_copy(update={
            "set": {name: value for name, value in self.set.items() if name != path}})


def check_names(state: State) -> None:
    """Refuse names that are none, and what is not done for whoever asks over the wire.

    Raises
    ------
    UsageError
        Naming the key and what would be accepted.
    """
    if not (_UPLOADED.fullmatch(state.model) or zoo.is_known(state.model)):
        raise UsageError(f"model {state.model!r}: {did_you_mean(state.model, zoo.NAMES)}, or a "
                         "file that is uploaded")
    if not _UPLOADED.fullmatch(state.board) and state.board not in list_boards():
        raise UsageError(f"board {state.board!r}: {did_you_mean(state.board, list_boards())}, or a "
                         "file that is uploaded")
    if is_path(state.runtime or ""):
        raise UsageError(f"runtime {state.runtime!r}: names a file; accepted: a library of "
                         "`twin runtimes`")
    if "runtime" in state.set:
        raise UsageError("set.runtime: the library has a key of its own; accepted: runtime")
    if (state.runtime or "").partition("@")[0] == COMPILED:
        raise UsageError(f"runtime {state.runtime}: is built by a compiler, which is not done for "
                         "whoever asks over the wire; accepted: twin predict --runtime "
                         f"{state.runtime}, or another library")


def is_upload(name: str) -> bool:
    """Whether a model or board is one that came over the wire."""
    return _UPLOADED.fullmatch(name) is not None


def tell_board(name: str) -> JsonObject:
    """Read a board, and say what it is."""
    board = load_board(name)
    return {"name": board.name, "soc": board.soc, "core": board.core.model,
            "hz": board.core_clock.frequency_hz}


def tell_invalid(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return what pydantic found wrong as one line."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "[key]"))
    reason = str(first["msg"]).removeprefix("Value error, ")
    return f"{where or 'request'}: {reason[0].lower()}{reason[1:]}"
