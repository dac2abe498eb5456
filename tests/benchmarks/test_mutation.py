"""A few dozen mutants of bills, plans and the collector: that tests kill 95 % is not refuted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.mutation.__main__ import refutes
from benchmarks.mutation.modules import MODULES, ROOT, explain, list_files


def test_a_sample_of_mutants_is_killed():
    """The same 40 of four modules each time; `make bench` runs all, of all modules."""
    pytest.importorskip("mutmut", reason="mutmut is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mutation", "--together",
         *(f"--module={name}" for name in ("counts", "prices", "placement", "collector")),
         "--sample", "40", "--seed", "1", "--children", "2", "--show"],
        cwd=ROOT, text=True, capture_output=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_sample_refutes_what_chance_does_not_explain():
    assert not any(refutes(40, survived) for survived in range(7)) and refutes(40, 7)
    assert not refutes(0, 0) and refutes(1000, 75) and not refutes(1000, 50)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_files_and_tests(name):
    module = MODULES[name]
    assert list_files(module.files) and list_files(module.tests)
    assert all(list_files((pattern,)) for pattern in (*module.files, *module.tests))
    assert all(Path(ROOT, file).is_file() for file in list_files(module.files))


@pytest.mark.parametrize(("changed", "why"), [
    ("-    zip(x, y, strict=True)\n+    zip(x, y, strict=False)", "strict"),
    ("-    zip(x, y, strict=True)\n+    zip(x, y, )", "strict"),
    ("-    zip(x, y, strict=True)\n+    zip(x, strict=True)", None),
    ('-    price("a", "a core cycle")\n+    price("a", "XXa core cycleXX")', "wording"),
    ('-    price("a", "a core cycle")\n+    price("A", "a core cycle")', None),
    ('-    price("derived")\n+    price("XXderivedXX")', None),
    ("-    a = b + c\n+    a = b - c", None)])
def test_only_wording_and_guards_are_explained_away(changed, why):
    found = explain(changed)
    assert found is None if why is None else found is not None and why in found
