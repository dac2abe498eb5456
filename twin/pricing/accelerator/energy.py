"""Energy of an accelerator, its memories and its host, with intervals as wide as their prices are.

    interval = E exp(-+ 1.645 sqrt(ln(1 + R^2))),  R = sum over prices of E_i r_i / E

r are the relative deviations the board file states. Errors are taken as common to all prices,
which makes an interval as wide as it can be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from calibration.fitting.intervals import LEVEL, Band, Interval, bound
from hwmodels.board.facts import Board
from hwmodels.board.npu import Npu
from hwmodels.columns import Floats
from hwmodels.counts import Bill
from hwmodels.schedule.prices import CYCLE_EVENTS

NORMAL = Band(down=1.645, up=1.645, level=LEVEL, basis="model-based", count=0)
"""Standard deviations on either side that hold nine in ten."""

_PATHS = {"npu_mac": "npu.energy.mac_pj.{}", "npu_op": "npu.energy.op_pj",
          "npu_active": "npu.energy.active_pj_per_cycle",
          "npu_idle": "npu.energy.idle_pj_per_cycle",
          "npu_ram_byte": "npu.pools.{}.byte_pj", "npu_external_byte": "npu.pools.{}.byte_pj"}
"""Path in the board file of the price of each event that costs energy."""

_PATHS |= dict.fromkeys(CYCLE_EVENTS, _PATHS["npu_active"])

_CURRENTS = {"leakage": "leakage_ma", "clock_tree": "clock_tree_ma_per_mhz"}
"""Key in `power` of the current behind a host's event; all others are its activity's."""

_RUN = "activity_ma_per_mhz"

UNSTATED_SD = 0.3
"""Relative deviation before any row of a price whose file states none; assumed."""


def estimate_npu_energy(bill: Bill, board: Board) -> tuple[float, Interval] | None:
    """Return what an accelerator and its memories draw in an inference, the host omitted.

    Parameters
    ----------
    board
        Whose file says how sure its prices are.

    Returns
    -------
    tuple of (float, Interval) or None
        Microjoules at the rail, and where nine in ten would lie, by the equation of the module;
        None without an accelerator, or where a price is not known.
    """
    lines = [line for line in bill.lines if line.event in _PATHS]
    if any(line.energy_pj is None for line in lines):
        return None
    total_pj, unsure_pj = sum_energy(Bill(tuple(lines)), board)
    if not total_pj:
        return None
    sd = math.sqrt(math.log1p((unsure_pj / total_pj)**2))
    return total_pj * 1e-6, bound(total_pj * 1e-6, sd, NORMAL)


def sum_energy(bill: Bill, board: Board) -> tuple[float, float]:
    """Return the picojoules of a bill, and of each line times its price's deviation; NaN unknown.

    Parameters
    ----------
    bill
        Of anything, host included.
    board
        Whose file says how sure its prices are.
    """
    unsure = read_deviations(board)
    drawn = [(math.nan if line.energy_pj is None else line.energy_pj, unsure.get(
        path_of(line.event, line.place, board), 0.0)) for line in bill.lines]
    return math.fsum(one for one, _ in drawn), math.fsum(one * sd for one, sd in drawn)


def read_deviations(board: Board) -> Mapping[str, float]:
    """Relative deviation of each fact that states one."""
    return {fact.path: fact.rel_sd for fact in board.facts if fact.rel_sd is not None}


def path_of(event: str, place: str, board: Board) -> str:
    """Return the path in the board file of the fact behind an event's energy."""
    name = name_power(event, place)
    return name if event in _PATHS else f"{name}.{board.power.voltage_scale}"


def name_power(event: str, place: str) -> str:
    """Return the price of energy an event is charged under: its fact's path, at any voltage."""
    return _PATHS[event].format(place) if event in _PATHS else f"power.{_CURRENTS.get(event, _RUN)}"


def list_powers(npu: Npu) -> tuple[str, ...]:
    """Return the prices of energy of a machine, its memories and its host."""
    places = {"npu_mac": [width for width, _ in npu.energy.mac_pj],
              "npu_ram_byte": [pool.name for pool in npu.pools]}
    return tuple(dict.fromkeys([
        *(name_power(event, place) for event in _PATHS for place in places.get(event, [""])
          if event != "npu_external_byte"),
        *(f"power.{key}" for key in (*_CURRENTS.values(), _RUN))]))


def split_by_power(bill: Bill, board: Board) -> Floats:
    """Return the picojoules of a bill by price of energy, shape (prices,); NaN is not known."""
    assert board.npu is not None, "a deployment that offloads has an accelerator"
    names = list_powers(board.npu)
    drawn = np.zeros(len(names))
    for line in bill.lines:
        drawn[names.index(name_power(line.event, line.place))] += (
            math.nan if line.energy_pj is None else line.energy_pj)
    return drawn


def state_powers(board: Board) -> Floats:
    """Return how unsure stated prices of energy are: a covariance of logarithms, of each alone."""
    assert board.npu is not None, "a deployment that offloads has an accelerator"
    unsure = read_deviations(board)
    sds = [unsure.get(name, unsure.get(f"{name}.{board.power.voltage_scale}", UNSTATED_SD))
           for name in list_powers(board.npu)]
    covariance: Floats = np.diag(np.log1p(np.square(sds)))
    return covariance
