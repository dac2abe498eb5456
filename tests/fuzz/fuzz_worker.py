"""A process that damages inputs of doors, with a limit on the memory it may take beside its own.

    python fuzz_worker.py DOOR:COUNT,... FOLDER [FIRST]     numbers of cases; the corpus comes first

Prints what failed as JSON. What is tried lies in FOLDER/current before it is: where the process
dies, that is why.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz_doors import DOORS, WORDS, tell_fault
from fuzz_mutator import mutate

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 1 << 30
"""What no input may cost beyond its own size."""

MOST_S = 20.0
"""Of a processor, for one input."""


class TooLongError(BaseException):
    """An input took more than `MOST_S`."""


@contextmanager
def limited_time() -> Iterator[None]:
    """End what takes more than `MOST_S` of a processor, where the system can count that."""
    def end(*_: object) -> None:
        raise TooLongError(f"more than {MOST_S:g} s of a processor")

    if not hasattr(signal, "ITIMER_PROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(extra_bytes: int = MOST_BYTES) -> None:
    """Let this process take so much more than it has, where the system can say so."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    most = pages * resource.getpagesize() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def list_corpus(door: str) -> list[bytes]:
    """Return inputs that failed once."""
    return [path.read_bytes() for path in sorted((CORPUS / door).glob("*"))]


def run(door: str, first: int, count: int, folder: Path) -> list[dict[str, str]]:
    """Try the corpus, whole seeds and so many damaged ones; return what failed."""
    seeds, kept = DOORS[door].seeds(), list_corpus(door)
    damaged = (mutate(random.Random(f"{door} {number}"), [*seeds, *kept], WORDS)
               for number in range(first, first + count))
    failures = []
    for place, data in enumerate((*seeds, *kept, *damaged)):
        (folder / "current").write_bytes(door.encode() + b"\n" + data)
        try:
            with limited_time():
                fault = tell_fault(door, data, folder)
        except TooLongError as error:
            fault = str(error)
        if fault is not None:
            assert place >= len(seeds), f"{door}: a whole input: {fault}"
            failures.append({"door": door, "fault": fault, "input": data.hex()})
    return failures


if __name__ == "__main__":
    where, number = Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    asked = dict(one.split(":") for one in sys.argv[1].split(","))
    for name in asked:  # What is made once is there before memory is limited.
        for whole in DOORS[name].seeds():
            tell_fault(name, whole, where)
    limit_memory()
    print(json.dumps([failure for name, count in asked.items()
                      for failure in run(name, number, int(count), where)]))
