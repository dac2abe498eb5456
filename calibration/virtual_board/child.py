"""Processes that must not outlive this one."""

from __future__ import annotations

import ctypes
import signal
import sys

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
