"""What a master waits for others that ask at a rate, averaged over when their bursts fall.

A run of one phase says how two periodic masters fall into step, not what a load costs: a faster
one may fit between better. Here bursts of the load come at any time alike, so that the mean wait
of a burst follows from the gap since the last one at the bank, and never falls with the rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hwmodels.bus.bursts import HELD, TARGET
from hwmodels.bus.events import GRANT, BusRun
from hwmodels.frozen import frozen

RUNGS = 64
"""Rates at which the wait is worked out, in equal steps up to all a bank can serve."""

ROUNDS = 24
"""Of the fixed point between waiting and what arrives meanwhile; it gains a digit in three."""

FINEST = 1.1
"""Ratio of neighbouring lengths of long gaps, which matter to ties only."""


@frozen
class Demand:
    """What another master asks of the banks of a slave.

    Parameters
    ----------
    held_cycles
        Bus cycles one holds its bank.
    shares : tuple of (int, float)
        Bank, by its number among all of the interconnect, and share of the time it is asked.
    first
        By fixed priority: whether it goes before the core or waits as long as that asks; None: the
        one that was not granted last goes first of equals.
    """

    bursts_per_cycle: float
    held_cycles: int
    shares: tuple[tuple[int, float], ...]
    first: bool | None = None


def expect_waits(alone: BusRun, master: str, demands: Sequence[Demand]) -> np.ndarray:
    """Return what each burst of a master waits for others on average.

    Parameters
    ----------
    alone
        Of the master by itself.
    master
        One burst in flight at a time.

    Returns
    -------
    ndarray of float64, (bursts,)
        Bus cycles; each grows with every rate.

    Notes
    -----
    With S the cycles a load's burst holds the bank, r its bursts a cycle, C the cycles of the
    master's burst before at that bank, T the gap since, and W the wait itself: what arrived during
    C and W starts with the gap and leaves S - T to wait for (probability q = min(1, r (C + W)));
    else each of the T cycles before brings a burst with probability r, whose rest is waited for:

        W = q max(0, S - T) + (1 - q) r sum_{d=1}^{min(T, S - 1)} (S - d) + ties

    Of equals round robin grants the one not granted last: a tie costs S unless a burst of the
    load came since. Near saturation W may fall with r, as the two then keep step; the highest of
    all lower rates is taken. Several loads are added: none waits for another (ignored).
    """
    part = alone.bursts.range_of(master)
    period = alone.bursts.bus_period
    bank = alone.bursts.bursts[part, TARGET]
    held = alone.bursts.bursts[part, HELD] // period
    granted = alone.times[part, GRANT] // period
    waits = np.zeros(len(bank))
    for demand in demands:
        for number, share in demand.shares:
            mine = np.flatnonzero(bank == number)
            if not len(mine):
                continue
            gap = np.diff(granted[mine], prepend=granted[mine[0]] - (1 << 40))
            before = np.concatenate((held[mine[:1]], held[mine[:-1]]))
            gap[1:] -= before[1:]
            waits[mine] += share * _mean_waits(gap, before, demand)
    return waits


def _mean_waits(gaps: np.ndarray, before: np.ndarray, demand: Demand) -> np.ndarray:
    """Return mean waits by gap and by the length of the burst before it."""
    served, longest = demand.held_cycles, int(before.max())
    bins = np.maximum(gaps, 0)
    long = gaps >= served
    bins[long] = served + np.floor(np.log(gaps[long] / served) / math.log(FINEST)).astype(np.int64)
    keys = bins * (longest + 1) + before
    met = np.flatnonzero(np.bincount(keys))
    known = (met // (longest + 1)).astype(float)
    lengths = np.where(known < served, known, served * FINEST ** np.maximum(known - served, 0))
    place = min(demand.bursts_per_cycle * served, 1.0) * RUNGS
    low = min(int(place), RUNGS - 1)
    rates = np.linspace(0.0, 1.0 / served, RUNGS + 1)[:low + 2]  # no higher one says anything
    at_rates = _solve(lengths[:, None], (met % (longest + 1))[:, None], rates[None, :], demand)
    below, above = at_rates[:, :-1].max(axis=1), at_rates.max(axis=1)
    found = below + (place - low) * (above - below)
    table = np.zeros(met[-1] + 1)
    table[met] = found
    return np.asarray(table[keys])


def _solve(gap: np.ndarray, before: np.ndarray, rate: np.ndarray, demand: Demand) -> np.ndarray:
    """Return mean waits, (pairs, rates); see `expect_waits`."""
    served = demand.held_cycles
    least = np.minimum(gap, served - 1)
    fresh = rate * (least * served - least * (least + 1) / 2)
    passed = (np.maximum(0.0, 1 - rate * (before + gap)) if demand.first is None
              else np.full((len(gap), rate.shape[1]), float(demand.first)))
    ties = rate * served * passed
    wait: np.ndarray = np.zeros_like(ties)
    is_short = (gap < served)[:, 0]
    for here, short in ((is_short, True), (~is_short, False)):
        rest = np.maximum(0.0, served - gap[here])
        if demand.first is False:
            rest = rest * (gap[here] > 0)
        own, alone, tied = before[here] - passed[here], fresh[here], ties[here]
        found = np.zeros_like(tied)
        for _ in range(ROUNDS):
            arrived = rate * (own + found)
            over = np.maximum(0.0, arrived - 1)
            if short:
                pending = np.minimum(1.0, arrived)
                found = pending * rest + (1 - pending) * (alone + tied)
                found += over * served * (demand.first is True)
            else:
                found = np.minimum(alone + over * alone, (served - 1) / 2) + tied
        wait[here] = found
    return wait
