"""Prices on an accelerator that measurements teach: of units, waits, launches, the host, energies.

A stated price is right up to a factor. How far each may be from 1 before any row follows from the
spread the compiler's file states, of a price of energy from the deviation its board's file states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.npu import THROUGH, Npu
from hwmodels.columns import Floats
from hwmodels.counts import EVENTS, Bill, BillLine
from hwmodels.schedule.prices import CYCLE_EVENTS
from twin.deployment.costs import HAND_OVER_EVENTS, bill_us
from twin.runtimes import load_runtime

WORK = ("mac", "mac_waste", "alu", "weight_decode")
"""Causes in which a unit works: each has a price for each unit, "NE16.mac"."""

WAITS = tuple(dict.fromkeys(EVENTS[event].cause for event in CYCLE_EVENTS
                            if EVENTS[event].cause not in (*WORK, "flash_wait")))
"""Other causes in cycles of the accelerator: a price each; `flash_wait` has `external_memory`'s."""

HOST_LAUNCH, HOST = "host_launch", "host"
"""Prices of what the host does around tasks, and of its own kernels."""

_PARTS = {"external_memory": "outside", "launch": "hand_over", HOST_LAUNCH: "hand_over",
          HOST: "host"}
"""Part of a runtime's spread that says how unsure a price is; units and other waits: `schedule`."""


PATHS = {"npu_mac": "npu.energy.mac_pj.{}", "npu_op": "npu.energy.op_pj",
         **dict.fromkeys(("npu_active", *CYCLE_EVENTS), "npu.energy.active_pj_per_cycle"),
         "npu_idle": "npu.energy.idle_pj_per_cycle",
         **dict.fromkeys(("npu_ram_byte", "npu_flash_byte", "npu_external_byte"),
                         "npu.pools.{}.byte_pj")}
"""Path in the board file of the price of each event that costs energy."""

_CURRENTS = {"leakage": "leakage_ma", "clock_tree": "clock_tree_ma_per_mhz"}
"""Key in `power` of the current behind a host's event; all others are its activity's."""

_RUN = "activity_ma_per_mhz"

UNSTATED_SD = 0.3
"""Relative deviation before any row of a price whose file states none; assumed."""


def list_prices(npu: Npu) -> tuple[str, ...]:
    """Return the prices of time of a machine and its host."""
    return (*(f"{unit.kind}.{cause}" for unit in npu.units for cause in WORK), THROUGH, *WAITS,
            HOST_LAUNCH, HOST)


def name_price(event: str, place: str) -> str:
    """Return the price a line of a bill is charged under; a path without units has one."""
    if event not in CYCLE_EVENTS:
        return HOST_LAUNCH if event in HAND_OVER_EVENTS else HOST
    cause = "external_memory" if event == "npu_flash_wait" else EVENTS[event].cause
    return cause if cause not in WORK else THROUGH if place == THROUGH else f"{place}.{cause}"


def draws_while(line: BillLine, names: Sequence[str]) -> Floats:
    """Return 1 for each price of time while which a line of a bill draws energy, else 0.

    A line without cycles draws while the other side works, or all the time; what is counted,
    however long it takes, draws while none passes.
    """
    host = (HOST_LAUNCH, HOST)
    own = tuple(name for name in names if name not in host)
    drawing = (name_price(line.event, line.place),) if line.cycles else {
        "npu_idle": host, "sleep": own, "npu_active": own,
        "clock_tree": names, "leakage": names}.get(line.event, ())
    return np.array([name in drawing for name in names], np.float64)


def state_prior(npu: Npu, runtime: str) -> Floats:
    """Return how unsure stated prices are: a covariance of logarithms, shape (prices, prices).

    What a compiler's file says of whole networks is common to all, of tasks to all work of a
    unit and to each price, which is at least as unsure as a task, of the host and of launches to
    each price of theirs.
    """
    names, spread = list_prices(npu), load_runtime(runtime).mapping.spread
    units = np.array([name.partition(".")[0] for name in names])
    own = np.array([max(spread.task, getattr(spread, _PARTS.get(name, "schedule")))
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
    return {**found, "flash_wait": found["external_memory"]}


def split_by_price(bill: Bill, board: Board) -> Floats:
    """Return the time of a bill by price, in microseconds, shape (prices,)."""
    names = list_prices(board.accelerator)
    times = np.zeros(len(names))
    for line in bill.lines:
        if line.cycles:
            times[names.index(name_price(line.event, line.place))] += bill_us(Bill((line,)), board)
    return times


def read_deviations(board: Board) -> Mapping[str, float]:
    """Relative deviation of each fact that states one."""
    return {fact.path: fact.rel_sd for fact in board.facts if fact.rel_sd is not None}


def name_power(event: str, place: str) -> str:
    """Return the price of energy an event is charged under: its fact's path, at any voltage."""
    return PATHS[event].format(place) if event in PATHS else f"power.{_CURRENTS.get(event, _RUN)}"


def list_powers(npu: Npu) -> tuple[str, ...]:
    """Return the prices of energy of a machine, its memories and its host."""
    places = {"npu_mac": [width for width, _ in npu.energy.mac_pj],
              "npu_ram_byte": [pool.name for pool in npu.pools]}
    return tuple(dict.fromkeys([
        *(name_power(event, place) for event in PATHS for place in places.get(event, [""])
          if event not in ("npu_flash_byte", "npu_external_byte")),
        *(f"power.{key}" for key in (*_CURRENTS.values(), _RUN))]))


def split_by_power(bill: Bill, board: Board) -> Floats:
    """Return the picojoules of a bill by price of energy, shape (prices,); NaN is not known."""
    names = list_powers(board.accelerator)
    drawn = np.zeros(len(names))
    for line in bill.lines:
        drawn[names.index(name_power(line.event, line.place))] += (
            math.nan if line.energy_pj is None else line.energy_pj)
    return drawn


def state_powers(board: Board) -> Floats:
    """Return how unsure stated prices of energy are: a covariance of logarithms, of each alone."""
    unsure = read_deviations(board)
    sds = [unsure.get(name, unsure.get(f"{name}.{board.power.voltage_scale}", UNSTATED_SD))
           for name in list_powers(board.accelerator)]
    covariance: Floats = np.diag(np.log1p(np.square(sds)))
    return covariance
