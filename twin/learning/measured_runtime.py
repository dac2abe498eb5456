"""The runtime that was measured on a board, where a prediction is of one that was not."""

from __future__ import annotations

from calibration.fitting.cell import list_measured
from hwmodels.errors import TwinError
from hwmodels.quantities import format_time
from twin.network.operators import graph_macs
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.prediction import Prediction
from twin.runtimes.choice import list_best

MOST_MACS = 5_000_000
"""Networks up to this size are predicted once more, in a fraction of a second; larger ones not."""


def describe_measured_runtime(prediction: Prediction) -> tuple[str, ...]:
    """Say which runtime is known better on the board, and the interval it gives.

    Parameters
    ----------
    prediction : Prediction
        At shipped prices.

    Returns
    -------
    tuple of str
        One line; none where the runtime itself was measured on the board, or none was.
    """
    deployment = prediction.deployment
    board, runtime = deployment.board, deployment.runtime
    here = {row.runtime for row in list_measured() if row.board == board.name}
    best = [name for name in list_best(board) if name in here]
    if (not best or runtime.identity in here or runtime.is_compiled
            or deployment.target.offloads or prediction.certainty is None):
        return ()
    told = f"{best[0]} was, and would narrow the interval"
    if graph_macs(deployment.graph) <= MOST_MACS:
        try:
            sure = predict_calibrated(deployment.replace({"runtime": best[0]}),
                                      temperature=prediction.temperature).certainty
        except TwinError:  # It does not fit, or lacks a type: it narrows nothing.
            return ()
        if sure is not None:
            told = (f"{best[0]} was, and is predicted to take "
                    f"{format_time(sure.time_us.low)} to {format_time(sure.time_us.high)}")
    return (f"runtime: {runtime.identity} was not measured on {board.name}; {told}",)
