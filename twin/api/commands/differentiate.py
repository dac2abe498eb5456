"""`twin.differentiate`: what time and energy grow by, with prices and with widths."""

from __future__ import annotations

from os import fspath

from hwmodels.files import File
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing import derivative
from twin.pricing.calibration import AUTO
from twin.pricing.derivative import Derivative


def differentiate(deployment: Deployment, *, widths: bool = True, step: int = 8,
                  temperature: str = "warm", calibration: File = AUTO, ) -> Derivative:
    """Predict an inference with its derivatives: with each learnt price, and each layer's width.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    widths : bool
        Whether narrower networks are predicted: one more prediction for every block of channels.
    step : int
        Channels they lack.
    temperature, calibration
        As for `twin.predict`.

    Returns
    -------
    Derivative
        Those with prices are exact (on an accelerator: central differences); those with widths
        are differences of two predictions.

    Raises
    ------
    UsageError
        For what is not a deployment, or a step below 1.
    TwinError
        For what `predict` refuses.

    Examples
    --------
    >>> import twin
    >>> slopes = twin.differentiate(twin.deploy("ad", "nucleo_l4r5zi"), widths=False)
    >>> round(sum(one.factor * one.time_us for one in slopes.prices) / slopes.time_us, 9)
    1.0
    """
    if not isinstance(deployment, Deployment):
        raise UsageError(f"differentiate: {deployment!r} is not a deployment; accepted: "
                         "twin.deploy(model, board)")
    return derivative.differentiate(deployment, widths=widths, step=step, temperature=temperature,
                                    calibration=fspath(calibration))
