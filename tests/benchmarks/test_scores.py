"""Scores of distributions against formulas worked out otherwise, and who is found better."""

from __future__ import annotations

import math
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.accuracy.scores import duel, score
from benchmarks.accuracy.specifications import REACH
from benchmarks.accuracy.targets import FEWEST, list_groups, misfits


@pytest.mark.parametrize(("error", "sd"), [(0.0, 0.1), (0.25, 0.1), (-0.05, 0.2)])
def test_scores_of_a_normal_distribution(error, sd):
    interval, crps, log = score(np.array([error]), *[np.array([REACH * sd])] * 2)[:, 0]
    z, norm = error / sd, NormalDist()
    # Gneiting and Raftery (2007), equation 21
    assert crps == pytest.approx(sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z)
                                       - 1 / math.sqrt(math.pi)), rel=0.02)
    assert log == pytest.approx(-math.log(NormalDist(0, sd).pdf(error)))
    assert interval == pytest.approx(2 * REACH * sd + 20 * max(0, abs(error) - REACH * sd))


def guess(network, error, rival, spread=0.1):
    return SimpleNamespace(
        time_error=error, time_sd=0.1, time_band=SimpleNamespace(down=REACH, up=REACH),
        baselines={"rival": rival}, spreads={"rival": spread},
        observation=SimpleNamespace(cell=SimpleNamespace(board="b"), network=network))


def test_the_better_of_two_is_found_and_chance_is_not():
    rng = np.random.default_rng(1)
    good, bad = rng.normal(0, 0.05, 40), rng.normal(0, 0.3, 40)
    ours = duel([guess(str(i), *pair) for i, pair in enumerate(zip(good, bad, strict=True))],
                "rival")
    theirs = duel([guess(str(i), *pair) for i, pair in enumerate(zip(bad, good, strict=True))],
                  "rival")
    assert not ours.lost and all(high < 0 for _, high in ours.differences)
    assert theirs.lost
    assert not duel([guess(str(i), error, -error) for i, error in enumerate(good)], "rival").lost
    assert duel([guess("a", 0.1, math.nan)], "rival") is None


def test_coverage_is_judged_by_the_rows_that_are_independent():
    """Ten of thirty rows outside are too many, unless they are the rows of one release."""
    def rows(releases):
        return [SimpleNamespace(time_covered=row >= 10, observation=SimpleNamespace(
            network=str(row), cell=SimpleNamespace(board="b", release=release)))
            for row, release in enumerate(releases)]

    assert misfits(rows(range(30)))
    assert not misfits(rows([0] * 10 + [1] * 10 + [2] * 10))
    assert not misfits(rows(range(30))[10:])


def test_groups_of_enough_rows_are_judged_by_themselves():
    rows = [SimpleNamespace(observation=SimpleNamespace(cell=SimpleNamespace(
        board=board, library="lib"))) for board in ["few"] + ["many"] * FEWEST]
    groups = dict(list_groups(SimpleNamespace(guesses={"held out": rows})))
    assert {name: len(found) for name, found in groups.items()} == {
        "held out: many": FEWEST, "held out: lib": FEWEST + 1}
