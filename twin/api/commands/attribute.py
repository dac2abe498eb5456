"""`twin attribute`: a prediction beside a measurement: per layer, by cause, and why."""

from __future__ import annotations

from os import fspath

from twin.api.requests import takes
from twin.api.requests.attribution import Attribute
from twin.attribution import views
from twin.attribution.views import View
from twin.pricing.prediction import Prediction


@takes(Attribute)
def attribute(asked: Attribute) -> View:
    """Set a prediction beside a measurement: gaps per layer, by cause, and what explains them."""
    predicted, healthy = asked.predicted, asked.healthy
    return views.attribute_measured(
        predicted if isinstance(predicted, Prediction) else fspath(predicted),
        fspath(asked.measured), calibration=fspath(asked.calibration),
        healthy=None if healthy is None else fspath(healthy), verdicts=asked.verdicts,
        shapley=asked.shapley, anyway=asked.anyway, on_progress=asked.on_progress,
        options={"board": asked.board, "runtime": asked.runtime, "clock_hz": asked.clock_hz,
                 "weights": asked.weights, "arena": asked.arena})
