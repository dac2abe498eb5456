"""`twin whatif`: what a changed board, runtime or placement would do."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from twin.attribution import views
from twin.attribution.views import WhatIf
from twin.deployment.deployment import Deployment
from twin.pricing.calibration import AUTO


def what_if(deployment: Deployment, changes: Mapping[str, object], *, temperature: str = "warm",
            calibration: str | PathLike[str] = AUTO) -> WhatIf:
    """Predict a deployment without and with changes, and say which causes moved.

    Parameters
    ----------
    deployment : Deployment
        As it is.
    changes : mapping of str to object
        Dotted path to value, as of `Deployment.replace`.
    temperature, calibration
        As for `predict`.

    Returns
    -------
    WhatIf
        Both predictions, their difference, and paths that changed nothing.
    """
    return views.what_if(deployment, changes, temperature=temperature,
                         calibration=fspath(calibration))
