"""Energy of an accelerator and its memories, with an interval as wide as its prices are unsure."""

from __future__ import annotations

import math

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import Board
from hwmodels.counts import Bill, BillLine

LEVEL = 0.9
_DEVIATIONS = 1.645
"""Standard deviations on either side that hold nine in ten."""

_PATHS = {"npu_mac": "npu.energy.mac_pj.{}", "npu_op": "npu.energy.op_pj",
          "npu_active": "npu.energy.active_pj_per_cycle",
          "npu_idle": "npu.energy.idle_pj_per_cycle",
          "npu_ram_byte": "npu.pools.{}.byte_pj", "npu_external_byte": "npu.pools.{}.byte_pj"}
"""Path in the board file of the price of each event that costs energy."""


def estimate_npu_energy(bill: Bill, board: Board) -> tuple[float, Interval] | None:
    """Return what an accelerator and its memories draw in an inference, the host left out.

    Parameters
    ----------
    bill : Bill
        Of an inference.
    board : Board
        Whose file says how sure its prices are.

    Returns
    -------
    tuple of (float, Interval) or None
        Microjoules at the rail, and where nine in ten would lie; None without an accelerator, or
        where a price is not known.

    Notes
    -----
    energy = sum of counts x prices, log-normal with the relative deviations r the board file
    states: R = sum of E_i r_i / E, the interval E exp(-+ 1.645 sqrt(ln(1 + R^2))). Errors are taken
    as common to all prices, which makes it as wide as it can be: all come from other chips.
    """
    parts: dict[str, float] = {}
    for line in bill.lines:
        if line.event in _PATHS:
            if line.energy_pj is None:
                return None
            path = _path(line)
            parts[path] = parts.get(path, 0.0) + line.energy_pj * 1e-6
    total_uj = math.fsum(parts.values())
    if not total_uj:
        return None
    unsure = {fact.path: fact.rel_sd or 0.0 for fact in board.facts}
    relative = math.fsum(part * unsure.get(path, 0.0)
                         for path, part in parts.items()) / total_uj
    factor = math.exp(_DEVIATIONS * math.sqrt(math.log1p(relative**2)))
    return total_uj, Interval(low=total_uj / factor, high=total_uj * factor, level=LEVEL)


def _path(line: BillLine) -> str:
    return _PATHS[line.event].format(line.place)
