"""What a log lists, beside what its network consists of: runs, operators, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from calibration.errors import MeasurementError
from calibration.importers.log import Log

SAME_RUN = 0.1
"""How far apart an operator's times in two inferences may be, relative, where only they tell that
a list holds two (assumed)."""


def check_operators(log: Log, tags: Sequence[str], what: str = "it") -> None:
    """Compare what one inference lists with the network's operators.

    Parameters
    ----------
    log
        With `listing` where the network is known; without, it is noted that nothing states how
        many operators there should be.
    tags
        As the log has them, in order.
    what
        Which inference, for the refusal.

    Raises
    ------
    MeasurementError
        For another operator, for more than there are, and for fewer unless a partial log is taken.
    """
    listing = log.listing
    if listing is None:
        note = ("how many operators the network has is not known: whether all are there is not "
                "checked; --model checks it")
        if tags:
            log.remarks.append(note)
        return
    for place, tag in enumerate(tags[:len(listing.operators)]):
        if not listing.accepts(place, tag):
            raise MeasurementError(f"{log.where}: {what} has {tag} as operator {place}, that of "
                                   f"{listing.network} is {listing.operators[place]}; accepted: "
                                   "its operators' names in order ("
                                   f"{', '.join(listing.operators[:3])} ...), or names that are no "
                                   "operator's; is it of another network?")
    if len(tags) > len(listing.operators):
        raise MeasurementError(f"{log.where}: {what} lists {len(tags)} operators, "
                               f"{listing.network} has {len(listing.operators)}")
    if len(tags) < len(listing.operators):
        log.lack(f"{what} lists {len(tags)} of the {len(listing.operators)} operators of "
                 f"{listing.network}; `calibrate` needs all of them")


def count_inferences(log: Log, tags: Sequence[str], values: Sequence[float]) -> int:
    """Return how many inferences one list of operators holds, one after the other.

    Parameters
    ----------
    log
        With `listing` where the network is known; what is concluded without is remarked.
    tags, values
        Name and time of each operator, in order.
    """
    total = len(tags)
    if log.listing is not None:
        due = len(log.listing.operators)
        whole = total % due == 0 and all(log.listing.accepts(place % due, tag)
                                         for place, tag in enumerate(tags))
        return total // due if whole else 1
    for period in range(2, total // 2 + 1):
        if total % period or list(tags) != list(tags[:period]) * (total // period):
            continue
        if all(abs(value - values[place % period]) <= SAME_RUN * max(values[place % period], 1)
               for place, value in enumerate(values)):
            log.remarks.append(f"a list of {total} operators is {total // period} times the same "
                               f"{period}, at the same times: taken as {total // period} runs")
            return total // period
        log.remarks.append(f"a list of {total} operators names {total // period} times the same "
                           f"{period}: one inference, or {total // period}; --model says which")
        return 1
    return 1
