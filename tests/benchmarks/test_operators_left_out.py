"""The table of operators left out: who has one, what is learnt from, and what is printed."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accuracy.calibrated import Case
from benchmarks.accuracy.operators import (
    FEWEST_LEFT,
    leave_operators_out,
    list_operators,
    make_report,
)
from calibration.datasets import published_rows
from calibration.fitting.cell import Cell
from twin.learning.observations import Observation
from twin.learning.tally import Tally
from twin.pricing.calibration import TIME_PRICES

CONV, POOL = TIME_PRICES.index("conv"), TIME_PRICES.index("pool")


def make_case(number: int, pool_cycles: float) -> Case:
    """A network of a convolution and, if it takes any time, a pooling: as stated, but for 5 %."""
    cycles = np.zeros((2, len(TIME_PRICES)))
    cycles[0, CONV], cycles[1, POOL] = 1e6 + 1e4 * number, pool_cycles
    tally = Tally(cycles=cycles, energy_pj=np.full((2, len(TIME_PRICES), 3), np.nan),
                  clock_tree_pj=np.nan, leakage_pj=np.nan,
                  operators=("conv_2d int8 dsp", "max_pool_2d int8 dsp"), external=np.zeros(2),
                  borrowed=np.zeros(2, dtype=bool))
    observation = Observation(
        label=f"row {number}", source="made", network=f"net {number}", runtime="made@1",
        cell=Cell(board="b", core="m", library="made", release=0.0), tally=tally,
        cycles=float(cycles.sum()) * (1.05 if number % 2 else 1.0), energy_pj=None,
        clock_hz=1e8, supply_v=None, arena="sram")
    return Case(row=next(row for row in published_rows() if row.model),
                observation=observation)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [make_case(number, 0.0) for number in range(FEWEST_LEFT)] + [
        make_case(FEWEST_LEFT + number, 3e5) for number in range(4)]


def test_a_network_has_an_operator_that_takes_time(cases) -> None:
    assert list_operators(cases[0]) == {"conv_2d": 1.0}
    assert list_operators(cases[-1])["max_pool_2d"] == pytest.approx(3e5 / 1.45e6, abs=0.01)


def test_rows_with_the_operator_are_predicted_from_those_without(cases) -> None:
    found = leave_operators_out(cases, ())
    assert [one.operator for one in found] == ["max_pool_2d"]  # no row is without a convolution
    (pool,) = found
    assert [one.observation.label for one in pool.guesses] == [
        case.observation.label for case in cases[FEWEST_LEFT:]]
    assert pool.errors_pct.max() < 12 and pool.covered == 1.0
    report = make_report(found, len(cases))
    assert "| max_pool_2d | 4 |" in report and "cover 100 %" in report
    wrong = replace(pool, guesses=tuple(replace(one, time_error=5.0) for one in pool.guesses))
    assert wrong.covered == 0.0
