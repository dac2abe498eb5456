"""The function native callbacks call when Python has to decide: one of a process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

Answer = Callable[[int, int, int], int]
"""Takes the kind of event (a number of `twin.program.kernels.hooks`), an address and a size."""

SO_FAR = "so far: "
"""What a line of the emulating process begins with that says how far it is."""

_LISTENING: list[Answer] = []
_EVENT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def _tell(kind: int, address: int, size: int) -> int:
    return _LISTENING[0](kind, address, size)


_on_event = _EVENT(_tell)


EVENT_ADDRESS = ctypes.cast(_on_event, ctypes.c_void_p).value or 0
"""What native callbacks call."""


def listen(answer: Answer) -> None:
    """Have native callbacks answered from now on."""
    _LISTENING[:] = [answer]


def listener() -> Answer | None:
    """Return who answers native callbacks; None before anybody does."""
    return _LISTENING[0] if _LISTENING else None
