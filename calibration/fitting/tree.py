"""A tree of small depth, with its error where groups of rows are held out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def list_leaves(self, node: int = 0, path: tuple[Split, ...] = (),
                    ) -> Iterator[tuple[int, tuple[Split, ...]]]:
        """Yield each leaf below a node with the splits that lead to it."""
        nodes = self.nodes
        if nodes.children_left[node] == nodes.children_right[node]:
            yield node, path
            return
        for child, above in ((nodes.children_left, False), (nodes.children_right, True)):
            yield from self.list_leaves(int(child[node]), (
                *path, (int(nodes.feature[node]), float(nodes.threshold[node]), above)))


Split = tuple[int, float, bool]
"""A feature, the limit it is held to, and whether what follows is above it."""


def tighten(path: Sequence[Split]) -> list[Split]:
    """Return the splits of a path, a tighter one of a kind in place of the one before."""
    kept: dict[tuple[int, bool], float] = {}
    for feature, limit, above in path:
        kept.pop((feature, above), None)
        kept[feature, above] = limit
    return [(feature, limit, above) for (feature, above), limit in kept.items()]


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
