"""A view, not the bill: time shared over resources made ideal, by Shapley value.

The bill blames each cycle on the resource it was waited for. This asks another question: what if a
cache never missed, a memory never waited ... , one and all together? What a resource saves depends
on which others are ideal already, so its share is the mean over all orders: the Shapley value,
from all 2^n settings, exact.

References
----------
Shapley, "A value for n-person games", 1953.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hwmodels.counts import Bill
from hwmodels.frozen import frozen
from twin.deployment.deployment import Deployment
from twin.pricing.calibrated import predict_at
from twin.pricing.calibration import Calibration

HUGE_BYTES = 1 << 24
"""A cache no network of a microcontroller overflows: what is left are first touches."""


@frozen
class Split:
    """A predicted time shared over idealised resources, in whole nanoseconds.

    Parameters
    ----------
    work
        What remains when all are ideal.
    shares
        Of each resource; `work` and the shares sum to `total`.
    """

    total: int
    work: int
    shares: Mapping[str, int]


MACHINES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "perfect cache": ("caches", {"size_bytes": HUGE_BYTES, "ways": 8, "enabled": True}),
    "no wait states": ("memories", {"wait_states": 0}),
    "infinite bandwidth": ("memories", {"latency_cycles": 0.0, "line_latency_cycles": None,
                                        "bytes_per_cycle": 1024.0}),
}
"""Resources that change what happens, by what all parts of a kind are made: each combination is
predicted again."""


def _idealise(deployment: Deployment, parts: str, facts: Mapping[str, Any]) -> Deployment:
    """Return a deployment on a board all of whose caches, or memories, have these facts."""
    board = deployment.board
    changed: Any = {parts: tuple(replace(part, **facts) for part in getattr(board, parts))}
    return replace(deployment, board=replace(board, **changed))


FREED: Mapping[str, tuple[str, ...]] = {
    "infinite bandwidth": ("sram_wait", "external_wait", "bus_contention"),
    "ideal branches": ("branch_refill",),
    "no pipeline stalls": ("pipeline_stall",),
    "free calls": ("call_issue", "kernel_dispatch"),
}
"""Events that take no time when a resource is ideal; they are struck off the bill."""

RESOURCES = tuple(dict.fromkeys((*MACHINES, *FREED)))
"""Six: every one of the 64 settings is valued."""


def shapley(value: Callable[[frozenset[str]], int], players: Sequence[str]) -> dict[str, Fraction]:
    """Return the Shapley value of each player of a game, exactly.

    Parameters
    ----------
    value
        Set of players -> what they reach together; asked once per set.

    Returns
    -------
    dict of str to Fraction
        Sums to value(all) - value(none).
    """
    known = {frozenset(chosen): value(frozenset(chosen)) for size in range(len(players) + 1)
             for chosen in itertools.combinations(players, size)}
    count = len(players)
    found = dict.fromkeys(players, Fraction(0))
    for chosen, reached in known.items():
        size = len(chosen)
        for player in players:
            if player not in chosen:
                weight = Fraction(math.factorial(size) * math.factorial(count - size - 1),
                                  math.factorial(count))
                found[player] += weight * (known[chosen | {player}] - reached)
    return found


def split_time(deployment: Deployment, temperature: str = "warm",
               calibration: Calibration | None = None) -> Split:
    """Share a deployment's predicted time over the idealised resources.

    Parameters
    ----------
    deployment
        On a core, not on an accelerator.
    calibration
        Learnt prices of the deployment; stated ones without.

    Returns
    -------
    Split
        Summing exactly; a resource may have a negative share where making it ideal hurts.
    """
    bills: dict[frozenset[str], Bill] = {}

    def take(ideal: frozenset[str]) -> int:
        machine = ideal & set(MACHINES)
        if machine not in bills:
            changed = deployment
            for name in MACHINES:
                if name in machine:
                    changed = _idealise(changed, *MACHINES[name])
            bills[machine] = predict_at(changed, calibration, temperature=temperature).bill
        freed = {event for name in ideal for event in FREED.get(name, ())}
        return round(math.fsum(
            line.cycles / deployment.board.clock(line.clock).frequency_hz * 1e9
            for line in bills[machine].lines if line.event not in freed))

    total = take(frozenset())
    exact = shapley(lambda ideal: total - take(ideal), RESOURCES)
    whole = sum(exact.values())
    shares = round_signed(list(exact.values()), int(whole))
    return Split(total=total, work=total - int(whole), shares=dict(zip(exact, shares, strict=True)))


def round_signed(parts: Sequence[Fraction], total: int) -> list[int]:
    """Round to whole numbers that sum to `total`, by largest remainder; parts may be negative.

    Parameters
    ----------
    parts
        Summing to `total`.
    total
        What the result sums to.
    """
    floors = [math.floor(part) for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda i: (floors[i] - parts[i], i))
    for place in by_remainder[:total - sum(floors)]:
        floors[place] += 1
    return floors
