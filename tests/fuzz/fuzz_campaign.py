"""Many damaged inputs of every door, and a table of what came of them.

    PYTHONPATH=.:tests/made python tests/fuzz/fuzz_campaign.py FIRST COUNT [DOOR ...]

Each door is a process of its own, one after the other; it ends early where its share of time does.
What fails is kept in the corpus, as `make fuzz` keeps it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz_doors import DOORS, ROOT
from fuzz_worker import CORPUS

HEAD = "| door | inputs | refused | accepted | worst s | worst MiB | finds |"
PATHS = (ROOT, ROOT / "tests" / "made", ROOT / "tests" / "fuzz")


def attack(door: str, first: int, count: int) -> str:
    """Return a door's row of the table."""
    from test_fuzzing import keep

    with tempfile.TemporaryDirectory(prefix="attack.") as folder:
        result = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("fuzz_worker.py")), f"{door}:{count}",
             folder, str(first)], text=True, capture_output=True, check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, PATHS))})
        if result.returncode:
            _, _, data = (Path(folder) / "current").read_bytes().partition(b"\n")
            return (f"| {door} | the process ended with {result.returncode} at "
                    f"{keep(door, data).relative_to(CORPUS)}: {result.stderr[-300:]!r} |")
    [tally] = json.loads(result.stdout.splitlines()[-1])
    kept = sorted({f"{keep(door, bytes.fromhex(one['input'])).name} {one['fault']}"
                   for one in tally["failures"]})
    return "\n".join([
        f"| {door} | {tally['inputs']:,} | {tally['refused']:,} | {tally['accepted']:,} "
        f"| {tally['worst_s']:.2f} | {tally['worst_mib']:.0f} | {len(kept)} |", *kept])


if __name__ == "__main__":
    print(HEAD)
    for name in sys.argv[3:] or DOORS:
        print(attack(name, int(sys.argv[1]), int(sys.argv[2])), flush=True)
