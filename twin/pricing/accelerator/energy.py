"""Energy of an accelerator, its memories and its host, with intervals as wide as their prices are.

    interval = E exp(-+ 1.645 sqrt(ln(1 + R^2))),  R = sum over prices of E_i r_i / E

r are the relative deviations the board file states. Errors are taken as common to all prices,
which makes an interval as wide as it can be.
"""

from __future__ import annotations

import math

from calibration.fitting.intervals import LEVEL, Band, Interval, bound
from hwmodels.board.facts import Board
from hwmodels.counts import Bill
from twin.pricing.task_prices import PATHS, name_power, read_deviations

NORMAL = Band(down=1.645, up=1.645, level=LEVEL, basis="model-based", count=0)
"""Standard deviations on either side that hold nine in ten."""


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
    lines = [line for line in bill.lines if line.event in PATHS]
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


def path_of(event: str, place: str, board: Board) -> str:
    """Return the path in the board file of the fact behind an event's energy."""
    name = name_power(event, place)
    return name if event in PATHS else f"{name}.{board.power.voltage_scale}"
