"""A digital twin of AI inference on microcontrollers: cycles, time and energy, and why.

Examples
--------
>>> import twin
>>> prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi"))
>>> prediction.time_us, prediction.certainty.time_us  # doctest: +SKIP
>>> prediction.bill.causes()  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hwmodels.errors import TwinError
    from twin.deployment.deployment import Deployment, deploy
    from twin.network.readers import read_model
    from twin.prediction.prediction import Prediction
    from twin.verbs import attribute, calibrate, diagnose, port, predict

__all__ = ["Deployment", "Prediction", "TwinError", "attribute", "calibrate", "deploy", "diagnose",
           "port", "predict", "read_model"]

_HOMES = {
    "Deployment": "twin.deployment.deployment", "deploy": "twin.deployment.deployment",
    "Prediction": "twin.prediction.prediction", "TwinError": "hwmodels.errors",
    "read_model": "twin.network.readers",
    **dict.fromkeys(("attribute", "calibrate", "diagnose", "port", "predict"), "twin.verbs"),
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import twin` and `twin --help` stay light."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'twin' has no attribute {name!r}")
