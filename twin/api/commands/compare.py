"""`twin compare`, `attribute` and `diff`: predictions and measurements beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from os import fspath
from pathlib import Path

from hwmodels.files import File
from hwmodels.frozen import list_fields
from twin.api.requests import takes
from twin.api.requests.attribution import Attribute, Compare, Diff, Published
from twin.attribution import views
from twin.attribution.difference import Difference
from twin.attribution.measured import read_side
from twin.attribution.predicted import side_of_prediction
from twin.attribution.series import Series, follow_series
from twin.attribution.side import Side
from twin.attribution.views import PublishedView, View
from twin.errors import UsageError
from twin.pricing.prediction import Prediction


@takes(Compare)
def compare(asked: Compare) -> View:
    """Set a network, or an accelerator compiler's output, beside a measurement of it.

    Layer by layer; with the report of tasks where both sides have them.
    """
    return views.compare_measured(
        fspath(asked.model), asked.board, fspath(asked.measured), runtime=asked.runtime,
        clock_hz=asked.clock_hz, calibration=fspath(asked.calibration), anyway=asked.anyway)


@takes(Published)
def compare_published(asked: Published) -> PublishedView:
    """Set predictions beside every published row of a network on a board.

    Open rows singly, sealed ones together; runtime, clock and supply are those of each row.
    """
    return views.compare_with_published(fspath(asked.model), asked.board,
                                        calibration=fspath(asked.calibration))


@takes(Attribute)
def attribute(asked: Attribute) -> View:
    """Set a prediction beside a measurement: gaps per layer, by cause, and what explains them."""
    predicted, healthy = asked.predicted, asked.healthy
    return views.attribute_measured(
        predicted if isinstance(predicted, Prediction) else fspath(predicted),
        fspath(asked.measured), calibration=fspath(asked.calibration),
        healthy=None if healthy is None else fspath(healthy), verdicts=asked.verdicts,
        shapley=asked.shapley, anyway=asked.anyway, on_progress=asked.on_progress,
        options=list_fields(asked, "board", "runtime", "clock_hz", "weights", "arena"))


@takes(Diff)
def diff(asked: Diff) -> Difference:
    """Compare two predictions, or two measurements: what changed, and the cause of each change.

    `exceeding(share)` of the result has what grew by more.
    """
    return views.diff(_side(asked.before), _side(asked.after), anyway=asked.anyway)


def diff_series(folders: Sequence[File]) -> Series:
    """Say whether the level of one board's measurements, in time order, moved, and since when.

    `change` of the result is None where the level did not move.
    """
    from calibration.measurement.measurement import read_measurement
    from twin.attribution.folders import find_folder

    found = [find_folder(Path(folder)) for folder in folders]
    if len({folder.resolve() for folder in found}) < len(found):
        raise UsageError("the same measurement is given twice; accepted: folders of different "
                         "measurements, in time order")
    return follow_series([(str(folder), read_measurement(folder)) for folder in found])


def _side(place: Prediction | File) -> Side:
    return side_of_prediction(place) if isinstance(place, Prediction) else read_side(fspath(place))
