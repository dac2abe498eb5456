"""Native code around loops: functions called by their address, and memory of this process."""

import ctypes
from typing import Any

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def call_native(address: Any, first: Any, second: Any, third: Any) -> Any:
    """Call a C function of three arguments, numbers or addresses; return its result.

    Notes
    -----
    Arguments and result are passed as 64 bits. A function that takes fewer ignores the upper ones;
    of one that returns fewer the upper ones are undefined.
    """
    return _CALL(int(address))(int(first), int(second), int(third))


def read_host(address: Any, size: Any) -> Any:
    """Read 1, 2 or 4 bytes at an address of this process, as an unsigned number.

    Notes
    -----
    Compiled, 4 bytes are read whatever the size: they must be there.
    """
    return int.from_bytes(ctypes.string_at(int(address), int(size)), "little")
