"""Requests that set a measurement beside a prediction."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated

from twin.api.requests import (
    AUTO,
    BOARD_FILES,
    MODEL_FILES,
    Anyway,
    Calibration,
    Option,
    Placed,
)

if TYPE_CHECKING:
    from twin.pricing.prediction import Prediction

Progress = Callable[[int, int, str], None]
"""Called before each step: how many were made, how many there are, and the name of the next."""

MeasuredBoard = Annotated[str | None, Option(
    "--board -b", "BOARD", "With a model: by default the measurement's board.",
    files=BOARD_FILES)]
Measured = Annotated[str | PathLike[str], Option(
    "", "MEAS", "A folder `twin measure` or `twin import` wrote.", text=str, files=())]
Healthy = Annotated[str | PathLike[str] | None, Option(
    "--healthy", "DIR", "A measurement of the same kernels known to be right: faults are told far "
    "better against it.", text=str, files=())]


@dataclass(frozen=True)
class Attribute(Placed):
    """A prediction, and a measurement to set beside it."""

    predicted: Annotated["Prediction | str | PathLike[str]", Option(
        "", "PRED", "A prediction as `twin predict --json` wrote it, or a model: then it is "
        "predicted as the measurement's header says, and as the options change.", text=str,
        files=MODEL_FILES)]
    measured: Measured
    _: KW_ONLY
    board: MeasuredBoard = None
    calibration: Calibration = AUTO
    healthy: Healthy = None
    verdicts: Annotated[bool, Option(
        "--diagnose/--no-diagnose", None,
        "Weigh the faults of a set-up that would explain the gap.")] = True
    shapley: Annotated[bool, Option(
        "--shapley", None,
        "Also share the time over six idealised resources (a view, not the bill).")] = False
    anyway: Anyway = False
    on_progress: Progress | None = None


@dataclass(frozen=True)
class Diagnose(Placed):
    """A measurement, and the set-up it claims to be of."""

    folder: Measured
    _: KW_ONLY
    model: Annotated[str | None, Option(
        "--model", "MODEL", "By default the zoo's network of the measurement's name.",
        files=MODEL_FILES)] = None
    board: MeasuredBoard = None
    healthy: Healthy = None
    calibration: Calibration = AUTO
    on_progress: Progress | None = None
