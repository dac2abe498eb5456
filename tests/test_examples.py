"""The examples run as a reader would run them."""

from __future__ import annotations

import json
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


def test_the_notebook_answers_its_question() -> None:
    notebook = json.loads((EXAMPLES / "design_question.ipynb").read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert sum(text.count("\n") + 1 for text in code) <= 15
    ended = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True,
                           check=True, cwd=EXAMPLES.parent)
    first, *rows, last = ended.stdout.splitlines()
    assert first.startswith("33 configurations, ") and len(rows) == 5
    assert all(", met with " in row for row in rows) and last
