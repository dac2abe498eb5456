"""Whole numbers from signed parts that keep their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def round_signed(parts: Sequence[Fraction], total: int) -> list[int]:
    """Round to whole numbers that sum to `total`, by largest remainder; parts may be negative.

    Parameters
    ----------
    parts
        Summing to `total`.
    total
        What the result sums to.
    """
    floors = [math.floor(part) for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda i: (floors[i] - parts[i], i))
    for place in by_remainder[:total - sum(floors)]:
        floors[place] += 1
    return floors
