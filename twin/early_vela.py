"""Vela, loaded while this program still loads: a child process that waits for its arguments.

Half of a compilation of a small network is Python and Vela being loaded. Where the command line
names a board with an Ethos-U, a child of this environment's Python loads both; it compiles
what it is asked, or ends with this process.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

VELA = Path(sys.executable).with_name("vela")
"""Vela of this environment."""

_BOARDS = Path(__file__).parents[1] / "hwmodels" / "boards"
_CODE = ("import json, sys\n"
         "from ethosu.vela.vela import main\n"
         "line = sys.stdin.readline()\n"
         "if line:\n"
         "    sys.argv = json.loads(line)\n"
         "    sys.exit(main())\n")
_started: list[subprocess.Popen[str]] = []


def start_early(words: Sequence[str]) -> None:
    """Start Vela if a word of a command line is a board with an Ethos-U, and Vela is installed."""
    if os.environ.get("TWIN_VELA") or not VELA.is_file() or not any(
            map(_has_ethos, words)):
        return
    import subprocess

    _started.append(subprocess.Popen(
        [sys.executable, "-c", _CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace"))
    atexit.register(_end)


def take_early(command: str) -> subprocess.Popen[str] | None:
    """Return the child that waits, once, if it runs the Vela a command names."""
    if Path(command) == VELA and _started and _started[0].poll() is None:
        return _started.pop()
    return None


def _has_ethos(word: str) -> bool:
    try:
        return word.isidentifier() and "family: ethos-u" in (_BOARDS / f"{word}.yaml").read_text()
    except (OSError, ValueError):
        return False


def _end() -> None:
    for child in _started:
        child.kill()
        child.communicate()
