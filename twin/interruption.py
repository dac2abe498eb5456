"""Whether this process was asked to end: libraries turn that into errors of their own.

Python wraps what is raised while a class is made (`__set_name__`) in a RuntimeError, and libraries
turn what ends their import into an ImportError. So the signal is remembered, and whatever a command
ends with after it is an interruption, not a bug.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""

_asked: list[int] = []

_TAKEN = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))


def note_interrupts() -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt and be remembered, where nobody took them."""
    _asked.clear()
    if threading.current_thread() is not threading.main_thread():
        return
    for number, before in _TAKEN:
        if signal.getsignal(number) is before:
            signal.signal(number, _interrupt)


def leave_interrupts() -> None:
    """Undo `note_interrupts`."""
    for number, before in _TAKEN:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, before)


def was_interrupted() -> bool:
    """Whether the process was asked to end since."""
    return bool(_asked)


def end_interrupted() -> None:
    """Say so and exit."""
    print("interrupted", file=sys.stderr)
    sys.exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
    signal.default_int_handler(number, frame)
