"""A study on a Dask cluster of processes here: one is killed, one has other sources; unknown
clients."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import made_dask
import pytest
from made_patience import HANG_S

import twin
from twin.errors import StudyError, UsageError
from twin.studies.study.workers import CREDENTIALS, cut_batches, open_workers

distributed = pytest.importorskip("distributed")
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes certificates")

FILE = """
schema: 1
name: small
models: [ad]
boards: [nucleo_h7a3zi_q, nucleo_f401re, nucleo_l4r5zi, rpi_pico2]
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


CALLED = """
import asyncio, sys
from pathlib import Path
from distributed.core import rpc
from distributed.protocol.pickle import dumps
from distributed.security import Security

async def call(address, wait_s, **files):
    security = Security(tls_ca_file=files["pem"], tls_client_cert=files["pem"],
                        tls_client_key=files["key"]) if files else Security()
    called = rpc(address, timeout=wait_s, connection_args=security.get_connection_args("client"))
    try:
        await called.run(function=dumps(Path.touch), args=dumps((Path(sys.argv[3]),)),
                         wait=True)
        return "ran"
    except OSError:
        return "refused"
    finally:
        await called.close_rpc()

async def call_all():
    worker, folder = sys.argv[1:3]
    strange = {end: f"{folder}/strange.{end}" for end in ("pem", "key")}
    own = {end: f"{folder}/own.{end}" for end in ("pem", "key")}
    print(await call(worker.replace("tls:", "tcp:"), 1), await call(worker, 1, **strange),
          Path(sys.argv[3]).exists(),
          await call(worker, float(sys.argv[4]), **own), Path(sys.argv[3]).exists())

asyncio.run(call_all())
"""

LISTENING = """
import sys
import psutil
import twin

seen = []

def look(*_):
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    seen.append((len(family) > 2, [found.laddr for one in family for found in
                                   one.net_connections("inet") if found.status == "LISTEN"]))

twin.run_study(sys.argv[1], sys.argv[2], cluster="local:2", on_progress=look)
assert any(several for several, _ in seen), "no processes beside this one"
print([listening for _, listening in seen if listening])
"""


def make_certificate(folder: Path, name: str) -> None:
    """Make a key and a certificate signed by itself, which is the CA of those who have it."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
         "-subj", f"/CN={name}"], check=True, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Give a folder with the scheduler's file and credentials, a function that begins a worker
    after a preloaded script, and what was begun: the scheduler and a worker that works."""
    folder, started = tmp_path_factory.mktemp("cluster"), []
    file = str(folder / "scheduler.json")
    make_certificate(folder, "own")
    own = {end: str(folder / f"own.{end}") for end in ("pem", "key")}

    def begin(*words: str) -> None:
        started.append(made_dask.begin(
            words[0], "--scheduler-file", file, "--tls-ca-file", own["pem"], "--tls-cert",
            own["pem"], "--tls-key", own["key"], "--no-dashboard", *words[1:]))

    def work(name: str, script: str = "") -> None:
        preload = folder / f"{name}.py"
        preload.write_text(script)
        begin("worker", "--nthreads", "1", "--no-nanny", "--preload", str(preload), "--name", name)

    begin("scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0",
          "--dashboard-address", "127.0.0.1:0")
    work("good")
    yield folder, work, started
    for process in started:
        process.kill()
        process.join()


@pytest.fixture
def cluster(running):
    """What runs, for a client that has its credentials."""
    import dask

    with dask.config.set({f"distributed.comm.tls.{key}": str(
            running[0] / f"own.{'key' if 'key' in key else 'pem'}") for key in CREDENTIALS}):
        yield running


def find_workers(folder: Path, *names: str) -> tuple[str, dict[str, str]]:
    """Return the scheduler's address and those of workers by name, once all asked for are there."""
    file = folder / "scheduler.json"
    while not file.is_file() or not file.read_text().endswith("}"):
        time.sleep(0.05)
    address, end = json.loads(file.read_text())["address"], time.monotonic() + HANG_S
    with distributed.Client(address, security=distributed.Security()) as client:
        while True:
            workers = client.scheduler_info(n_workers=-1)["workers"]
            found = {one["name"]: worker for worker, one in workers.items()}
            if set(names) <= set(found):
                return address, found
            assert time.monotonic() < end, found
            time.sleep(0.2)


@needs_openssl
def test_who_has_no_certificate_of_the_cluster_runs_nothing_there(cluster, tmp_path) -> None:
    folder, *_ = cluster
    make_certificate(folder, "strange")
    _, workers = find_workers(folder, "good")
    called = subprocess.run(
        [sys.executable, "-c", CALLED, workers["good"], folder, tmp_path / "written", str(HANG_S)],
        capture_output=True, text=True, check=True)
    assert called.stdout.split() == ["refused", "refused", "False", "ran", "True"], called.stderr


@needs_openssl
def test_a_worker_that_dies_in_the_middle_costs_nothing(cluster, tmp_path) -> None:
    folder, work, started = cluster
    (tmp_path / "small.yaml").write_text(FILE)
    work("killed", KILLED)
    address, _ = find_workers(folder, "good", "killed")
    twin.run_study(tmp_path / "small.yaml", tmp_path / "far", cluster=address)
    twin.run_study(tmp_path / "small.yaml", tmp_path / "here")
    far, here = (tmp_path / name / "results.parquet" for name in ("far", "here"))
    assert far.read_bytes() == here.read_bytes()
    assert 9 in {process.exitcode for process in started}  # It was given work, and died of it.


@needs_openssl
def test_a_slow_worker_holds_up_none_and_files_are_sent_once(cluster, tmp_path) -> None:
    folder, work, _ = cluster
    twin.export_model("ad", tmp_path / "own.tflite")
    (tmp_path / "small.yaml").write_text(FILE.replace("ad]", "own.tflite]"))
    work("slow", SLOW.format(parts=str(tmp_path / "far/parts")))
    address, _ = find_workers(folder, "good", "slow")
    twin.run_study(tmp_path / "small.yaml", tmp_path / "far", cluster=address)
    twin.run_study(tmp_path / "small.yaml", tmp_path / "here")
    far, here = (tmp_path / name / "results.parquet" for name in ("far", "here"))
    assert far.read_bytes() == here.read_bytes()


@needs_openssl
def test_a_worker_of_another_version_is_refused(cluster, tmp_path) -> None:
    folder, work, _ = cluster
    (tmp_path / "small.yaml").write_text(FILE)
    work("other", OTHER)
    with pytest.raises(StudyError, match="another version"):
        twin.run_study(tmp_path / "small.yaml", tmp_path / "far",
                       cluster=find_workers(folder, "good", "other")[0])
    assert not (tmp_path / "far").exists()


def test_many_short_tasks_are_sent_together_and_few_alone() -> None:
    tasks = [*range(1000)]
    for workers, size in ((1000, 1), (50, 2), (2, 16)):
        batches = cut_batches(tasks, workers)
        assert [number for batch in batches for number, _ in batch] == tasks
        assert max(map(len, batches)) == size


@needs_openssl
@pytest.mark.parametrize(("names", "said"), [
    (("junk.pem", "own.pem", "own.key"), r"junk\.pem: .*; accepted: a PEM certificate of the CA"),
    (("own.pem", "own.pem", "strange.key"), r"own\.pem, \S+strange\.key: .*; accepted: .*the key"),
    (("own.pem", "junk.pem", "own.key"), r"junk\.pem, \S+own\.key: .*; accepted: ")])
def test_a_file_that_is_no_credential_is_named(names, said, tmp_path) -> None:
    import dask

    make_certificate(tmp_path, "own")
    make_certificate(tmp_path, "strange")
    (tmp_path / "junk.pem").write_text("junk\n")
    with dask.config.set({f"distributed.comm.tls.{key}": str(tmp_path / name)
                          for key, name in zip(CREDENTIALS, names, strict=True)}), \
            pytest.raises(UsageError, match=said), open_workers(cluster="tls://127.0.0.1:8786"):
        pass


def test_processes_of_this_machine_listen_nowhere(tmp_path) -> None:
    (tmp_path / "small.yaml").write_text(FILE)
    made = subprocess.run([sys.executable, "-c", LISTENING, tmp_path / "small.yaml",
                           tmp_path / "out"], capture_output=True, text=True, check=False)
    assert made.stdout.split() == ["[]"], made.stderr


@pytest.mark.parametrize(("address", "said"), [
    ("tcp://127.0.0.1:8786", "runs the code of whoever connects; accepted: tls://"),
    ("tls://127.0.0.1:8786", "TLS__CA_FILE names no file: not set; accepted: a PEM file"),
    ("ucx://127.0.0.1:8786", "accepted: local:4"),
])
def test_a_cluster_without_certificates_is_not_connected_to(address, said) -> None:
    with pytest.raises(UsageError, match=said), open_workers(cluster=address):
        pass
