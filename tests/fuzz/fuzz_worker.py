"""A process that damages inputs of one door, with a limit on the memory it may take beside its own.

    python fuzz_worker.py DOOR FIRST COUNT FOLDER      numbers of cases; the corpus comes first

Prints what failed as JSON. What is tried lies in FOLDER/current before it is: where the process
dies, that is why.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from fuzz_doors import DOORS, WORDS, tell_fault
from fuzz_mutator import mutate

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 1 << 30
"""What no input may cost beyond its own size."""


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
    seeds = DOORS[door].seeds()
    for seed in seeds:
        assert tell_fault(door, seed, folder) is None, tell_fault(door, seed, folder)
    limit_memory()
    kept = list_corpus(door)
    cases = [*kept, *(mutate(random.Random(f"{door} {number}"), [*seeds, *kept], WORDS)
                      for number in range(first, first + count))]
    failures = []
    for data in cases:
        (folder / "current").write_bytes(data)
        if (fault := tell_fault(door, data, folder)) is not None:
            failures.append({"fault": fault, "input": data.hex()})
    return failures


if __name__ == "__main__":
    name, begin, number_of, where = sys.argv[1:]
    print(json.dumps(run(name, int(begin), int(number_of), Path(where))))
