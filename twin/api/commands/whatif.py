"""`twin whatif`: what a changed board, runtime or placement would do."""

from __future__ import annotations

from os import fspath

from twin.api.requests import takes
from twin.api.requests.prediction import WhatIf
from twin.attribution import views


@takes(WhatIf)
def what_if(asked: WhatIf) -> views.WhatIf:
    """Predict a deployment without and with changes, and say which causes moved.

    Both predictions, their difference, and paths that changed nothing.
    """
    return views.what_if(asked.deployment, asked.changes, temperature=asked.temperature,
                         calibration=fspath(asked.calibration))
