"""Frames between the server and its workers: four bytes of length, then JSON."""

from __future__ import annotations

import struct
from typing import IO

LARGEST_FRAME = 1 << 26
"""Bytes; a bill of thousands of layers takes two million."""


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next frame; None where there is none, or it is not a frame."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack("<I", head)
    if size > LARGEST_FRAME:
        return None
    frame = stream.read(size)
    return frame if len(frame) == size else None


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """Write a frame."""
    stream.write(struct.pack("<I", len(content)) + content)
    stream.flush()
