"""Energy of an accelerator, its memories and its host, with intervals as wide as their prices are.

    interval = E exp(-+ 1.645 sqrt(ln(1 + R^2))),  R = sum over prices of E_i r_i / E

r are the relative deviations the board file states. Errors are taken as common to all prices,
which makes an interval as wide as it can be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from calibration.fitting.intervals import LEVEL, Band, Interval, bound
from hwmodels.board.facts import Board
from hwmodels.counts import Bill

NORMAL = Band(down=1.645, up=1.645, level=LEVEL, basis="model-based", count=0)
"""Standard deviations on either side that hold nine in ten."""

_PATHS = {"npu_mac": "npu.energy.mac_pj.{}", "npu_op": "npu.energy.op_pj",
          "npu_active": "npu.energy.active_pj_per_cycle",
          "npu_idle": "npu.energy.idle_pj_per_cycle",
          "npu_ram_byte": "npu.pools.{}.byte_pj", "npu_external_byte": "npu.pools.{}.byte_pj"}
"""Path in the board file of the price of each event that costs energy."""

_CURRENTS = {"leakage": "leakage_ma", "clock_tree": "clock_tree_ma_per_mhz"}
"""Key in `power` of the current behind a host's event; all others are its activity's."""


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
    if event in _PATHS:
        return _PATHS[event].format(place)
    key = _CURRENTS.get(event, "activity_ma_per_mhz")
    return f"power.{key}.{board.power.voltage_scale}"
