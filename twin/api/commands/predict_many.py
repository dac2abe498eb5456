"""`twin.predict_many`: thousands of configurations at once, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath

from numpy.typing import ArrayLike

from hwmodels.files import File
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing import batched
from twin.pricing.batch import Batch
from twin.pricing.calibration import AUTO


def predict_many(deployments: Deployment | Iterable[Deployment], *,
                 vary: Mapping[str, ArrayLike] | None = None, temperature: str = "warm",
                 calibration: File = AUTO, layers: bool = False, errors: str = "raise") -> Batch:
    """Predict many configurations at once, as arrays.

    Parameters
    ----------
    deployments : Deployment or iterable of Deployment
        From `twin.deploy`; or one, of which `vary` makes many.
    vary : mapping of str to sequence, or DataFrame, optional
        Dotted path to one value a configuration, or to a single one for all, as `--set` takes
        them (80e6 or "80MHz"): any what-if path
        ("clocks.cpu.frequency_hz", "supply.voltage_scale", "caches.dcache.size_bytes",
        "placement.arena", ...), and factors on stated prices in place of the learnt ones
        ("learnt.time.memory", "learnt.energy.leakage", ...). Voltage follows the clock and wait
        states follow both, as of `Deployment.replace`.
    temperature, calibration
        As for `predict`.
    layers : bool
        Whether each layer's time and energy are wanted.
    errors : str
        "raise": the first configuration that cannot be raises its error; "keep": all such become
        `Batch.failures`, and NaN, -1 for bytes.

    Returns
    -------
    Batch
        One row a configuration, equal to what `predict` says of it; to 1e-12 where sums are made
        in another order.

    Raises
    ------
    UsageError
        For a name, values of different length, or a learnt price that is none.
    TwinError
        Of the first configuration that cannot be, unless errors are kept.

    Examples
    --------
    >>> import numpy as np, twin
    >>> kws = twin.deploy("kws", "nucleo_l4r5zi")
    >>> clocks = np.linspace(20e6, 120e6, 10)
    >>> batch = twin.predict_many(kws, vary={"clocks.cpu.frequency_hz": clocks})
    >>> bool((np.diff(batch.time_us) < 0).all())
    True
    """
    if isinstance(deployments, (str, PathLike)):
        raise UsageError(f"predict_many: {deployments!r} is not a deployment; accepted: "
                         f"twin.deploy({deployments!r}, board), or several")
    return batched.predict_batch(deployments, vary=vary, temperature=temperature,
                                 calibration=fspath(calibration), layers=layers, errors=errors)
