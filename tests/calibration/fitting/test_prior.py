"""What prices have in common before any row: covariances and relations, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.cell import Cell
from calibration.fitting.prior import (
    LEVELS,
    RELEASES,
    Part,
    Prior,
    Spread,
    bind,
    known_prior,
    pool_prior,
    relate,
    share,
)

HERE = Cell(board="one", core="m4", library="lib", release=2.0, stated_sd=0.2, option="who")


@pytest.mark.parametrize(("level", "change", "shared"), [
    ("everything", {"board": "two", "core": "m7", "library": "else"}, 1.0),
    ("library", {"board": "two"}, 1.0), ("library", {"library": "else"}, 0.0),
    ("core", {"library": "else"}, 1.0), ("core", {"core": "m7"}, 0.0),
    ("board", {"library": "else"}, 1.0), ("board", {"board": "two"}, 0.0),
    ("release", {"board": "two"}, 1.0), ("release", {"release": 5.0}, math.exp(-3 / RELEASES)),
    ("release", {"release": 1.0}, math.exp(-1 / RELEASES)), ("release", {"library": "else"}, 0.0),
    ("option", {"board": "two"}, 1.0), ("option", {"option": "else"}, 0.0),
    ("option", {"release": 5.0}, 1.0), ("option", {"library": "else"}, 0.0),
    ("build", {"board": "two"}, 1.0), ("build", {"core": "m7"}, 0.0),
    ("cell", {"core": "m7"}, 1.0), ("cell", {"board": "two"}, 0.0),
    ("file", {"library": "else"}, 0.04), ("file", {"stated_sd": 0.5}, 0.1),
    ("file", {"board": "two"}, 0.0)])
def test_two_cells_share_a_level_where_what_names_it_is_the_same(level, change, shared):
    other = replace(HERE, **change)
    assert relate(level, [HERE], [HERE, other])[0, 1] == pytest.approx(shared)
    assert relate(level, [other], [HERE])[0, 0] == pytest.approx(shared)


def test_what_is_not_measured_or_built_by_default_shares_nothing_by_its_empty_name():
    nobody = Cell(board="", core="", library="", release=0.0)
    for level in ("library", "core", "board", "release", "option", "cell", "build"):
        assert relate(level, [nobody], [nobody])[0, 0] == 0.0
    assert relate("option", [replace(HERE, option="")], [replace(HERE, option="")])[0, 0] == 0.0


def test_what_a_level_has_in_common_moves_some_prices_of_time_and_all_of_currents():
    names = ("conv", "memory", "stream", "call")
    assert share(names, "library")[0].tolist() == [1, 0, 0, 0]
    assert share(names, "board")[0].tolist() == [1, 1, 1, 0]
    assert share(("activity", "memory"), "library").tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(("library", "levels"), [
    (0.3, [level for level in LEVELS if level != "file"]),
    (0.0, [level for level in LEVELS if level != "library"])])
def test_parts_add_up_to_the_covariance_and_a_files_error_as_it_states(library, levels):
    prior = pool_prior(("activity", "memory"), np.array([0.3, 0.2]), Spread(library=library))
    assert [part.level for part in prior.parts] == levels
    parts = {part.level: part.covariance for part in prior.parts}
    assert prior.covariance == pytest.approx(sum(
        part for level, part in parts.items() if level not in ("file", "option")))
    assert prior.of(0.0, "time") == pytest.approx(prior.covariance + parts["option"])
    if "file" in parts:
        assert prior.of(0.5) - prior.covariance == pytest.approx(0.25 * parts["file"])
    assert prior.mean.tolist() == [0.0, 0.0]


def test_prices_bound_are_off_by_one_factor_or_nearly():
    """Of independent a, b of variance 1 and 3 that are equal: both 3/4, c as it was."""
    prior = known_prior(("a", "b", "c"), np.array([0.1, 0.2, 0.3]), np.diag([1.0, 3.0, 5.0]))
    bound = bind(prior, {"a", "b"})
    assert bound.covariance == pytest.approx(np.array([[.75, .75, 0], [.75, .75, 0], [0, 0, 5]]))
    assert bound.mean.tolist() == [0.1, 0.2, 0.3] and bound.names == prior.names
    # give or take 1: what is known of a - b has variance 1 + 3 + 1
    loose = bind(prior, ["a", "b"], 1.0).covariance
    assert loose[:2, :2] == pytest.approx(np.array([[1 - 1 / 5, 3 / 5], [3 / 5, 3 - 9 / 5]]))
    assert bind(prior, {"a"}).covariance == pytest.approx(prior.covariance)
    assert bind(prior, ()).covariance == pytest.approx(prior.covariance)


def test_a_prior_is_of_every_price_and_a_part_of_a_known_level():
    with pytest.raises(FitError, match=r"prior mean of shape \(1,\) for 2 prices"):
        Prior(names=("a", "b"), mean=np.zeros(1), parts=())
    with pytest.raises(FitError, match=r"level core: covariance of shape \(1, 1\) for 2 prices"):
        Prior(names=("a", "b"), mean=np.zeros(2), parts=(Part(level="core",
                                                              covariance=np.eye(1)),))
    with pytest.raises(FitError, match="level 'house'; accepted: "):
        Part(level="house", covariance=np.eye(1))


@pytest.mark.parametrize(("name", "value", "fits"), [
    ("core", 0.0, True), ("core", -0.1, False), ("core", math.inf, False), ("network", 0.0, False),
    ("row", 0.0, False), ("row", 1e-9, True), ("own_cell", math.nan, False)])
def test_a_spread_is_above_nothing_and_errors_are_never_none(name, value, fits):
    if fits:
        assert getattr(Spread(**{name: value}), name) == value
        return
    with pytest.raises(FitError, match=f"spread {name} is .*; accepted: above 0"):
        Spread(**{name: value})
