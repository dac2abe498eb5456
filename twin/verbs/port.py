"""`twin port`: a prediction for hardware nobody measured, from boards somebody did."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from twin.deployment.deployment import Deployment
from twin.learning.portability.port import Ported, gather, predict_unmeasured
from twin.pricing.calibration import choose_calibration


def port(deployment: Deployment, sources: Sequence[str | PathLike[str]], *,
         networks: Sequence[str] = (), cache: str | PathLike[str] | None = None) -> Ported:
    """Predict for a board nobody measured, from what others were measured to take.

    With boards by name it is what `predict` says, every published row behind it, and what it rests
    on. Measurement folders, and a choice of networks, are learnt from alone.

    Parameters
    ----------
    deployment : Deployment
        On the new board.
    sources : sequence of str or path
        Measured boards by name, or measurement folders.
    networks : sequence of str
        Learn from these only; empty: from all.
    cache : str or path, optional
        Folder to keep counts in, by content, for the next time.

    Returns
    -------
    Ported
        Prediction, interval, and what both rest on.
    """
    names = [fspath(one) for one in sources]
    observations = gather(names, networks, cache=None if cache is None else Path(cache))
    alone = networks or any(Path(name).is_dir() for name in names)
    return predict_unmeasured(deployment, observations,
                              None if alone else choose_calibration(deployment))
