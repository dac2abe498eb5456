"""Chances of hypotheses about one or more measured times: likelihood, priors, and what they reach.

The equation is that of `why`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy import ndarray

from twin.attribution.diagnosis.faults import UNIT
from twin.attribution.diagnosis.outlook import CAUSES, DATA, NETWORK_SD, Hypothesis, Outlook

LEFT = math.log(10)
"""What leaves more of a time unexplained, as a logarithm, is no explanation of it (assumed): what
is left, nothing listed explains better, however far each of it is off."""

IMPOSSIBLE = 1e6
"""Of a logarithm of a likelihood: what nothing else is as unlikely as."""

PUBLISHED_SD, NOTHING_SD = 0.15, 1e6
"""Of what was published of the same build on another board of the type: assumed; of nothing."""

RARE, WIDER = 0.05, 3.0
"""Share of cases that lie further off, and by how much. Chosen on planted builds of seeds 1 to 3
(`tests/made/made_builds.py`)."""


SHARPER = 1.6
"""Power of the odds of "as expected": numbers near the expected one are so more often than the
likelihood says, as few ask about a small excess. Learnt on planted builds of seeds 21 to 24."""


def expect(outlook: Outlook, published_us: float | None,
           releases: ndarray) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """Return what is expected in parts: prediction, publication, both or none are `RARE`.

    Beside a publication either may lie as far again: of two numbers far apart one is of another
    build, so the time expected is one of them and not a mean between.

    Parameters
    ----------
    releases : ndarray of float, (releases,)
        Logarithm of each one's time over the predicted.

    Returns
    -------
    logs, shifts : ndarray of float, (parts, releases)
        Logarithms of the weight, and of by how much the publication moves the time.
    variances, wider : ndarray of float, (parts,)
        Of the logarithm of that time; times a deviation is its usual one.
    """
    time_us, steps = outlook.bases[0].time_us, np.arange(3 if published_us else 2)
    rarer = np.add.outer(steps, steps).ravel()
    own, other = np.repeat(WIDER**steps, len(steps)), np.tile(WIDER**steps, len(steps))
    off = math.log((published_us or time_us) / time_us) - releases
    prior = (own * outlook.sd)**2
    whole = prior + (other * (PUBLISHED_SD if published_us else NOTHING_SD))**2
    logs = (math.log(RARE / (1 - RARE)) * rarer - np.log(whole) / 2)[:, None]
    return (logs - off**2 / (2 * whole[:, None]), off * (prior / whole)[:, None],
            prior * (1 - prior / whole), own)


def find_quantile(share: float, means: ndarray, deviations: ndarray,
                  weights: ndarray) -> float:
    """Return the value below which a share of a mixture of normal distributions lies.

    Parameters
    ----------
    means, weights : ndarray of float, (parts, releases)
    deviations : ndarray of float, (parts,)
    """
    parts = [*map(NormalDist, means.ravel(), np.repeat(deviations, means.shape[1]))]
    shares = (weights / weights.sum()).ravel()
    ends = [part.inv_cdf(share) for part in parts]
    low, high = min(ends), max(ends)
    while high - low > 1e-9:
        middle = (low + high) / 2
        below = np.dot(shares, [part.cdf(middle) for part in parts])
        low, high = (middle, high) if below < share else (low, middle)
    return high


def find_priors(found: Sequence[Hypothesis], given: Mapping[str, float]) -> ndarray:
    """Return the prior of each hypothesis; pairs share theirs by the product of their causes'.

    A slip of the unit is made of any number, of an expected one as of one with a cause.
    """
    known = {name: float(given.get(name, cause["prior"])) for name, cause in CAUSES.items()}
    of_build = [tuple(sorted({*one.causes} - {UNIT})) for one in found]
    singles = math.fsum(known[name] for name, in {
        causes for causes in of_build if len(causes) == 1}) or 1.0
    both = math.fsum(math.prod(known[name] for name in causes) for causes in {
        causes for causes in of_build if len(causes) == 2}) or 1.0
    expected, pairs = given.get("expected", DATA["expected"]["prior"]), DATA["pairs"]["prior"]
    parts = (expected, (1 - expected - pairs) / singles, pairs / both)
    slip = parts[1] * known[UNIT]  # What no unit makes expected, another unit may.
    slipped = [slip * part for part in (expected or DATA["expected"]["prior"], *parts[1:])]
    return np.array([
        (slipped if UNIT in one.causes else parts)[len(causes)] * one.share
        * math.prod(known[name] for name in causes)
        for one, causes in zip(found, of_build, strict=True)])


def find_reach(found: Sequence[Hypothesis], weights: ndarray, most_us: float,
               base_us: float) -> float:
    """Return what half of the likely causes reach at most, a time in us.

    Another board or network reaches any; without causes it is what is expected.

    Parameters
    ----------
    most_us, base_us
        What is expected of the slowest release, and what is predicted.
    """
    reached = [(one.take_us(most_us, base_us), max(weight, 1e-300))
               for one, weight in zip(found, weights.tolist(), strict=True)
               if one.causes and "other" not in one.causes]
    times, shares = np.array(sorted(reached) or [
        (math.inf if any(one.causes for one in found) else most_us, 1.0)]).T
    return float(times[np.searchsorted(shares.cumsum(), shares.sum() / 2)])


def weigh_hypotheses(found: Sequence[Hypothesis], offs: ndarray, runs: ndarray,
                     parts: Sequence[ndarray], priors: ndarray,
                     fits: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Return probabilities: of each hypothesis, of each release if healthy, of each of the parts.

    Parameters
    ----------
    fits
        Shape (releases,): how likely it runs the network at all.
    """
    factors = np.array([one.logs for one in found])[:, None]
    fixed = np.array([one.added for one in found])[:, None] / np.exp(factors)
    known = 1 / (DATA["noise"]["sd"]**2 + np.array([one.own_sd for one in found])**2)[:, None]
    effects, logs = np.array([[one.sd] for one in found]), []
    of_release = np.array([one.is_released for one in found])[:, None, None]
    listed = np.array([["other" not in one.causes] for one in found])
    bounded = listed & [[bool(one.causes)] for one in found]
    least = np.array([one.least + 0 * one.logs for one in found])[:, None]
    for weight, shift, variance, wider in zip(*parts, strict=True):
        moved = runs * of_release + shift[:, None]
        rest = offs - moved - factors - np.log1p(fixed * np.expm1(-moved))
        tau = variance + (wider * effects)**2
        whole = 1 + tau * known.sum(axis=2)
        square = (known * rest**2).sum(axis=2) - tau * (known * rest).sum(axis=2)**2 / whole
        logs.append(weight - square / 2 + np.log(known).sum(axis=2) / 2 - np.log(whole) / 2
                    + _weigh_least(offs - moved, least, math.sqrt(variance))
                    - IMPOSSIBLE * (bounded & (np.abs(rest).min(axis=2) > LEFT))
                    + (listed & of_release[:, 0]) * np.log(np.maximum(fits, 1e-300)))
    of_any = np.logaddexp.reduce(logs)
    whole = np.log(np.maximum(priors, 1e-300))[:, None] + of_any
    weights = np.exp(whole - whole.max())
    healthy = np.array([not one.causes for one in found])
    right, wrong = weights[healthy].sum(), weights[~healthy].sum()
    if right and wrong:
        weights[healthy] *= (right / wrong) ** (SHARPER - 1)
    weights /= weights.sum()
    return (weights.sum(axis=1), weights[healthy].sum(axis=0),
            np.array([(weights * np.exp(part - of_any)).sum() for part in logs]))


def _weigh_least(over: ndarray, least: ndarray, sd: float) -> ndarray:
    """Return the logarithm of the probability that causes do as much to each number as they must.

    Parameters
    ----------
    over, least : ndarray of float, (..., numbers)
        Logarithms of the measured time over the expected one, and of the least effect.
    sd
        Of the logarithm of the expected time.
    """
    unsure = math.sqrt(2) * math.hypot(sd, NETWORK_SD, DATA["noise"]["sd"])
    reached = np.frompyfunc(math.erfc, 1, 1)((least - over) / unsure).astype(float) / 2
    logs: ndarray = np.where(least > 0, np.log(np.maximum(reached, 1e-300)), 0.0).sum(axis=-1)
    return logs
