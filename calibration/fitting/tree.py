"""A tree of small depth, with its error where groups of rows are held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hwmodels.errors import need_extra
from hwmodels.frozen import frozen


@frozen
class Tree:
    """What was learnt.

    Parameters
    ----------
    nodes
        `children_left`, `children_right`, `feature` and `threshold` by node.
    places : ndarray of int, (rows,)
        Leaf of each row.
    left_out : ndarray of float, (rows,), or None
        Predicted of each row by trees grown without its group; None with one group.
    """

    nodes: Any
    places: np.ndarray
    left_out: np.ndarray | None


def grow_tree(asked: np.ndarray, targets: np.ndarray | list[str], groups: Sequence[str] = (), *,
              depth: int, least: int) -> Tree:
    """Return the tree of rows.

    Parameters
    ----------
    asked : ndarray of float, (rows, features)
        What it may ask.
    targets : ndarray of float, (rows,), or list of str
        What it predicts: a number, or one of a few names.
    groups
        Of the rows, which are held out together; none are without.
    depth, least
        Levels, and fewest rows of a leaf.

    Raises
    ------
    ToolMissingError
        Without scikit-learn.
    """
    with need_extra("guidelines", "scikit-learn", "study"):
        from sklearn.model_selection import GroupKFold, cross_val_predict
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    kind = DecisionTreeClassifier if isinstance(targets, list) else DecisionTreeRegressor
    tree = kind(max_depth=depth, min_samples_leaf=least, random_state=0)
    tree.fit(asked, targets)
    parts = len(set(groups))
    left_out = None if parts < 2 else cross_val_predict(tree, asked, targets, groups=groups,
                                                        cv=GroupKFold(parts))
    return Tree(nodes=tree.tree_, places=tree.apply(asked), left_out=left_out)
