"""`twin whatif`: what a changed board, runtime or placement would do."""

from __future__ import annotations

from os import fspath

from twin.api.requests import takes
from twin.api.requests.prediction import WhatIf
from twin.attribution import views
from twin.attribution.effects import list_effects
from twin.deployment.deployment import Deployment
from twin.pricing import calibrated
from twin.pricing.prediction import Prediction


@takes(WhatIf)
def what_if(asked: WhatIf) -> views.WhatIf:
    """Predict a deployment without and with changes, and say which causes moved.

    Both predictions, their difference, and paths that changed nothing.
    """
    def predict_with(deployment: Deployment) -> Prediction:
        return calibrated.predict_calibrated(deployment, temperature=asked.temperature,
                                             calibration=fspath(asked.calibration))

    before = predict_with(asked.deployment)
    after = predict_with(asked.deployment.replace(asked.changes))
    return views.set_what_if(before, after, asked.changes, tuple(list_effects(
        before, after, asked.changes,
        lambda others: predict_with(asked.deployment.replace(others)))))
