"""Loops written in Python and what is compiled of them do the same."""

import ctypes
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import made_callbacks
import made_kernels
import numpy as np
import pytest

from hwmodels.kernels import compiled
from hwmodels.kernels.library import Library

LOOPS = [one for one in vars(made_kernels).values() if isinstance(one, compiled.Kernel)]
pytestmark = pytest.mark.skipif(
    compiled.INTERPRETED or not find_spec("numba") or not find_spec("ziglang"),
    reason="nothing can be compiled")
BUILD = """
import os, sys
os.environ["NUMBA_OPT"] = "0"
from importlib import import_module
from pathlib import Path
from hwmodels.kernels import build, library
modules = [import_module(name) for name in sys.argv[2:]]
try:
    print(build.build(build.list_loops(modules), modules, [library.name_platform()],
                      Path(sys.argv[1]))[0])
except build.BuildError as error:
    sys.exit(str(error))
"""


END = "### refused: "
BUILD_EACH = BUILD.partition("modules = ")[0] + f"""
for name in sys.argv[2:]:
    module = import_module(name)
    try:
        build.build(build.list_loops([module]), [module], [library.name_platform()],
                    Path(sys.argv[1]))
    except build.BuildError as error:
        print({END!r}, error, file=sys.stderr)
"""


def build(folder, *modules, paths=(), code=BUILD):
    """Compile modules of loops in a process of its own."""
    paths = (*paths, Path(made_kernels.__file__).parent, Path(compiled.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", code, str(folder), *modules], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    ended = build(tmp_path_factory.mktemp("made"), "made_kernels", "made_callbacks")
    assert ended.returncode == 0, ended.stderr[-2000:]
    return Library(Path(ended.stdout.strip()))


def put(loop, library):
    """Return a loop of a library, or of none."""
    found = type(loop)(loop.module, loop.name)
    found.py_func, found.native, found.library = loop.py_func, loop.native, library
    return found


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_compiled_equals_interpreted(made, loop):
    draw, fast = random.Random(1), put(loop, made)
    for _ in range(200):
        words = np.array([draw.choice((0, 1, -1, draw.randrange(-99, 99), draw.randrange(1 << 40)))
                          for _ in range(12)], np.int64)
        table = np.array([[draw.randrange(-9, 9) for _ in range(4)] for _ in range(3)], np.int64)
        number = draw.randrange(-50, 50) or 1
        left, right = (words.copy(), table.copy()), (words.copy(), table.copy())
        assert fast(*left, number) == loop.py_func(*right, number)
        assert all(np.array_equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "interpreted"])
def test_native_code_is_called_and_calls_back(made, plain):
    """Wide and narrow numbers of both signs, and bytes of this process at odd addresses."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
    add = kind(lambda first, second, third: first + second + third)
    held = ctypes.create_string_buffer(b"\0\xf1\xf2\xf3\xf4\xf5\xf6\xf7", 8)
    words = np.full(9, 3, np.int64)
    words[3] = ctypes.cast(add, ctypes.c_void_p).value
    words[4] = ctypes.addressof(held) + 1
    take = put(made_callbacks.take, None if plain else made)
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p)(take.address)
    call(0, 5, words.ctypes.data)
    assert words[0] == 3
    call(-(1 << 40), -9, words.ctypes.data)
    assert words.tolist() == [-(1 << 41), -9, -(1 << 40) - 4, words[3], words[4], 0xF1, 0xF2F1,
                              0xF4F3F2F1, 3]


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "interpreted"])
def test_what_native_code_changes_is_read_again(made, plain):
    words = np.zeros(9, np.int64)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
    words[3] = ctypes.cast(ctypes.memset, ctypes.c_void_p).value
    words[4] = words.ctypes.data
    assert kind(int(words[3]))(int(words[4]), 2, 8) and words[0] == 0x0202020202020202
    assert put(made_callbacks.set_natively, None if plain else made)(words) == 0x0101010101010101


REFUSED = {
    "return words[0] < np.uint64(number)": "mixed: int64 meets uint64",
    "assert number > 0": "mixed: need", "return len(str(number))": "mixed"}


def test_what_is_no_loop_of_whole_numbers_is_refused_by_name(tmp_path):
    for place, line in enumerate(REFUSED):
        (tmp_path / f"made_mixed{place}.py").write_text(
            "import numpy as np\n"
            "from hwmodels.kernels.compiled import Integer, Words, compile_kept\n\n\n"
            "@compile_kept\ndef mixed(words: Words, number: Integer) -> Integer:\n"
            f"    {line}\n    return 1\n")
    ended = build(tmp_path, *(f"made_mixed{place}" for place in range(len(REFUSED))),
                  paths=[tmp_path], code=BUILD_EACH)
    refusals = ended.stderr.split(END)[1:]
    assert len(refusals) == len(REFUSED), ended.stderr
    for said, refusal in zip(REFUSED.values(), refusals, strict=True):
        assert said in refusal, refusal[-600:]
