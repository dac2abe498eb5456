"""`twin diff`: two predictions, or two measurements, or a series: what changed, and why."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from twin.attribution import views
from twin.attribution.difference import Difference
from twin.attribution.measured import read_side
from twin.attribution.predicted import side_of_prediction
from twin.attribution.series import Series, follow_series
from twin.attribution.side import Side
from twin.pricing.prediction import Prediction

Place = Prediction | str | PathLike[str]


def diff(before: Place, after: Place, *, anyway: bool = False) -> Difference:
    """Compare two predictions, or two measurements: what changed, and the cause of each change.

    Parameters
    ----------
    before, after : Prediction, str or path
        Predictions, their JSON files, or measurement folders; both of one kind.
    anyway : bool
        Also where they are of another network, board or clock.

    Returns
    -------
    Difference
        `exceeding(share)` has what grew by more.
    """
    return views.diff(_side(before), _side(after), anyway=anyway)


def diff_series(folders: Sequence[str | PathLike[str]]) -> Series:
    """Say whether the level of one board's measurements moved, and since which run.

    Parameters
    ----------
    folders : sequence of str or path
        Measurements in time order.

    Returns
    -------
    Series
        Judged; `change` is None where the level did not move.
    """
    from calibration.measurement.measurement import read_measurement
    from twin.learning.folders import find_folder

    found = [find_folder(Path(folder)) for folder in folders]
    return follow_series([(str(folder), read_measurement(folder)) for folder in found])


def _side(place: Place) -> Side:
    return side_of_prediction(place) if isinstance(place, Prediction) else read_side(fspath(place))
