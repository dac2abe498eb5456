"""`twin advise`: the cheapest change that makes a deployment meet limits."""

from __future__ import annotations

from os import fspath

from twin.api.requests import takes
from twin.api.requests.advice import Advise, check_efforts
from twin.studies.advice import Advice, give_advice
from twin.studies.limits import read_limits
from twin.studies.points import Deployer


@takes(Advise)
def advise(asked: Advise) -> Advice:
    """Find the cheapest change of a deployment, then pair of changes, that meets limits.

    Changes, best first, each predicted, with gain, probability, effort and cost.

    Raises
    ------
    UsageError
        Without a limit, or for an effort that is none.
    """
    limits = read_limits(max_ms=asked.max_ms, max_uj=asked.max_uj, max_ram=asked.max_ram,
                         max_flash=asked.max_flash)
    deployer = Deployer(temperature=asked.temperature, calibration=fspath(asked.calibration))
    return give_advice(asked.deployment, limits, deployer, efforts=check_efforts(asked.efforts),
                       pairs=asked.pairs, thorough=asked.thorough, on_progress=asked.on_progress)
