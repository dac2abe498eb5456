"""Windows: the lines of operands, and bits that tell which of them a cache has as they are to be.

Where a hit does not change what leaves next, a touch of a line that is there changes nothing, nor
does a store to one its operand stored to last. Such lines are told by a bit each.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from hwmodels.kernel import Operand

WINDOW_WORDS = 6
"""First line, lines, what makes a line its bit for being there and for being stored to, and from
which line to before which one no other window lies."""

LINES_A_WORD = 32


def find_windows(operands: Sequence[Operand], line_bytes: int) -> list[list[int]]:
    """Return a window for each operand, its lines filled in."""
    firsts = [operand.address // line_bytes for operand in operands]
    return [[first, (operand.address + max(operand.size_bytes, 1) - 1) // line_bytes - first + 1,
             0, 0, 0, 0] for first, operand in zip(firsts, operands, strict=True)]


def count_words(lines: int) -> int:
    """Return the words that hold a bit for each line."""
    return -(-lines // LINES_A_WORD)


def place_windows(words: np.ndarray, word: int) -> None:
    """Say where the bits of each window's lines are.

    Parameters
    ----------
    words : ndarray of int64
        The windows, filled in here but for where they are alone.
    word : int
        Where the bits begin.
    """
    for window in words.reshape(-1, WINDOW_WORDS):
        first, lines = window[:2].tolist()
        for column in (2, 3):
            window[column] = LINES_A_WORD * word - first
            word += count_words(lines)


def find_alone(windows: list[list[int]]) -> list[tuple[int, int]]:
    """Find, of windows' first line and lines, from where to before which line each is alone."""
    found = []
    for number, (first, lines) in enumerate(windows):
        low, high = first, first + lines
        for other, (start, size) in enumerate(windows):
            if other == number:
                continue
            if start <= low:
                low = max(low, start + size)
            else:
                high = min(high, start)
        found.append((low, max(low, high)))
    return found


def share_lines(windows: np.ndarray) -> bool:
    """Whether any two windows have a line in common."""
    ends = sorted((int(window[0]), int(window[0] + window[1])) for window in windows)
    return any(one[1] > other[0] for one, other in itertools.pairwise(ends))
