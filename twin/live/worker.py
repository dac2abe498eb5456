"""The process uploads are read and states predicted in: what one of them does ends with it.

Frames come over stdin and go over stdout: four bytes of length, then JSON.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from typing import IO

from hwmodels.files import parse_json

LARGEST_FRAME = 1 << 26
"""Bytes; a bill of thousands of layers takes two million."""


def main() -> None:
    """Serve until the parent closes its end."""
    folder, memory_bytes = Path(sys.argv[1]), int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Whatever a library prints is no answer.
    from twin.live.engine import Engine

    engine = Engine(folder)
    limit_memory(memory_bytes)
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        try:
            answer = engine.answer(parse_json(frame.decode()))
        except Exception as error:  # A bug of ours: told, and the next request is served.
            answer = {"bug": f"{type(error).__name__}: {error}"}
        write_frame(answers, json.dumps(answer, allow_nan=False).encode())


def limit_memory(extra_bytes: int) -> None:
    """Let this process take so much more than it has, where the system can say so."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    except (ImportError, OSError):
        return
    most = pages * resource.getpagesize() + extra_bytes
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next frame; None where there is none, or it is no frame."""
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


if __name__ == "__main__":
    main()
