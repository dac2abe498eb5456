"""A deployment as a command says it: where settings say, if it fits nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twin.deployment import deployment
from twin.deployment.deployment import Deployment
from twin.errors import DoesNotFitError
from twin.pricing.calibration import AUTO
from twin.verbs.predict import runtime_of


def deploy_as_told(model: str, board: str, *, runtime: str | None = None,
                   weights: str | None = None, arena: str | None = None,
                   changes: Mapping[str, object] | None = None, calibration: str = AUTO,
                   **chosen: Any) -> Deployment:
    """Put a model on a board; changes are not made, but say where it goes if it must.

    Parameters
    ----------
    model, board, runtime, weights, arena
        As for `deploy`; without a runtime, an overlay file of one runtime says which.
    changes : mapping of str to object, optional
        Of `Deployment.replace`, that will be made.
    calibration : str
        As for `predict`.
    **chosen
        Further arguments of `deploy`.

    Raises
    ------
    DoesNotFitError
        When it fits neither way.
    """
    if runtime is None:
        runtime = runtime_of(calibration)
    told = changes or {}
    try:
        return deployment.deploy(model, board, runtime=runtime, weights=weights,
                                 arena=arena, **chosen)
    except DoesNotFitError:
        network = {path: value for path, value in told.items() if path.startswith("network.")}
        if not network and not {"placement.weights", "placement.arena"} & set(told):
            raise
        return deployment.deploy(model, board, runtime=runtime, network=network or None,
                                 weights=str(told.get("placement.weights", weights or "")) or None,
                                 arena=str(told.get("placement.arena", arena or "")) or None,
                                 **chosen)
