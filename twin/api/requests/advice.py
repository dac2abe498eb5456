"""The request for the cheapest change that makes a deployment meet limits."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING

from hwmodels.errors import check_word
from twin.api.requests import Judged, Limited, Powered, Priced, option
from twin.api.requests.studies import Progress
from twin.errors import UsageError
from twin.network.rewrites.rewrite import EFFORTS

if TYPE_CHECKING:
    from twin.deployment.deployment import Deployment


def check_efforts(efforts: Sequence[str]) -> tuple[str, ...]:
    """Return classes of effort in their order; raises `UsageError` for one that is none."""
    for one in efforts:
        check_word("effort", one, EFFORTS, UsageError)
    return tuple(one for one in EFFORTS if one in efforts)


def efforts_up_to(effort: str) -> tuple[str, ...]:
    """Return the classes of effort up to one, or those that are listed."""
    if "," in effort:
        return check_efforts(effort.split(","))
    check_efforts([effort])
    return EFFORTS[:EFFORTS.index(effort) + 1]


class Advise(Limited, Powered, Priced, Judged):
    """A deployment, and the limits a change has to make it meet."""

    deployment: "Deployment"
    _: KW_ONLY
    efforts: Sequence[str] = option(
        EFFORTS, "--effort", "CLASS", "The most expensive class of changes: setting, rebuild, "
        "conversion or retraining; or those to try, by commas.", parse=efforts_up_to,
        default=EFFORTS[-1])
    pairs: bool = True
    thorough: bool = option(
        False, "--thorough", None, "Try more expensive classes too where a cheaper one has a "
        "change that is sure.")
    on_progress: Progress | None = None
