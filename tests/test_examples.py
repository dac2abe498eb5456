"""The examples run as a reader would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(("name", "said"), [
    ("slower_clock.py", "   120 "), ("own_network.py", "data cache twice as large: -")])
def test_an_example_runs(name: str, said: str) -> None:
    ended = subprocess.run([sys.executable, EXAMPLES / name], cwd=EXAMPLES.parent,
                           capture_output=True, text=True, check=True)
    assert said in ended.stdout and ended.stderr == ""
