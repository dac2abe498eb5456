"""Loops written in Python and what is compiled of them do the same."""

import ast
import random

import made_kernels
import numpy as np
import pytest

from hwmodels.kernels import compiled, translation
from hwmodels.kernels.compiled import PARTS, kept_loops
from hwmodels.kernels.expressions import UntranslatableError

LOOPS = [one for one in vars(made_kernels).values() if isinstance(one, compiled.Kernel)]
pytestmark = pytest.mark.skipif(compiled.INTERPRETED, reason="nothing is compiled")


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_compiled_equals_interpreted(loop):
    draw = random.Random(1)
    for _ in range(200):
        words = np.array([draw.choice((0, 1, -1, draw.randrange(-99, 99), draw.randrange(1 << 40)))
                          for _ in range(12)], np.int64)
        table = np.array([[draw.randrange(-9, 9) for _ in range(4)] for _ in range(3)], np.int64)
        number = draw.randrange(-50, 50) or 1
        left, right = (words.copy(), table.copy()), (words.copy(), table.copy())
        assert loop(*left, number) == loop.py_func(*right, number)
        assert all(np.array_equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize("loop", kept_loops(), ids=lambda loop: loop.name)
def test_each_part_is_translated_for_one_set_of_types(loop):
    unit = translation.Unit(PARTS)
    unit.translate(loop.py_func, compiled.kinds_of(loop.py_func), "")
    functions = [function for function, _ in unit.known]
    assert len(functions) == len(set(functions))


@pytest.mark.parametrize("text, said", [
    ("number = words[0] / 2", "operator is not known"), ("number = [1]", "expression is not known"),
    ("with words: pass", "statement is not known"), ("number = other(1)", "only compiled"),
    ("number = words[0, 1]", "as many dimensions"), ("number = unknown", "is not a whole number"),
    ("for one in words: pass", "only ranges"), ("number, words[0] = 1, 2, 3", "as many values"),
    ("number = 1\n    number = np.uint64(words[0])", "number is i, and u here")])
def test_what_is_not_known_is_refused_with_its_line(monkeypatch, text, said):
    source = f"def refused(words, number):\n    {text}\n"
    node = ast.parse(source).body[0]
    monkeypatch.setattr("hwmodels.kernels.expressions.functions_of", lambda _: {"refused": node})

    def refused(words, number):
        return words, number

    with pytest.raises(UntranslatableError, match=rf"test_translation.py:[23]: .*{said}"):
        translation.translate(refused, ("i1", "i"), {})
