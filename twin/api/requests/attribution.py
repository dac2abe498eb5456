"""Requests that set a measurement beside a prediction."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hwmodels.files import File
from twin.api.requests import (
    AUTO,
    BOARD_FILES,
    Anyway,
    BoardName,
    Calibration,
    Clock,
    Deployed,
    Model,
    Option,
    Placed,
    Request,
    Runtime,
    option,
    required,
)
from twin.errors import UsageError
from twin.network.model_file import SUFFIXES as MODEL_FILES

if TYPE_CHECKING:
    from calibration.fitting.overlay import Overlay
    from twin.learning.own import Total
    from twin.pricing.prediction import Prediction

Progress = Callable[[int, int, str], None]
"""Called before each step: how many were made, how many there are, and the name of the next."""


def parse_priors(texts: Sequence[str]) -> dict[str, float]:
    """Read probabilities by kind: "as declared=0.9"; raises `UsageError` for anything else."""
    found = {}
    for text in texts:
        kind, _, chance = text.partition("=")
        if re.fullmatch(r"0?\.\d+", chance.strip()) is None or not float(chance) > 0:
            raise UsageError(f"--prior {text!r}: accepted: KIND=P, P between 0 and 1, such as "
                             "'as declared=0.9'")
        found[kind.strip()] = float(chance)
    if sum(found.values()) >= 1:
        raise UsageError("--prior: the probabilities sum to 1 or more; accepted: below 1, the rest "
                         "is of the other kinds")
    return found


MeasuredBoard = Annotated[str | None, Option(
    "--board -b", "BOARD", "With a model: by default the measurement's board.", files=BOARD_FILES)]
Measured = Annotated[File, Option(
    "", "MEAS", "A folder `twin measure` or `twin import` wrote.", files=())]
Healthy = Annotated[File | None, Option(
    "--healthy", "DIR", "A measurement of the same kernels known to be right: faults are found far "
    "better against it.", files=())]


class Attribute(Placed):
    """A prediction, and a measurement to set beside it."""

    predicted: "Prediction | File" = required(
        "", "PRED", "A prediction as `twin predict --json` wrote it, or a model: then it is "
        "predicted as the measurement's header says, and as the options change.", files=MODEL_FILES)
    measured: Measured
    _: KW_ONLY
    board: MeasuredBoard = None
    calibration: Calibration = AUTO
    healthy: Healthy = None
    verdicts: bool = option(
        True, "--diagnose/--no-diagnose", None,
        "Weigh the faults of a set-up that would explain the gap.")
    shapley: bool = option(
        False, "--shapley", None,
        "Also share the time over six idealised resources (a view, not the bill).")
    anyway: Anyway = False
    on_progress: Progress | None = None


class Diagnose(Placed):
    """A measurement, and the set-up it claims to be of."""

    folder: Measured
    _: KW_ONLY
    model: str | None = option(
        None, "--model", "MODEL", "The network; by default the file `import` was given, or the "
        "network of `twin models` of that name.", files=MODEL_FILES)
    board: MeasuredBoard = None
    healthy: Healthy = None
    also: File | None = option(
        None, "--also", "DIR", "A second measurement of the same board and kernels, taken "
        "otherwise: at another clock, masked, placed elsewhere. Both are weighed together.",
        files=())
    priors: Mapping[str, float] | None = option(
        None, "--prior", "KIND=P", "Your own probability of a kind before any evidence, such as "
        "'as declared=0.9'; may be given several times.", parse=parse_priors)
    calibration: Calibration = AUTO
    on_progress: Progress | None = None


def parse_cycles(text: str) -> int:
    """Read a whole number of cycles, 36000000 or 3.6e7; raises `UsageError` for anything else."""
    try:
        cycles = float(text.replace(",", ""))
    except ValueError:
        cycles = math.nan
    if not (cycles.is_integer() and abs(cycles) < 1 << 64):
        raise UsageError(f"--cycles {text!r}: accepted: a whole number, such as 36000000 or 3.6e7")
    return int(cycles)


def join_words(texts: list[str]) -> str:
    """Join what was given several times, as kept runs have it."""
    return ",".join(texts)


class Why(Deployed):
    """A measured time of a network, or several of other clocks and networks, and what is known."""

    model: Model
    board: BoardName
    measured: str = required(
        "--measured", "TIME", "What an inference took, such as 1.9s; at another clock as "
        "1.9s@80MHz, of another network of the same build as ad=40ms; may be given several times.",
        text=list[str], parse=join_words)
    _: KW_ONLY
    cycles: int | None = option(
        None, "--cycles", "N", "What the core's cycle counter (DWT_CYCCNT, mcycle) counted in the "
        "first time: shows the clock.", parse=parse_cycles)
    published: str | None = option(
        None, "--published", "TIME", "A published time of the same network on the same board.")
    arena_bytes: str | None = option(
        None, "--arena-bytes", "SIZE", "The buffer the program gives the runtime, such as 65536 or "
        "64KiB: what needs more did not run.")
    present: str | None = option(
        None, "--is", "CAUSE", "A cause you know is present: simd, clock, cache ...; may be "
        "given several times.", text=list[str], parse=join_words)
    absent: str | None = option(
        None, "--not", "CAUSE", "A cause you checked and ruled out; may be given several times.",
        text=list[str], parse=join_words)
    priors: str | None = option(
        None, "--prior", "CAUSE=WEIGHT", "How likely a cause is before any number, beside the "
        "others' 1 to 3; `expected=0.5` is a probability; may be given several times.",
        text=list[str], parse=join_words)
    calibration: Calibration = AUTO


class Published(Request):
    """A network on a board, whose published rows it is set beside."""

    model: File
    board: str
    _: KW_ONLY
    calibration: Calibration = AUTO


class Compare(Published):
    """A network, or an accelerator compiler's output, and a measurement of it."""

    measured: File = required(
        "--measured", "DIR", "Compare with a measurement, layer by layer or epoch by epoch: a "
        "folder of `twin measure` or `twin import`.")
    _: KW_ONLY
    runtime: Runtime = None
    clock_hz: Clock = None
    anyway: Anyway = False


class Diff(Request):
    """Two predictions, or two measurements."""

    before: "Prediction | File" = required(
        "", "A", "Before: a prediction's JSON, or a measurement folder.")
    after: "Prediction | File" = required("", "B", "After: of the same kind.")
    _: KW_ONLY
    anyway: Anyway = False


Overlays = Annotated[File | None, Option(
    "--output -o", "FILE", "Overlay to write, by default BOARD.overlay.yaml; with `published` a "
    "folder of overlays.")]


class Learnt(Request, kw_only=True):
    """Where learnt prices go."""

    output: Overlays = None


class CalibratePublished(Learnt):
    """Where prices learnt from published rows go."""

    output: Overlays = None
    _: KW_ONLY
    on_overlay: "Callable[[Overlay, str | None, Path | None], None]" = \
        lambda overlay, board, path: None


class Calibrate(Learnt):
    """Measurements of a board, and where what they teach goes."""

    folders: File | Sequence[File] = required(
        "", "DATA...", "Measurement folders of one board; or `published`: every published result "
        "that may be learnt from.", text=list[str])
    board: str = required("--board -b", "BOARD", "Board the folders were measured on.")
    _: KW_ONLY
    runtime: str | None = option(
        None, "--runtime", "NAME", "Library the folders are of, where they do not say; whose "
        "prices micro-benchmarks correct, by default that of their plan.")
    model: str | None = option(
        None, "--model", "MODEL", "The network folders are of that note another file, or none.",
        files=MODEL_FILES)
    anyway: bool = option(
        False, "--anyway", None, "Learn from an energy that can hardly be right, and from folders "
        "that contradict each other, too; the overlay says so.")
    on_remark: Callable[[str], None] = lambda remark: None
    on_total: "Callable[[Total], None]" = lambda total: None
