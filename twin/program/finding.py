"""What a program did, found once: emulated in a process of its own, and kept by content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import IO

from calibration.virtual_board.child import end_with_parent
from hwmodels.board.facts import Board
from hwmodels.file_cache import unpack
from hwmodels.files import JsonObject
from hwmodels.processes import command_of, environment
from twin.deployment.kept_counts import load_counts, read_geometry, save_counts
from twin.errors import ProgramError
from twin.program.asking import Wanted, check_wanted
from twin.program.counting import Found
from twin.program.elf import Elf
from twin.program.events import SO_FAR

PATIENCE_S, QUIET_S = 1.0, 30.0
"""Before the first line that says how far an emulation is, and between two at most, in seconds."""

_LOG = logging.getLogger(__name__)


def find_program(elf: Elf, board: Board, wanted: Wanted) -> Found:
    """Return what a program does, emulated only where that is not kept.

    Raises
    ------
    ProgramError
        When it cannot be run to the end of what was asked for.
    """
    found: Found = unpack(_run_once(elf, board, wanted))
    return found


def observe(elf: Elf, board: Board, wanted: Wanted,
            marks: tuple[tuple[int, int, int], ...]) -> JsonObject:
    """Return what a program's layers are made of: `twin.program.observing`.

    Parameters
    ----------
    elf, board, wanted
        As for `find_program`.
    marks : tuple of (int, int, int)
        Number, first address and end of what is known to lie there.

    Raises
    ------
    ProgramError
        When it cannot be run to the end of what was asked for.
    """
    return _run_once(elf, board, replace(wanted, observed=True, marks=marks))


def _run_once(elf: Elf, board: Board, wanted: Wanted) -> JsonObject:
    """Return what the emulator says, or what was kept of it."""
    check_wanted(elf, board, wanted)
    key = hashlib.sha256(repr((elf.sha256, wanted, read_geometry(board))).encode()).hexdigest()
    document = load_counts(key)
    if document is None:
        document = _emulate(elf, board, wanted)
        save_counts(key, document)
    return document


def _emulate(elf: Elf, board: Board, wanted: Wanted) -> JsonObject:
    """Run the emulator where nothing it does can reach this process."""
    with subprocess.Popen(
            command_of("twin.program.child"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(),
            preexec_fn=end_with_parent if sys.platform == "linux" else None) as process:
        last_lines: deque[str] = deque(maxlen=20)
        listener = threading.Thread(target=_listen, args=(process.stderr, elf.path, last_lines))
        listener.start()
        try:
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(pickle.dumps((str(elf.path), board, wanted)))
                process.stdin.close()
            output = process.stdout.read()
        except BaseException:
            process.kill()
            raise
        finally:
            listener.join()
    if process.returncode:
        why = (signal.Signals(-process.returncode).name if process.returncode < 0
               else last_lines[-1] if last_lines else "")
        raise ProgramError(f"{elf.path}: the emulator ended ({why})")
    answer = json.loads(output)
    if "refused" in answer:
        from hwmodels.errors import ToolMissingError

        raise {"ToolMissingError": ToolMissingError}.get(answer["refused"], ProgramError)(
            answer["why"])
    found: JsonObject = answer["found"]
    return found


def _listen(stream: IO[bytes], path: Path, last_lines: deque[str]) -> None:
    """Log how far the emulator is, at ever longer intervals; keep what else it says."""
    due_s, began_s = PATIENCE_S, time.monotonic()
    for line in stream:
        text = line.decode(errors="replace").strip()
        if not text.startswith(SO_FAR):
            last_lines.append(text)
            continue
        passed_s = time.monotonic() - began_s
        if passed_s >= due_s:
            _LOG.info("emulating %s: %s, %.0f s", path, text[len(SO_FAR):], passed_s)
            due_s = min(2 * passed_s, passed_s + QUIET_S)
