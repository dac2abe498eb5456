"""The process uploads are read and states predicted in: what one of them does ends with it.

Frames of JSON come over stdin and go over stdout.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hwmodels.files import parse_json
from hwmodels.processes import limit_memory
from twin.api.live.frames import read_frame, write_frame
from twin.api.live.reading import Reader


def main() -> None:
    """Serve until the parent closes its end."""
    folder, memory_bytes, reads_only = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "read"
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Whatever a library prints is no answer.
    engine = Reader(folder)
    if not reads_only:
        from twin.api.live.engine import Engine

        engine = Engine(folder)
    limit_memory(memory_bytes)
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        try:
            answer = engine.answer(parse_json(frame.decode()))
        except Exception as error:  # A bug of ours: reported, and the next request is served.
            answer = {"bug": f"{type(error).__name__}: {error}"}
        write_frame(answers, json.dumps(answer, allow_nan=False).encode())


if __name__ == "__main__":
    main()
