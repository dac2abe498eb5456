"""What a block copy of the C library executes, by the lengths its loops take.

References
----------
newlib, newlib/libc/machine/arm/memcpy: 64 bytes a turn, then 16, then words, then bytes.
"""

from __future__ import annotations

from collections import Counter


def count_copies(size_bytes: int, times: float) -> Counter[str]:
    """Return the terms of copying so many bytes so many times.

    Parameters
    ----------
    size_bytes : int
        Of one copy.
    times : float
        Copies.
    """
    left = size_bytes % 16
    counted = {"copy": 1, "copied 64": size_bytes // 64, "copied 16": size_bytes % 64 // 16,
               "copied word": left // 4, "copied byte": left % 4,
               "copied loose": size_bytes if size_bytes % 4 else 0}
    return Counter({name: count * times for name, count in counted.items() if count})
