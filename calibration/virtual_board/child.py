"""Processes that must not outlive this one, and boards that are such processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO

from calibration.collecting.deadline import Deadline, patient
from calibration.errors import LinkError
from hwmodels.errors import reworded
from hwmodels.frozen import frozen

START_S, END_S = 10.0, 2.0

_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent is gone, even by SIGKILL.

    Notes
    -----
    For the child of a `subprocess.Popen`, as its `preexec_fn`. Linux only; elsewhere an emulator
    outlives a parent that is killed.
    """
    if _PRCTL is not None:
        _PRCTL(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
"""Looked up before any fork: a child between fork and exec loads no library."""


@frozen
class ChildBoard:
    """A board that is a process.

    Parameters
    ----------
    name
        As a failure calls it.
    port
        The pty it has opened.
    pty
        Of the line that names the pty.
    """

    name: str
    port: str
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    pty: re.Pattern[bytes]

    def failure(self) -> str | None:
        """Return how the process ended, with what it said besides; None while it runs."""
        if self.process.poll() is None:
            return None
        text = self.pty.sub(b"", _read(self.log)).decode("utf-8", "replace").strip()
        return f"{self.name} ended with code {self.process.returncode}: {text or 'no message'}"


@contextlib.contextmanager
def run_child(name: str, command: Sequence[str], pty: re.Pattern[bytes]) -> Iterator[ChildBoard]:
    """Run a process that opens a pty and says which, for as long as the context lasts.

    Raises
    ------
    LinkError
        When it cannot be run or opens none.
    """
    with tempfile.TemporaryFile() as log:
        with reworded(OSError, LinkError, f"{command[0]}: cannot be run (", ")"):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, preexec_fn=end_with_parent)
        try:
            board = ChildBoard(name=name, port="", process=process, log=log, pty=pty)
            yield replace(board, port=_await_port(board))
        finally:
            process.terminate()
            try:
                process.wait(patient(END_S))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _read(log: IO[bytes]) -> bytes:
    return os.pread(log.fileno(), 1 << 16, 0)  # where the process writes next stays


def _await_port(board: ChildBoard) -> str:
    deadline = Deadline(START_S)
    while not deadline.passed:
        match = board.pty.search(_read(board.log))
        if match:
            return match[1].decode()
        why = board.failure()
        if why is not None:
            raise LinkError(why)
        time.sleep(0.01)
    raise LinkError(f"{board.name} opened no serial line within {deadline.wait_s:g} s")
