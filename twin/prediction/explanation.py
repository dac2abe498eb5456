"""Why a run takes as long as it does, in one sentence made from the bill."""

from __future__ import annotations

import math

from hwmodels.counts import CAUSE_GROUPS
from hwmodels.quantities import format_time, significant
from twin.prediction.ledger import bill_time_us, percentages
from twin.prediction.prediction import Prediction

_PHRASES = {"memory": "memory-bound", "compute": "compute", "movement": "data movement",
            "overhead": "other"}


def explain_time(prediction: Prediction) -> str:
    """Say in one sentence where the time goes.

    Parameters
    ----------
    prediction : Prediction
        Its bill is where every figure comes from.

    Returns
    -------
    str
        "120 ms because 45 % memory-bound (L1 miss rate 12 %), 30 % compute (MAC utilisation
        65 %), 15 % data movement, 10 % other": whole percentages that sum to 100.

    Notes
    -----
    Percentages are the times of the four groups of causes. The miss rate is misses over lines
    looked up in the data cache; without look-ups the largest memory cause is named instead. MAC
    utilisation is the share of `mac` in the time of the compute causes.
    """
    shares = group_percentages(prediction)
    parts = []
    for group in sorted(shares, key=lambda group: (group == "overhead", -shares[group])):
        if shares[group]:
            detail = _detail(prediction, group)
            parts.append(f"{shares[group]} % {_PHRASES[group]}"
                         + (f" ({detail})" if detail else ""))
    time = format_time(prediction.time_us)
    return f"{time} because {', '.join(parts)}" if parts else f"{time}: nothing is on the bill"


def group_percentages(prediction: Prediction) -> dict[str, int]:
    """Share of the time of each group of causes, in whole percent summing to 100."""
    times = [math.fsum(bill_time_us(prediction, prediction.bill, cause) for cause in causes)
             for causes in CAUSE_GROUPS.values()]
    return {group: int(share)
            for group, share in zip(CAUSE_GROUPS, percentages(times), strict=True)}


def miss_rate(prediction: Prediction) -> float | None:
    """Misses per data-cache line looked up, of the whole run, 0 to 1; None without look-ups."""
    accesses = sum(layer.accesses for layer in prediction.layers)
    return sum(layer.misses for layer in prediction.layers) / accesses if accesses else None


def mac_utilisation(prediction: Prediction) -> float | None:
    """Share of the compute causes' time in which useful MACs issue; None without compute."""
    compute = math.fsum(bill_time_us(prediction, prediction.bill, cause)
                        for cause in CAUSE_GROUPS["compute"])
    return bill_time_us(prediction, prediction.bill, "mac") / compute if compute else None


def _detail(prediction: Prediction, group: str) -> str:
    if group == "memory" and (rate := miss_rate(prediction)) is not None:
        return f"{_cache_label(prediction)} miss rate {significant(100 * rate, 2)} %"
    if group == "compute" and (share := mac_utilisation(prediction)) is not None:
        return f"MAC utilisation {significant(100 * share, 2)} %"
    times = {cause: bill_time_us(prediction, prediction.bill, cause)
             for cause in CAUSE_GROUPS[group]}
    largest = max(times, key=lambda cause: times[cause])
    return "" if group == "movement" else f"mostly {largest}"


def _cache_label(prediction: Prediction) -> str:
    name = prediction.deployment.board.core.dcache or ""
    return "L1" if name.lower().startswith("l1") else name
