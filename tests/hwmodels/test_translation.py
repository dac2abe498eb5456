"""Loops written in Python and what is compiled of them do the same."""

import ast
import ctypes
import random

import made_callbacks
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
    ("words[:2]", "rest of an array"),
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


def test_native_code_is_called_and_calls_back():
    """Wide and narrow numbers of both signs, and bytes of this process at odd addresses."""
    held = ctypes.create_string_buffer(b"\0\xf1\xf2\xf3\xf4\xf5\xf6\xf7", 8)
    words = np.full(9, 3, np.int64)
    words[4] = ctypes.addressof(held) + 1
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p)(
        made_callbacks.take.address)
    call(0, 5, words.ctypes.data)
    assert words[0] == 3
    call(-(1 << 40), -9, words.ctypes.data)
    assert words.tolist() == [-(1 << 41), -9, 1 << 40, 10, words[4], 0xF1, 0xF2F1, 0xF4F3F2F1, 3]
    assert made_callbacks.read_host(words[4], 2) == 0xF2F1
    assert made_callbacks.set_through_the_library(words) == 0x0101010101010101
