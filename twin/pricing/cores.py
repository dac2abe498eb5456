"""Layers whose output rows two cores share: each its half, one memory, a barrier behind.

References
----------
M. Reiser, S. S. Lavenberg: Mean-Value Analysis of Closed Multichain Queuing Networks. J. ACM
27(2), 1980.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hwmodels.paths.timing import Floats

OWN = ("input", "output", "scratch")
"""What operands are called whose rows each core has for itself."""


def split_lines(cycles: Floats, operands: Sequence[str], layers: NDArray[np.int64],
                shares: Floats, barrier: float) -> Floats:
    """Return what lines take on two cores, times what they take on one.

    Parameters
    ----------
    cycles : ndarray of float, (lines,) or (n, lines)
        On one core; the last lines are the layers' calls, which end with the barrier.
    operands
        Of all lines before those.
    layers : ndarray of int, (lines,)
        Layer of each.
    shares : ndarray of float, (layers,)
        From `twin.pricing.lines.list_shares`.
    barrier
        Core cycles of handing a layer to two tasks and waiting for both.

    Notes
    -----
    Both cores walk the same weights and code, and a line one brings serves the other, who
    has the same cache. Rows of their own meet the other core's: one that computes C and waits S
    for them finds the memory taken in S / (C + S) of its turns, and waits as long again.
    """
    calls, split = len(operands), np.where(shares < 1, 1.0, 0.0)
    own = np.array([one.startswith(OWN) for one in operands])
    of = layers[:calls, None] == np.arange(len(shares))
    work = cycles[..., :calls]
    met = split * ((work * own) @ of) / np.maximum(work @ of, 1e-9)
    called = 1 + split[layers[calls:]] * barrier / np.maximum(cycles[..., calls:], 1e-9)
    return np.concatenate([shares[layers[:calls]] * (1 + own * met[..., layers[:calls]]), called],
                          axis=-1)
