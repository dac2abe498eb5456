"""A buffer waiting for its place, and the place of a tensor that has one of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Buffer:
    """A buffer waiting for its place; grows as aliases and in-place outputs join it."""

    name: str
    tensors: list[int]
    size_bytes: int
    first: int
    last: int
    offset_bytes: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a tensor is that is placed by itself: pool, memory, address."""

    pool: str
    memory: str
    address: int


def align(size_bytes: int, alignment_bytes: int) -> int:
    """Round a size up to a multiple of the alignment."""
    return -(-size_bytes // alignment_bytes) * alignment_bytes
