"""No test is decided by how fast a machine is."""

from __future__ import annotations

import ast
import os
from pathlib import Path

from hypothesis import settings
from made_patience import HANG_S
from made_sources import walk

TESTS = Path(__file__).parent
CLOCKS = ("time.time(", "perf_counter(", "process_time(")


def test_examples_and_lines_have_time():
    assert settings.default.deadline is None
    assert float(os.environ["TWIN_PATIENCE"]) >= 100 and HANG_S >= 600


def find_clocks(path: Path) -> list[str]:
    """Limits that are no guard and judged clocks of a file."""
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in ("timeout", "deadline", *CLOCKS)):
        return []
    nodes = [*walk(ast.parse(text))]
    limits = [ast.unparse(word.value) for node in nodes if isinstance(node, ast.Call)
              for word in node.keywords if word.arg in ("timeout", "deadline")]
    judged = [ast.unparse(node.test) for node in nodes if isinstance(node, ast.Assert)]
    return [f"{path}: {said}" for said in (
        *(one for one in limits if one != "None" and "HANG_S" not in one),
        *(one for one in judged if any(clock in one for clock in CLOCKS)))]


def test_a_limit_is_a_guard_against_hanging():
    """A process is waited for `HANG_S`; differences of a clock's readings are not judged."""
    assert not [fault for path in TESTS.rglob("*.py") for fault in find_clocks(path)]
