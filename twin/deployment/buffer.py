"""A buffer waiting for its place in the arena."""

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


def align(size_bytes: int, alignment_bytes: int) -> int:
    """Round a size up to a multiple of the alignment."""
    return -(-size_bytes // alignment_bytes) * alignment_bytes
