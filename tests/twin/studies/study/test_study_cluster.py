"""A study on a Dask cluster of processes here: one is killed, one has other sources."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_patience import HANG_S

import twin
from twin.errors import StudyError
from twin.studies.study.workers import cut_batches

pytest.importorskip("distributed")

FILE = """
schema: 1
name: small
models: [kws, ad]
boards: [nucleo_h7a3zi_q, nucleo_f401re]
"""

KILLED = """
import os
from twin.studies.study import tasks, workers
def planted(plan, task):
    os._exit(9)
workers.compute = planted
"""

SLOW = """
import time
from pathlib import Path
from twin.studies.study import tasks, workers
def planted(plan, task, left=[True]):
    while left and len([*Path({parts!r}).glob("[!.]*")]) < 2:
        time.sleep(0.02)  # Until others have done, and the client has kept, two tasks.
    left.clear()
    return tasks.compute(plan, task)
workers.compute = planted
"""

OTHER = """
from twin.studies.study import workers, tasks
tasks.identify = workers.identify = lambda: "0.0.0+other"
"""


@pytest.fixture
def cluster(tmp_path):
    """Give a function that begins a worker after a preloaded script, and the scheduler's file."""
    root, file, begun = Path(twin.__file__).parents[1], tmp_path / "scheduler.json", []

    def begin(*words: str) -> None:
        begun.append(subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + words[0], "--scheduler-file", file,
             "--no-dashboard", *words[1:]], cwd=root, stderr=subprocess.DEVNULL))

    def work(script: str = "") -> None:
        preload = tmp_path / f"preload{len(begun)}.py"
        preload.write_text(script)
        begin("worker", "--nthreads", "1", "--no-nanny", "--preload", str(preload))

    begin("scheduler", "--host", "127.0.0.1", "--port", "0")
    yield work, file, begun
    for process in begun:
        process.kill()
        process.wait()


def find_address(file: Path, workers: int) -> str:
    import json

    from distributed import Client

    while not file.is_file() or not file.read_text().endswith("}"):
        time.sleep(0.05)
    address = json.loads(file.read_text())["address"]
    with Client(address) as client:
        client.wait_for_workers(workers, timeout=HANG_S)
    return address


def test_a_worker_that_dies_in_the_middle_costs_nothing(cluster, tmp_path) -> None:
    work, file, begun = cluster
    (tmp_path / "small.yaml").write_text(FILE)
    work(), work(KILLED)
    twin.run_study(tmp_path / "small.yaml", tmp_path / "far", cluster=find_address(file, 2))
    twin.run_study(tmp_path / "small.yaml", tmp_path / "here")
    far, here = (tmp_path / name / "results.parquet" for name in ("far", "here"))
    assert far.read_bytes() == here.read_bytes()
    assert 9 in {process.poll() for process in begun}  # It was given work, and died of it.


def test_a_slow_worker_holds_up_none_and_files_are_sent_once(cluster, tmp_path) -> None:
    work, file, _ = cluster
    twin.export_model("kws", tmp_path / "own.tflite")
    (tmp_path / "small.yaml").write_text(FILE.replace("kws", "own.tflite"))
    work(), work(SLOW.format(parts=str(tmp_path / "far/parts")))
    twin.run_study(tmp_path / "small.yaml", tmp_path / "far", cluster=find_address(file, 2))
    twin.run_study(tmp_path / "small.yaml", tmp_path / "here")
    far, here = (tmp_path / name / "results.parquet" for name in ("far", "here"))
    assert far.read_bytes() == here.read_bytes()


def test_many_short_tasks_are_sent_together_and_few_alone() -> None:
    tasks = [*range(1000)]
    for workers, size in ((1000, 1), (50, 2), (2, 16)):
        batches = cut_batches(tasks, workers)
        assert [number for batch in batches for number, _ in batch] == tasks
        assert max(map(len, batches)) == size


def test_a_worker_of_another_version_is_refused(cluster, tmp_path) -> None:
    work, file, _ = cluster
    (tmp_path / "small.yaml").write_text(FILE)
    work(), work(OTHER)
    with pytest.raises(StudyError, match="another version"):
        twin.run_study(tmp_path / "small.yaml", tmp_path / "far", cluster=find_address(file, 2))
    assert not (tmp_path / "far").exists()
