"""A tree of rows whose splits, leaves and errors of left-out groups are known by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from calibration.fitting.tree import grow_tree, tighten
from hwmodels.errors import ToolMissingError

# The target jumps at 2.5 of the second feature, then, above it, at 30 of the first.
ASKED = np.array([[10.0, 1], [20, 2], [40, 1], [10, 3], [20, 4], [40, 3], [50, 4]])
TARGETS = np.array([1.0, 1, 1, 5, 5, 9, 9])


@pytest.fixture(autouse=True)
def _needs_scikit_learn():
    pytest.importorskip("sklearn", reason="needs the study extra")


def test_leaves_are_reached_by_the_splits_above_them():
    tree = grow_tree(ASKED, TARGETS, depth=2, least=1)
    leaves = dict(tree.list_leaves())
    assert [leaves[place] for place in dict.fromkeys(tree.places.tolist())] == [
        ((1, 2.5, False),), ((1, 2.5, True), (0, 30.0, False)), ((1, 2.5, True), (0, 30.0, True))]
    assert tree.places.tolist() == [*[tree.places[0]] * 3, *[tree.places[3]] * 2,
                                    *[tree.places[5]] * 2]
    assert {float(tree.nodes.value[place].item()) for place in leaves} == {1.0, 5.0, 9.0}
    assert tree.left_out is None


@pytest.mark.parametrize(("settings", "leaves"), [
    ({"depth": 1, "least": 1}, 2), ({"depth": 2, "least": 1}, 3), ({"depth": 9, "least": 3}, 2),
    ({"depth": 9, "least": 4}, 1)])
def test_depth_and_fewest_rows_bound_a_tree(settings, leaves):
    assert len(list(grow_tree(ASKED, TARGETS, **settings).list_leaves())) == leaves


def test_a_group_is_predicted_by_the_others_alone():
    """Trees of one leaf: what is predicted is the mean of the other two groups' rows."""
    groups = ["a", "a", "b", "b", "b", "c", "c"]
    tree = grow_tree(ASKED, TARGETS, groups, depth=1, least=7)
    of_a, of_b, of_c = 29 / 5, 20 / 4, 13 / 5
    assert tree.left_out == pytest.approx([of_a, of_a, of_b, of_b, of_b, of_c, of_c])
    assert grow_tree(ASKED, TARGETS, ["a"] * 7, depth=1, least=1).left_out is None


def test_names_are_told_apart_as_numbers_are():
    names = ["slow", "slow", "slow", "even", "even", "fast", "fast"]
    tree = grow_tree(ASKED, names, ["a", "b", "a", "b", "a", "a", "b"], depth=2, least=1)
    assert len({*zip(tree.places.tolist(), names, strict=True)}) == 3
    assert {*tree.left_out} <= {*names}


def test_of_splits_of_one_kind_the_last_is_kept_in_its_place():
    path = [(0, 8.0, False), (1, 3.0, True), (0, 5.0, False), (0, 2.0, True)]
    assert tighten(path) == [(1, 3.0, True), (0, 5.0, False), (0, 2.0, True)]


def test_without_scikit_learn_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(ToolMissingError, match=r"guidelines need scikit-learn, which the extra "
                                               r"'study' installs: pip install 'embedded-twin\["):
        grow_tree(ASKED, TARGETS, depth=1, least=1)
