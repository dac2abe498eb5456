"""Values that are lines in loop indices: what is decided of one turn holds in all it is said to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.program.image.read.values import (
    DATA,
    ENDLESS,
    STALE,
    Scope,
    add,
    at,
    lost,
    subtract,
    times,
)

SMALL = st.integers(-40, 40)
MOST = 60
"""Turns looked at where nothing limits them."""


def one_loop(base: int, step: int) -> tuple[Scope, int, object]:
    """A scope with one open loop, its index, and a line in it."""
    scope = Scope()
    index = scope.enter()
    return scope, index, add(base, (0, ((index, step),)) if step else 0)


OPERATIONS = {
    "halve": (lambda scope, v, k: scope.halve(v, k % 6), lambda v, k: v >> k % 6),
    "halve_unsigned": (lambda scope, v, k: scope.halve_unsigned(v, 1 + k % 6),
                       lambda v, k: (v & 0xFFFFFFFF) >> 1 + k % 6),
    "divide": (lambda scope, v, k: scope.divide(v, k), lambda v, k: int(v / k) if k else 0),
    "mask": (lambda scope, v, k: scope.mask(v, k), lambda v, k: v & k),
    "low bits": (lambda scope, v, k: scope.mask(v, 2 ** (k % 5) - 1),
                 lambda v, k: v & 2 ** (k % 5) - 1),
    "narrow": (lambda scope, v, k: scope.narrow(v, 4), lambda v, k: (v + 8) % 16 - 8),
    "multiply": (lambda scope, v, k: scope.multiply(v, add(v, k)), lambda v, k: v * (v + k)),
}
DECISIONS = {
    "is_less": lambda a, b: a < b, "is_equal": lambda a, b: a == b,
    "is_lower": lambda a, b: a % 2 ** 32 < b % 2 ** 32,
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(base=SMALL, step=st.integers(-9, 9), constant=SMALL)
def test_an_operation_is_right_in_every_turn_it_holds_for(name, base, step, constant):
    scope, index, value = one_loop(base, step)
    work, plain = OPERATIONS[name]
    result = work(scope, value, constant)
    turns = min(scope.frames[index].limit, MOST)
    assert turns >= 1
    for turn in range(turns):
        assert at(result, index, turn) == plain(base + step * turn, constant)


@pytest.mark.parametrize("name", DECISIONS)
@given(base=SMALL, step=st.integers(-9, 9), other=SMALL, slope=st.integers(-9, 9))
def test_a_decision_is_the_same_up_to_its_limit_and_another_behind(name, base, step, other, slope):
    scope, index, value = one_loop(base, step)
    right = add(other, (0, ((index, slope),)) if slope else 0)
    decided = getattr(scope, name)(value, right)
    limit = scope.frames[index].limit
    answers = [DECISIONS[name](base + step * i, other + slope * i) for i in range(MOST)]
    assert all(answer == decided for answer in answers[:min(limit, MOST)])
    if name == "is_less" and limit < MOST:
        assert answers[limit] != decided


@given(base=st.integers(0, 300), outer=SMALL, inner=st.integers(-9, -1), turns=st.integers(1, 9))
def test_what_an_inner_loop_asks_an_outer_one_keeps(base, outer, inner, turns):
    """value = base + outer i + inner j is not negative for every j < turns while i is in limit."""
    base += -inner * turns
    scope = Scope()
    first, second = scope.enter(), scope.enter()
    value = add(base, (0, ((first, outer), (second, inner)) if outer else ((second, inner),)))
    assert scope.is_less(-1, value)
    assert scope.frames[second].limit >= turns
    scope.leave(second, turns)
    limit = min(scope.frames[first].limit, MOST)
    signs = [base + outer * i + inner * (turns - 1) >= 0 for i in range(MOST)]
    assert all(signs[:limit]) and (limit == MOST or not signs[limit])


def test_a_reset_forgets_loops_and_limits():
    scope, index, value = one_loop(10, -1)
    marks = scope.mark()
    scope.enter()
    assert scope.is_less(0, value) and scope.frames[index].limit == 10
    scope.reset(marks)
    assert set(scope.frames) == {index} and scope.frames[index].limit == ENDLESS


def test_what_is_not_known_stays_so_and_staleness_wins():
    assert add(3, DATA) is DATA and lost(DATA, STALE) == STALE == add(STALE, DATA)
    assert subtract((5, ((1, 4),)), (2, ((1, 4),))) == 3 and times((5, ((1, 4),)), 0) == 0
    assert Scope().is_less(DATA, 3) is None
    assert add(2 ** 31 - 1, 1) == -2 ** 31
