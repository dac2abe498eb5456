"""`twin port`: a prediction for hardware nobody measured, from boards somebody did."""

from __future__ import annotations

from os import fspath
from pathlib import Path

from twin.api.requests import takes
from twin.api.requests.prediction import Port
from twin.learning.portability.port import Ported, gather, predict_unmeasured
from twin.pricing.calibration import choose_calibration


@takes(Port)
def port(asked: Port) -> Ported:
    """Predict for a board nobody measured, from what others were measured to take.

    With boards by name it is what `predict` says, every published row behind it, and what it rests
    on. Measurement folders, and a choice of networks, are learnt from alone.
    """
    deployment, networks, cache = asked.deployment, asked.networks, asked.cache
    names = [fspath(one) for one in asked.sources]
    observations = gather(names, networks, cache=None if cache is None else Path(cache))
    alone = networks or any(Path(name).is_dir() for name in names)
    return predict_unmeasured(deployment, observations,
                              None if alone else choose_calibration(deployment))
