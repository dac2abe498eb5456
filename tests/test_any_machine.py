"""No test is decided by how fast a machine is."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from hypothesis import settings
from made_patience import HANG_S

TESTS = Path(__file__).parent
CLOCKS = ("time.time(", "perf_counter(", "process_time(")


def test_examples_and_lines_have_time():
    assert settings.default.deadline is None
    assert float(os.environ["TWIN_PATIENCE"]) >= 100 and HANG_S >= 600


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.stem)
def test_a_limit_is_a_guard_against_hanging(path):
    """A process is waited for `HANG_S`; differences of a clock's readings are not judged."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg in ("timeout", "deadline"):
                    said = ast.unparse(word.value)
                    assert said == "None" or "HANG_S" in said, (path, node.lineno, said)
        if isinstance(node, ast.Assert):
            judged = ast.unparse(node.test)
            assert not any(clock in judged for clock in CLOCKS), (path, node.lineno)
