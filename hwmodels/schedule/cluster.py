"""Cores that share a banked memory and work side by side up to a barrier.

    time = longest share of the work x (1 + accesses a cycle x wait of an access) + barrier

References
----------
.. [1] Rossi et al., "PULP: A parallel ultra low power platform for next generation IoT
   applications", Hot Chips 27, 2015: cores on one interconnect to word-interleaved banks.
"""

from __future__ import annotations

import math


def wait_of_access(cores: int, banks: int, accesses_per_cycle: float) -> float:
    """Return the cycles an access waits for its bank, on average.

    Parameters
    ----------
    cores
        That access the memory, one access each at a time.
    banks
        Interleaved by word; 0: no access waits for another.
    accesses_per_cycle
        Of one core that never waits, 0 to 1.

    Notes
    -----
    Each of the others asks for the same bank with the share of cycles in which it asks at all, over
    the banks; of two that meet, either goes first. With s the wait and a the accesses a cycle,

        s = (cores - 1) / (2 banks) x (1 + s) / (1 / a + s)

    which is a quadratic in s. Addresses are taken as drawn evenly: walks of equal stride through
    banks of that many words meet more, or never.
    """
    if cores < 2 or banks < 1 or accesses_per_cycle <= 0:
        return 0.0
    half, gap = (cores - 1) / (2 * banks), 1 / accesses_per_cycle
    linear = gap - half
    return (math.sqrt(linear * linear + 4 * half) - linear) / 2


def share_work(items: int, cores: int) -> float:
    """Return the largest share a core gets of items dealt in equal chunks, over an even one."""
    return math.ceil(items / cores) * cores / items if items else 1.0
