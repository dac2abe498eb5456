"""The front of a table by hand: what nothing beats, and what only intervals leave open."""

from __future__ import annotations

import dataclasses

import numpy as np

from calibration.fitting.intervals import Interval
from twin.studies.rows import Row
from twin.studies.sweep import find_front, list_idle, mark_front

OVER = ("time_us", "energy_uj")


def row(time: float, energy: float, half: float = 0.0, model: str = "m", **more: object) -> Row:
    def within(value: float) -> Interval:
        return Interval(low=value - half, high=value + half, level=0.9)

    return Row(inputs=(), model=model, time_us=time, time=within(time), energy_uj=energy,
               energy=within(energy), **more)


def test_points_without_doubt_are_certain_or_off() -> None:
    marks = [one.front for one in mark_front(
        [row(1, 9), row(5, 5), row(9, 1), row(6, 6), row(5, 6)], OVER)]
    assert marks == ["certain", "certain", "certain", "", ""]


def test_overlapping_intervals_leave_a_worse_point_possible() -> None:
    marks = [one.front for one in mark_front(
        [row(10, 10, half=2), row(11, 11, half=2), row(30, 30, half=2)], OVER)]
    assert marks == ["front", "possible", ""]


def test_equal_points_are_all_on_the_front() -> None:
    assert [one.front for one in mark_front([row(1, 1), row(1, 1)], OVER)] == ["certain"] * 2


def test_each_network_has_a_front_of_its_own() -> None:
    marked = mark_front([row(1, 1, model="small"), row(9, 9, model="large")], OVER)
    assert [one.front for one in marked] == ["certain", "certain"]


def test_failed_rows_and_unknown_energy_are_off_and_limits_play_no_part() -> None:
    unknown = Row(inputs=(), model="m", time_us=9.0)
    rows = [row(5, 5), row(1, 6, violations=("ram_bytes",)), row(1, 1, failure="runtime"), unknown]
    assert [one.front for one in mark_front(rows, OVER)] == ["certain", "certain", "", ""]


def test_nothing_is_certain_beside_a_figure_that_is_not_known() -> None:
    unknown = Row(inputs=(), model="m", time_us=1.0)
    assert [one.front for one in mark_front([row(5, 5), unknown], OVER)] == ["front", ""]
    alone = dataclasses.replace(row(5, 5), energy=None)
    assert [one.front for one in mark_front([alone, row(6, 6)], OVER)] == ["front", ""]


def test_the_front_agrees_with_the_definition() -> None:
    values = np.random.default_rng(3).random((300, 3))
    slow = [place for place, one in enumerate(values) if not any(
        (other <= one).all() and (other < one).any() for other in values)]
    assert find_front(values).tolist() == slow


def test_an_axis_whose_values_change_no_figure_is_idle() -> None:
    def at(time: float, **inputs: str) -> Row:
        return dataclasses.replace(row(time, 1), inputs=tuple(inputs.items()))

    rows = [at(1, mode="a", size="1"), at(1, mode="b", size="1"), at(2, mode="a", size="2"),
            at(2, mode="b", size="2"), dataclasses.replace(at(9, mode="c", size="1"), failure="no")]
    assert list_idle(rows) == {"mode": ("a", "b")}
    assert list_idle([*rows, at(3, mode="d", size="2")]) == {}
    moved = [at(1, mode="a"), at(2, mode="a", size="2"), at(2, mode="a", size="1")]
    assert list_idle(moved) == {}  # some have a size advised: nobody varied it
    assert list_idle([at(1, board="a"), at(1, board="b")]) == {}  # boards are no setting
