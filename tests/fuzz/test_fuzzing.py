"""No file and no board's bytes end in anything but a result or a refusal of one line.

`TWIN_FUZZ_CASES` is the number of damaged inputs a door; what fails is kept in `corpus`, to be
committed with what mends it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_doors import DOORS, ROOT, tell_fault
from fuzz_worker import CORPUS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_patience import HANG_S

FEW = 20
CASES = int(os.environ.get("TWIN_FUZZ_CASES", FEW))
PATHS = (ROOT, ROOT / "tests" / "made", ROOT / "tests" / "fuzz")


def keep(door: str, data: bytes) -> Path:
    folder = CORPUS / door
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


SLOW = {"study-part": 2, "series": 6, "study-table": 6, "scenario": 6, "bundle": 6,
        "runtime": 6, "session": 6, "study-head": 6, "probe": 6, "learn": 0, "program-run": 0,
        "options": 3, "energy": 6, "typed": 0, "line-socket": 0, "line-probe": 6, "line-board": 2,
        "line-page": 4}
"""Most cases in a test run of doors that are whole commands; those of 0 are for longer runs."""


def group_doors() -> dict[str, tuple[str, ...]]:
    """Return the doors that share a process and its imports; in longer runs each has its own."""
    if CASES > FEW:
        return {door: (door,) for door in DOORS}
    doors = [one for one in DOORS if SLOW.get(one, CASES)]
    return {"commands": tuple(one for one in doors if one in SLOW),
            "readers": tuple(one for one in doors if one not in SLOW)}


@pytest.mark.parametrize("doors", group_doors().values(), ids=group_doors())
def test_damaged_input_is_read_or_refused(doors, tmp_path):
    counts = [f"{door}:{min(CASES, SLOW.get(door, CASES)) if CASES <= FEW else CASES}"
              for door in doors]
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fuzz_worker.py")), ",".join(counts),
         str(tmp_path)], text=True, capture_output=True,
        timeout=HANG_S * max(1, CASES // 60) * len(doors), check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, PATHS))})
    if result.returncode:
        culprit: object = "a seed"
        if (tmp_path / "current").exists():
            door, _, data = (tmp_path / "current").read_bytes().partition(b"\n")
            culprit = keep(door.decode(), data)
        pytest.fail(f"{doors}: the process ended with {result.returncode} at {culprit}: "
                    + result.stderr[-400:])
    failures = [f"{keep(one['door'], bytes.fromhex(one['input']))}: {one['fault']}"
                for door in json.loads(result.stdout.splitlines()[-1]) for one in door["failures"]]
    assert not failures, "\n".join(failures)


def test_a_worker_that_asks_for_too_much_fails(tmp_path):
    """The guard works: an input that makes two gigabytes is a fault."""
    code = ("import fuzz_doors, fuzz_worker, pathlib, sys; fuzz_worker.limit_memory();"
            "fuzz_doors.DOORS = {'x': fuzz_doors.Door(seeds=list, enter=lambda path: "
            "bytearray(2 << 30))}; print(fuzz_doors.tell_fault('x', b'', "
            "pathlib.Path(sys.argv[1])))")
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], text=True,
                            capture_output=True, timeout=HANG_S, check=True,
                            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, PATHS))})
    assert result.stdout.startswith("MemoryError") or sys.platform != "linux"


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12),
                   st.sampled_from(["80MHz", "1KiB", "int8", "CONV_2D", "1e999", "0x_"]))
KEYS = st.one_of(st.text(max_size=8), st.sampled_from([
    "schema", "name", "layers", "inputs", "clocks", "memories", "caches", "benchmarks", "kind",
    "entries", "op", "out", "inp", "w", "model", "total", "bill"]))
TREES = st.recursive(LEAVES, lambda inner: st.one_of(
    st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)), max_leaves=12)


@pytest.mark.parametrize("door", ["layer-list", "board", "overlay", "plan", "document",
                                  "measurement"])
@settings(max_examples=min(CASES, 2000), suppress_health_check=[
    HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tree=TREES)
def test_any_document_is_read_or_refused(door, tmp_path, tree):
    data = json.dumps(tree).encode()
    assert tell_fault(door, data, tmp_path) is None, data


def test_the_corpus_is_of_doors_there_are():
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= set(DOORS)
