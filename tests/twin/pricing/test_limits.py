"""Limits: the verdict by the point, and what the interval says of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from calibration.fitting.intervals import Interval
from twin.pricing.requirement import Requirement, probability_above

UNEVEN = Interval(low=80.0, high=130.0, level=0.9)


def requirement(limit, predicted=100.0, interval=UNEVEN):
    return Requirement(name="time", unit="ms", predicted=predicted, limit=limit, interval=interval)


def test_the_ends_of_the_interval_are_exceeded_as_its_level_says():
    assert probability_above(130.0, 100.0, UNEVEN) == pytest.approx(0.05)
    assert probability_above(100.0, 100.0, UNEVEN) == pytest.approx(0.5)
    assert probability_above(80.0, 100.0, UNEVEN) == pytest.approx(0.95)
    chances = [probability_above(limit, 100.0, UNEVEN) for limit in range(50, 200, 5)]
    assert chances == sorted(chances, reverse=True)


def test_an_interval_of_no_width_leaves_no_doubt():
    exact = Interval(low=100.0, high=100.0, level=0.9)
    assert probability_above(101.0, 100.0, exact) == 0.0
    assert probability_above(99.0, 100.0, exact) == 1.0


@pytest.mark.parametrize(("limit", "met", "sure", "verdict"), [
    (140.0, True, True, "ok"), (130.0, True, True, "ok"), (120.0, True, False, "ok, may exceed"),
    (90.0, False, False, "not met, may be within"), (70.0, False, False, "not met"),
])
def test_the_verdict_goes_by_the_point_and_names_the_doubt(limit, met, sure, verdict):
    asked = requirement(limit)
    assert (asked.met, asked.surely_met, asked.verdict) == (met, sure, verdict)


@pytest.mark.parametrize(("measured", "met"), [(152.0, False), (119.0, True)])
def test_what_was_measured_is_judged_first(measured, met):
    asked = replace(requirement(120.0), measured=measured)
    assert (asked.met, asked.surely_met) == (met, met)
    assert asked.verdict == ("ok, measured" if met else "not met, measured")


def test_without_an_interval_only_the_point_is_judged():
    asked = requirement(120.0, interval=None)
    assert (asked.verdict, asked.surely_met, asked.chance_above) == ("ok", True, None)
    unknown = requirement(math.inf, predicted=None)
    assert (unknown.verdict, unknown.met) == ("may: not known", False)
