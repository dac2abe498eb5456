"""Four mutants of counts: drawn, run and judged; what a share of killed ones means."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.mutation.__main__ import bound_below
from benchmarks.mutation.modules import PACKAGES, ROOT, draw_rooms, explain, list_files


def test_a_sample_of_mutants_is_killed():
    """The same four of counts; `make bench` draws over all packages."""
    pytest.importorskip("mutmut", reason="mutmut is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mutation", "--sample", "4", "--seed", "1",
         "--files", "hwmodels/counts.py", "--tests", "tests/hwmodels/test_counts.py",
         "tests/hwmodels/test_simulator.py"],
        cwd=ROOT, text=True, capture_output=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mutant_finds_nothing_of_what_the_run_before_it_found():
    """Though pytest's hooks and mutmut freeze all there is; in a process of its own."""
    code = """
import functools, gc, os
from benchmarks.mutation.worker import forget
from twin.pricing import structure
from twin.deployment import core
kept = functools.lru_cache(object)
before = kept()
structure._known["key"] = core._LOWERED[kept] = 1
gc.freeze()
assert kept() is before
forget()
assert kept() is not before and not structure._known and not core._LOWERED
for name in ("TWIN_COUNTS", "TWIN_FILES"):
    assert os.environ[name].endswith(f"/kept/{os.getpid()}")
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_bound_of_a_share_is_wilsons():
    assert bound_below(300, 270) == pytest.approx(0.8678, abs=1e-4)
    assert bound_below(40, 40) == pytest.approx(40 / (40 + 1.645**2))
    assert all(bound_below(50, killed) < bound_below(50, killed + 1) < 1 for killed in range(50))


def test_every_line_may_be_drawn_and_has_tests_that_judge_it():
    drawn = draw_rooms(40_000, 1)
    assert sum(mutants for _, mutants in drawn.values()) == 40_000
    assert {room.split("/")[0] for room in drawn} == set(PACKAGES)
    files = {file for room, _ in drawn.values() for file in room.files}
    assert len(files) > 0.9 * len(list_files(tuple(f"{name}/**/*.py" for name in PACKAGES)))
    assert all(list_files(room.tests) for room, _ in drawn.values())
    assert draw_rooms(300, 7) == draw_rooms(300, 7) != draw_rooms(300, 8)


@pytest.mark.parametrize(("changed", "why"), [
    ("-    zip(x, y, strict=True)\n+    zip(x, y, strict=False)", "strict"),
    ("-    zip(x, y, strict=True)\n+    zip(x, y, )", "strict"),
    ("-    zip(x, y, strict=True)\n+    zip(x, strict=True)", None),
    ('-    price("a", "a core cycle")\n+    price("a", "XXa core cycleXX")', "wording"),
    ('-    price("a", "a core cycle")\n+    price("A", "a core cycle")', None),
    ('-    price("derived")\n+    price("XXderivedXX")', None),
    ("-    warn(a, stacklevel=2)\n+    warn(a, stacklevel=3)", None),
    ("-    bias = layer.inputs[2] if len(layer.inputs) > 2 else -1\n"
     "+    bias = layer.inputs[2] if len(layer.inputs) > 2 else -2", "by hand"),
    ("-    a = b + c\n+    a = b - c", None)])
def test_only_wording_and_guards_are_explained_away(changed, why):
    found = explain(changed)
    assert found is None if why is None else found is not None and why in found
