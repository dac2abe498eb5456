"""`twin advise`: the cheapest change that makes a deployment meet limits."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.rewrites.rewrite import EFFORTS
from twin.pricing.calibration import AUTO
from twin.studies.advice import Advice, give_advice
from twin.studies.limits import read_limits
from twin.studies.points import Deployer
from twin.studies.sweep import Told


def advise(deployment: Deployment, *, max_ms: float | str | None = None,
           max_uj: float | str | None = None, max_ram: float | str | None = None,
           max_flash: float | str | None = None, efforts: Sequence[str] = EFFORTS,
           pairs: bool = True, thorough: bool = False, temperature: str = "warm",
           calibration: str | PathLike[str] = AUTO, on_progress: Told | None = None) -> Advice:
    """Find the cheapest change of a deployment, then pair of changes, that meets limits.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    max_ms, max_uj, max_ram, max_flash : float or str, optional
        Limits, at least one: bare numbers in ms, uJ and bytes, or "100ms", "5mJ", "256KiB".
    efforts : sequence of str
        Classes of effort allowed: "setting", "rebuild", "conversion", "retraining".
    pairs : bool
        Whether pairs are tried where no single change is sure.
    thorough : bool
        Whether dearer classes are tried where a cheaper one has a change that is sure.
    temperature, calibration
        As for `predict`.
    on_progress : callable, optional
        Told (changes tried, changes, refusals).

    Returns
    -------
    Advice
        Changes, best first, each predicted, with gain, probability, effort and cost.

    Raises
    ------
    UsageError
        Without a limit, or for an effort that is none.
    """
    limits = read_limits(max_ms=max_ms, max_uj=max_uj, max_ram=max_ram, max_flash=max_flash)
    deployer = Deployer(temperature=temperature, calibration=fspath(calibration))
    return give_advice(deployment, limits, deployer, efforts=check_efforts(efforts), pairs=pairs,
                       thorough=thorough, on_progress=on_progress)


def check_efforts(efforts: Sequence[str]) -> tuple[str, ...]:
    """Return classes of effort in their order; raises `UsageError` for one that is none."""
    wrong = next((one for one in efforts if one not in EFFORTS), None)
    if wrong is not None:
        raise UsageError(f"effort {wrong!r}; accepted: {', '.join(EFFORTS)}")
    return tuple(one for one in EFFORTS if one in efforts)


def efforts_up_to(effort: str) -> tuple[str, ...]:
    """Return the classes of effort up to one."""
    check_efforts([effort])
    return EFFORTS[:EFFORTS.index(effort) + 1]
