"""Touch by touch: the same counts and the same final state as the fast simulation."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cache_cases import random_cache, random_kernel

from hwmodels.board import policies
from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES, Policy
from hwmodels.cache import touches
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.cache.touches import (
    BYPASS,
    READ_FILL,
    WRITE_FILL,
    visit_touches,
)
from hwmodels.errors import BoardError
from hwmodels.kernels import cache_words


@pytest.mark.parametrize("policy", POLICIES)
def test_touches_sum_to_the_counts(policy, monkeypatch):
    """40 random kernels a policy, in pieces of 64 touches, state carried through two kernels."""
    monkeypatch.setattr(touches, "PIECE", 64)
    for case in range(40):
        rng = random.Random(f"{policy}{case}")
        cache = random_cache(rng, policy)
        fast = slow = new_state(cache)
        for _ in range(2):
            nests, operands = random_kernel(rng, 250)
            cached = [rng.random() < 0.9 for _ in operands]
            pieces: list[list[np.ndarray]] = []

            def keep(piece, pieces=pieces):
                pieces.append([part.copy() for part in (piece.accesses, piece.operands,
                                                        piece.found, piece.left)])

            slow = visit_touches(cache, nests, operands, slow, keep, cached)
            counts, fast = simulate_nests(cache, nests, operands, fast, cached)
            assert np.array_equal(slow.words, fast.words) and slow.owners == fast.owners, case
            accesses, operand, found, left = (np.concatenate(
                [np.zeros(0, np.int64), *(piece[part] for piece in pieces)]) for part in range(4))
            for row, expected in enumerate(counts.operands):
                mine = found[operand == row]
                assert ((mine == READ_FILL).sum(), (mine == WRITE_FILL).sum(),
                        (mine == BYPASS).sum()) == (
                    expected.read_misses, expected.write_misses, expected.write_bypasses), case
            assert (left >= 0).sum() == counts.write_backs()
            assert len(np.unique(accesses)) == counts.total("reads") + counts.total("writes")


def test_a_straddling_access_is_one_access_and_two_touches():
    from hwmodels.kernel import Access, Operand

    cache = Cache(name="c", size_bytes=64, line_bytes=16, ways=2)
    seen = []
    visit_touches(cache, (Access(operand="x", write=False, width_bytes=8, offset_bytes=12),),
                  (Operand(name="x", role="input", memory="sram", address=0, size_bytes=32),),
                  new_state(cache), lambda piece: seen.append((piece.accesses.tolist(),
                                                               piece.lines.tolist())))
    assert seen == [([0, 0], [0, 1])]


def test_a_policy_the_loops_do_not_have_is_refused(monkeypatch):
    """It was counted as pseudo-LRU where hits matter, as pseudo-random where they do not."""
    made = Policy(name="not_recent", number=max(cache_words.CHOSEN) + 1, doc="a line not hit")
    monkeypatch.setattr(policies, "POLICIES", {**POLICIES, "not_recent": made})
    cache = Cache(name="l1d", size_bytes=512, line_bytes=32, ways=4, replacement="not_recent")
    with pytest.raises(BoardError, match=r"l1d.*not_recent.*accepted: CHOSEN of hwmodels"):
        new_state(cache)
