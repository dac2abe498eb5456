"""The process a program is emulated in: what it does to the emulator ends with it.

Reads a pickled request of its parent from stdin; writes a JSON document to stdout.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import threading
from typing import TYPE_CHECKING, Any

from hwmodels.errors import TwinError, tell_in_one_line
from hwmodels.files import JsonObject

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.program.asking import Wanted

MEMORY_BYTES = 8 << 30
"""Of addresses: the emulator reserves much that it never touches."""

POLL_S = 0.5
"""Between two lines that say how far it is, in seconds."""


def _say_how_far(ended: threading.Event) -> None:
    """Write down what it is at, again and again."""
    from twin.program.events import SO_FAR, listener

    while not ended.wait(POLL_S):
        machine = getattr(listener(), "__self__", None)
        text = "loading the emulator" if machine is None else tell_progress(machine)
        print(f"{SO_FAR}{text}", file=sys.stderr, flush=True)


def tell_progress(machine: Any) -> str:
    """Return what a machine is at, how many instructions it has run, and where it waits."""
    doing = getattr(machine, "doing", "loading the emulator")
    words, names = getattr(machine, "words", None), getattr(machine, "names", None)
    if words is None or names is None or not words[names.LAST_BLOCK]:
        return str(doing)
    here = int(words[words[names.LAST_BLOCK] + names.ADDRESS])
    waits = machine.peripherals.polling.waiting(here)
    return (f"{doing}, {int(words[names.INSTRUCTIONS]):,} instructions, in "
            f"{machine.elf.name_place(here)}"
            + (f", which waits for register 0x{waits:08x}" if waits is not None else ""))


def run_asked(path: str, board: Board, wanted: Wanted) -> Any:
    """Return what a program does, as JSON can say it."""
    from hwmodels.file_cache import pack
    from twin.program.elf import read_elf
    from twin.program.observing import observe_program
    from twin.program.session import run_program

    elf = read_elf(path)
    if wanted.observed:
        return observe_program(elf, board, wanted)
    return pack(run_program(elf, board, wanted))


def main() -> None:
    """Serve the one request there is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(most, MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    answer: JsonObject
    ended = threading.Event()
    threading.Thread(target=_say_how_far, args=(ended,), daemon=True).start()
    try:
        answer = {"found": run_asked(*pickle.load(sys.stdin.buffer))}
    except TwinError as error:
        answer = {"refused": type(error).__name__, "why": tell_in_one_line(str(error))}
    except MemoryError:
        answer = {"refused": "ProgramError", "why": "the program takes more memory than there is"}
    ended.set()
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
