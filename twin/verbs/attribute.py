"""`twin attribute`: a prediction beside a measurement: per layer, by cause, and why."""

from __future__ import annotations

from os import PathLike, fspath

from twin.attribution import views
from twin.attribution.diagnosis.case import Progress
from twin.attribution.views import View
from twin.pricing.calibration import AUTO
from twin.pricing.prediction import Prediction


def attribute(predicted: Prediction | str | PathLike[str], measured: str | PathLike[str], *,
              board: str | None = None, runtime: str | None = None,
              clock_hz: float | None = None, weights: str | None = None, arena: str | None = None,
              calibration: str | PathLike[str] = AUTO, healthy: str | PathLike[str] | None = None,
              verdicts: bool = True, shapley: bool = False, anyway: bool = False,
              on_progress: Progress | None = None) -> View:
    """Set a prediction beside a measurement: gaps per layer, by cause, and what explains them.

    Parameters
    ----------
    predicted : Prediction, str or path
        From `predict`, its JSON file, or a model: then it is predicted as the measurement's
        header says, and as the options change.
    measured : str or path
        Folder of the measurement.
    board, runtime, weights, arena : str, optional
        With a model: by default the measurement's.
    clock_hz : float, optional
        With a model: by default the measurement's.
    calibration : str or path
        As for `predict`.
    healthy : str or path, optional
        A measurement of the same kernels known to be right.
    verdicts, shapley : bool
        Whether to weigh faults; whether to share the time over idealised resources.
    anyway : bool
        Also where it is of another network, board or clock.
    on_progress : callable, optional
        Told before each fault is predicted: how many were, how many there are, and its name.

    Returns
    -------
    View
        Whose difference's accounts sum exactly.
    """
    return views.attribute_measured(
        predicted if isinstance(predicted, Prediction) else fspath(predicted), fspath(measured),
        calibration=fspath(calibration), healthy=None if healthy is None else fspath(healthy),
        verdicts=verdicts, shapley=shapley, anyway=anyway, on_progress=on_progress, options={
            "board": board, "runtime": runtime, "clock_hz": clock_hz, "weights": weights,
            "arena": arena})
