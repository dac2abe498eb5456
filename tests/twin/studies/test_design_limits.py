"""Limits as people write them, and the probability of meeting two that share their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.fitting.intervals import Interval
from twin.errors import UsageError
from twin.studies.limits import (
    Limits,
    probability_both,
    probability_of_all,
    probability_within,
    read_limits,
)

REACH = 1.6448536269514722
"""Standard deviations to either end of a 90 % interval."""


def around(point: float, sd: float) -> Interval:
    return Interval(low=point * math.exp(-REACH * sd), high=point * math.exp(REACH * sd), level=0.9)


def test_limits_are_read_with_and_without_units() -> None:
    assert read_limits(max_ms="0.1s", max_uj="5mJ", max_ram="256KiB", max_flash=1024,
                       max_usd="$12") == Limits(
        max_time_us=1e5, max_energy_uj=5000.0, max_ram_bytes=262144, max_flash_bytes=1024,
        max_price_usd=12.0)
    assert read_limits(max_ms=100) == Limits(max_time_us=1e5)
    assert not read_limits()
    for wrong in ({"max_ms": "5mJ"}, {"max_uj": "-1"}, {"max_ram": "lots"}, {"max_usd": "0"},
                  {"max_ms": "nan"}, {"max_ram": "64"}, {"max_flash": 512}):
        with pytest.raises(UsageError, match="is not a limit; accepted"):
            read_limits(**wrong)


@pytest.mark.parametrize("limit, unit", [
    ({"max_uj": "2MJ"}, "mJ"), ({"max_uj": "2mj"}, "mJ"), ({"max_ms": "5MS"}, "ms"),
    ({"max_ram": "256KB"}, "KiB"), ({"max_flash": "1MB"}, "MiB")])
def test_a_unit_in_the_wrong_case_is_refused_with_the_right_one(limit, unit) -> None:
    with pytest.raises(UsageError, match=f"is not a limit; .* did you mean {unit}"):
        read_limits(**limit)


def test_at_the_end_of_an_interval_one_in_twenty_lies_beyond() -> None:
    interval = around(10.0, 0.2)
    assert probability_within(interval.high, 10.0, interval) == pytest.approx(0.95)
    assert probability_within(interval.low, 10.0, interval) == pytest.approx(0.05)
    assert probability_within(None, None, None) == 1.0
    assert probability_within(1.0, 2.0, None) is None


def test_both_limits_agree_with_draws() -> None:
    rng = np.random.default_rng(1)
    time_sd, power_sd = 0.2, 0.1
    time = rng.normal(0, time_sd, 400_000)
    energy = time + rng.normal(0, power_sd, len(time))
    drawn = ((time < 0.1) & (energy < 0.05)).mean()
    assert probability_both(0.1, 0.05, time_sd, math.hypot(time_sd, power_sd)) == pytest.approx(
        drawn, abs=4e-3)


def test_energy_that_is_all_time_adds_no_doubt() -> None:
    limits = Limits(max_time_us=11.0, max_energy_uj=110.0)
    interval = around(10.0, 0.2), around(100.0, 0.2)
    both = probability_of_all(limits, time_us=10.0, energy_uj=100.0, time=interval[0],
                              energy=interval[1])
    assert both == pytest.approx(probability_within(11.0, 10.0, interval[0]), abs=2e-2)


def test_an_unknown_energy_has_no_probability() -> None:
    assert probability_of_all(Limits(max_energy_uj=1.0), time_us=1.0, energy_uj=None,
                              time=around(1.0, 0.1), energy=None) is None


def test_a_limit_no_device_has_is_refused_in_a_line() -> None:
    with pytest.raises(UsageError, match=r"--max-uj '1e99' is not a limit; .*below 1e\+18$"):
        read_limits(max_uj="1e99")
