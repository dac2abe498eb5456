"""Prices of time on an accelerator that measurements teach: of units, waits, launches, the host.

A stated price is right up to a factor. Which factors rows can tell, and how far each may be from 1
before any row, follows from the runtime's `offload.spread`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.npu import THROUGH, Npu
from hwmodels.columns import Floats
from hwmodels.counts import EVENTS, Bill, BillLine
from hwmodels.schedule.prices import CYCLE_EVENTS
from twin.deployment.costs import HAND_OVER_EVENTS, bill_us
from twin.runtimes.compiler import Spread

WORK = ("mac", "mac_waste", "alu", "weight_decode")
"""Causes in which a unit works: each has a price for each unit, "NE16.mac"."""

WAITS = tuple(dict.fromkeys(EVENTS[event].cause for event in CYCLE_EVENTS
                            if EVENTS[event].cause not in WORK))
"""Other causes in cycles of the accelerator: a price each."""

HOST_LAUNCH, HOST = "host_launch", "host"
"""Prices of what the host does around tasks, and of its own kernels."""

_PARTS = {"external_memory": "outside", "launch": "hand_over", HOST_LAUNCH: "hand_over",
          HOST: "host"}
"""Part of a runtime's spread that says how unsure a price is; units and other waits: `schedule`."""


def list_prices(npu: Npu) -> tuple[str, ...]:
    """Return the prices of time of a machine and its host."""
    return (*(f"{unit.kind}.{cause}" for unit in npu.units for cause in WORK), THROUGH, *WAITS,
            HOST_LAUNCH, HOST)


def name_price(event: str, place: str) -> str:
    """Return the price a line of a bill is charged under; a path without units has one."""
    if event not in CYCLE_EVENTS:
        return HOST_LAUNCH if event in HAND_OVER_EVENTS else HOST
    cause = EVENTS[event].cause
    return cause if cause not in WORK else THROUGH if place == THROUGH else f"{place}.{cause}"


def draws_while(line: BillLine, names: Sequence[str]) -> Floats:
    """Return 1 for each price of time while which a line of a bill draws energy, else 0.

    A line without cycles draws while the other side works, or all the time; what is counted,
    however long it takes, draws while none passes.
    """
    if line.cycles:
        own = (name_price(line.event, line.place),)
        return np.array([name in own for name in names], np.float64)
    host = np.array([name in (HOST_LAUNCH, HOST) for name in names], np.float64)
    found: Floats = {"npu_idle": host, "sleep": 1 - host, "clock_tree": np.ones(len(names)),
                     "leakage": np.ones(len(names))}.get(line.event, np.zeros(len(names)))
    return found


def state_prior(npu: Npu, spread: Spread) -> Floats:
    """Return how unsure stated prices are: a covariance of logarithms, shape (prices, prices).

    What a runtime says of whole networks is common to all, of tasks to all work of a unit and to
    each price, which is at least as unsure as a task, of the host and of launches to each price of
    theirs.
    """
    names = list_prices(npu)
    units = np.array([name.partition(".")[0] for name in names])
    own = np.array([max(spread.epoch, getattr(spread, _PARTS.get(name, "schedule")))
                    for name in names])
    covariance: Floats = (spread.network**2 + np.diag(own**2)
                          + spread.schedule**2 * (units[:, None] == units))
    return covariance


def deviate_causes(npu: Npu, covariance: Floats) -> dict[str, float]:
    """Return how unsure the time of each cause is: its most unsure price, by a covariance."""
    found: dict[str, float] = {}
    for name, sd in zip(list_prices(npu), np.sqrt(np.diag(covariance)).tolist(), strict=True):
        cause = {HOST_LAUNCH: "launch", THROUGH: "alu"}.get(name, name.rpartition(".")[2])
        found[cause] = max(sd, found.get(cause, 0.0))
    return found


def split_by_price(bill: Bill, board: Board) -> Floats:
    """Return the time of a bill by price, in microseconds, shape (prices,)."""
    assert board.npu is not None, "a deployment that offloads has an accelerator"
    names = list_prices(board.npu)
    times = np.zeros(len(names))
    for line in bill.lines:
        if line.cycles:
            times[names.index(name_price(line.event, line.place))] += bill_us(
                Bill((line,)), board)
    return times
