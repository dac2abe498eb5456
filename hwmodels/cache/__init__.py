"""Caches: set-associative ones, in one or two levels; here what accesses met in one."""

from __future__ import annotations

from dataclasses import field

from hwmodels.frozen import frozen


@frozen
class OperandCounts:
    """What one operand's accesses met.

    Parameters
    ----------
    operand, role, memory
        As the kernel names them.
    cached
        Whether the cache was looked up; if not, touches and misses are zero.
    read_bytes, write_bytes
        Bytes they move.
    read_touches, write_touches
        Lines looked up: one or more per access.
    read_misses, write_misses
        Lines filled for a load, for a store.
    write_bypasses
        Store touches that missed and did not allocate.
    write_throughs
        Store touches passed on to memory: bypasses, and under write-through all of them.
    """

    operand: str
    role: str
    memory: str
    cached: bool
    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    read_touches: int = 0
    write_touches: int = 0
    read_misses: int = 0
    write_misses: int = 0
    write_bypasses: int = 0
    write_throughs: int = 0


@frozen
class OwnerCounts:
    """Lines that left the cache, by the memory and role of who filled or last wrote them."""

    memory: str
    role: str
    evictions: int
    write_backs: int


@frozen
class AccessCounts:
    """What a kernel's accesses did in one cache.

    Parameters
    ----------
    operands
        In the order of the kernel's operands.
    owners
        Those with an eviction; owners may come from earlier kernels.
    simulated_touches
        Look-ups the simulation needed to make: its cost, no property of the kernel; not compared.
    """

    operands: tuple[OperandCounts, ...]
    owners: tuple[OwnerCounts, ...] = ()
    simulated_touches: int = field(default=0, compare=False, repr=False)

    def total(self, field: str) -> int:
        """Sum a field of `OperandCounts` over the operands."""
        return sum(getattr(operand, field) for operand in self.operands)

    @property
    def evictions(self) -> int:
        """Valid lines that had to leave."""
        return sum(owner.evictions for owner in self.owners)

    def write_backs(self, memory: str | None = None) -> int:
        """Dirty lines written back, to one memory or to all."""
        return sum(owner.write_backs for owner in self.owners if memory in (None, owner.memory))
