"""The examples run as a reader would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(("words", "said"), [
    (("slower_clock.py",), "   120 "), (("own_network.py",), "data cache twice as large: -"),
    (("search_mobilenet.py", "8"), " meet 64 KiB and 8 mJ; the front:\nwidth  blocks"),
    (("narrow_layers.py", "0.98", "ad"), "steps: layer ")], ids=lambda value: value[0])
def test_an_example_runs(words: tuple[str, ...], said: str) -> None:
    root = EXAMPLES.parent
    ended = subprocess.run([sys.executable, EXAMPLES / words[0], *words[1:]], cwd=root,
                           capture_output=True, text=True, check=True,
                           env={**os.environ, "PYTHONPATH": str(root)})
    assert said in ended.stdout and ended.stderr == ""
