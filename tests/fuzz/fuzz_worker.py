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
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz_door import Answer
from fuzz_doors import DOORS, WORDS, try_door
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
    # Soft: processes that bound themselves, as emulators do, take their own.
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def list_corpus(door: str) -> list[bytes]:
    """Return inputs that failed once."""
    return [path.read_bytes() for path in sorted((CORPUS / door).glob("*"))]


def peak_bytes() -> int:
    """Return the most this process ever held, where the system can say so."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def damage(door: str, number: int, seeds: Sequence[bytes], kept: Sequence[bytes]) -> bytes:
    """Return a damaged input by its number: of any bytes, or of a form its readers take."""
    dice, reshape = random.Random(f"{door} {number}"), DOORS[door].reshape
    if reshape is not None and number % 2:
        return reshape(dice, dice.choice(seeds))
    return mutate(dice, [*seeds, *kept], WORDS)


def run(door: str, first: int, count: int, folder: Path) -> dict[str, Any]:
    """Try the corpus, whole seeds and so many damaged ones; return what came of them."""
    seeds, kept = DOORS[door].seeds(), list_corpus(door)
    damaged = (damage(door, number, seeds, kept) for number in range(first, first + count))
    failures, refused, worst_s, before_bytes, place = [], 0, 0.0, peak_bytes(), 0
    for place, data in enumerate((*seeds, *kept, *damaged), 1):
        (folder / "current").write_bytes(door.encode() + b"\n" + data)
        started_s = time.process_time()
        try:
            with limited_time():
                answer = try_door(door, data, folder)
        except TooLongError as error:
            answer = Answer(fault=str(error))
        worst_s = max(worst_s, time.process_time() - started_s)
        refused += answer.refused
        if answer.fault is not None:
            assert place > len(seeds), f"{door}: a whole input: {answer.fault}"
            failures.append({"door": door, "fault": answer.fault, "input": data.hex()})
    return {"door": door, "failures": failures, "inputs": place, "refused": refused,
            "accepted": place - refused - len(failures), "worst_s": worst_s,
            "worst_mib": (peak_bytes() - before_bytes) / 2**20}


if __name__ == "__main__":
    from twin.cli import progress

    progress.PATIENCE_S = 1e6  # no line because a machine is slow
    where, number = Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    asked = dict(one.split(":") for one in sys.argv[1].split(","))
    for name in asked:  # What is made once is there before memory is limited.
        for whole in DOORS[name].seeds():
            try_door(name, whole, where)
    limit_memory()
    print(json.dumps([run(name, number, int(count), where) for name, count in asked.items()]))
