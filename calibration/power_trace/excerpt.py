"""One inference of a recording, thinned, with where each layer begins: kept beside its energies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibration.errors import MeasurementError
from calibration.power_trace.board_energy import edges_of, place_by_marks
from calibration.power_trace.shape import place_by_shape
from calibration.power_trace.trace import PowerTrace
from hwmodels.errors import reworded
from hwmodels.files import LARGEST_JSON_BYTES, DocumentError, parse_json, read_regular_text
from hwmodels.frozen import frozen, list_fields

EXCERPT_FILE = "power.json"
"""In the folder of the energies."""

MOST_SAMPLES = 4000
"""Kept; of more, the least and the most of each stretch stay, so that no peak is lost."""

MARGIN = 0.05
"""Of the inference, kept before and after it."""

EDGES = {"marks": "the mark pin at each layer",
         "shape": "the board's times, placed by the shape of the power",
         "times": "the board's times from the first edge of the mark on"}
"""Where layers' edges come from."""


@frozen
class Excerpt:
    """Power over one inference.

    Parameters
    ----------
    time_us, power_mw
        Samples, from the begin of the inference by the meter's clock.
    edges_us
        Begin of each layer and the end of the last.
    layers
        Their indices in the model.
    edges_from
        A key of `EDGES`.
    """

    time_us: tuple[float, ...]
    power_mw: tuple[float, ...]
    edges_us: tuple[float, ...]
    layers: tuple[int, ...]
    meter: str
    edges_from: str

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if len(self.time_us) != len(self.power_mw) or len(self.edges_us) != len(self.layers) + 1 \
                or len(self.time_us) < 2 or self.edges_from not in EDGES:
            raise MeasurementError("is not an excerpt of a power trace")


def cut_excerpt(trace: PowerTrace, layers: Sequence[int], times_us: Sequence[float], *,
                runs: int | None = None, by_shape: bool = False) -> Excerpt:
    """Return the first inference of a recording.

    Parameters
    ----------
    trace
        Of the board at work.
    layers
        Indices of the layers, in order.
    times_us
        How long each takes.
    runs, by_shape
        As for `energy_samples`, which has taken the recording.
    """
    board = edges_of(times_us)
    where = "shape" if by_shape else (
        "marks" if runs is None and len(trace.marks_us) % len(board) == 0 else "times")
    if where == "times":
        edges = [trace.marks_us[0] + float(one) for one in board]
    else:
        alignment = place_by_shape(trace, float(board[-1])) if by_shape else (
            place_by_marks(trace, trace.marks_us[:len(board)], board))
        edges = [alignment.to_meter(float(one)) for one in board]
    begin, end = edges[0], edges[-1]
    pad = MARGIN * (end - begin)
    inside = (trace.time_us >= begin - pad) & (trace.time_us <= end + pad)
    time_us, power_mw = _thin(np.asarray(trace.time_us)[inside], np.asarray(trace.power_mw)[inside])
    return Excerpt(time_us=tuple((time_us - begin).round(3).tolist()),
                   power_mw=tuple(power_mw.round(6).tolist()), layers=tuple(layers),
                   edges_us=tuple(round(one - begin, 3) for one in edges),
                   meter=trace.meter.name, edges_from=where)


def _thin(time_us: np.ndarray, power_mw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the most of each stretch, in order of time."""
    if len(time_us) <= MOST_SAMPLES:
        return time_us, power_mw
    kept: list[int] = []
    for stretch in np.array_split(np.arange(len(time_us)), MOST_SAMPLES // 2):
        ends = {int(stretch[np.argmin(power_mw[stretch])]),
                int(stretch[np.argmax(power_mw[stretch])])}
        kept += sorted(ends)
    return time_us[kept], power_mw[kept]


def dump_excerpt(excerpt: Excerpt) -> Mapping[str, bytes]:
    """Return the file an excerpt is in the folder of its energies: name and content."""
    return {EXCERPT_FILE: json.dumps({
        "schema": 1, "kind": "power", **list_fields(
            excerpt, "meter", "edges_from", "layers", "edges_us", "time_us", "power_mw")},
        separators=(",", ":")).encode()}


def read_excerpt(folder: str | Path) -> Excerpt:
    """Read the excerpt of a folder `twin energy` wrote.

    Raises
    ------
    MeasurementError
        When there is none, or it is none.
    """
    path = Path(folder) / EXCERPT_FILE
    if not path.is_file():
        raise MeasurementError(f"{folder}: no {EXCERPT_FILE}; accepted: a folder `twin energy` "
                               "wrote")
    with reworded((DocumentError, OSError, ValueError, TypeError, KeyError, MeasurementError),
                  MeasurementError, f"{path}: is not an excerpt of a power trace: "):
        found = parse_json(read_regular_text(path, LARGEST_JSON_BYTES))
        return Excerpt(time_us=_floats(found["time_us"]), power_mw=_floats(found["power_mw"]),
                       edges_us=_floats(found["edges_us"]), meter=str(found["meter"]),
                       layers=tuple(int(one) for one in found["layers"]),
                       edges_from=str(found["edges_from"]))


def _floats(values: Any) -> tuple[float, ...]:
    found = tuple(float(one) for one in values)
    if not all(np.isfinite(found)):
        raise ValueError("a figure is not finite")
    return found
