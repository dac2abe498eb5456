"""Where tasks are computed: in this process, in others of this machine, or on a Dask cluster.

Workers compute and send rows; only the process that began a study writes its folder. Nothing here
listens: processes of this machine are reached by pipes, and a cluster by a connection to its
scheduler on which both sides show a certificate, because what Dask sends is pickled code.

How far a study scales is simulated: many workers fed by one scheduler, read by one client. Figures
are measured: how long tasks are, and what each takes of the scheduler and of the client that keeps
its rows, one after another.
"""

from __future__ import annotations

import contextlib
import re
import ssl
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hwmodels.errors import need_extra
from twin.errors import StudyError, UsageError
from twin.studies.rows import Rows
from twin.studies.study.tasks import Plan, Task, compute, identify

Done = tuple[int, Rows]
"""Number of a task, and its rows."""

Compute = Callable[[Plan, Sequence[Task]], Iterator[Done]]
"""Yields tasks as they are done, in any order."""

TRIES = 3
"""Times the pool of this machine is started again after a worker died."""

MOST_SENT, TURNS = 16, 8
"""Tasks sent at once at most, and batches each worker gets at least: what a scheduler takes for
each is shared, and what a kill loses stays small."""

CREDENTIALS = {"ca-file": "CA_FILE", "client.cert": "CLIENT__CERT", "client.key": "CLIENT__KEY"}
"""What Dask is configured with, and the end of each environment variable that says it."""

_OTHER = "other version"


def compute_here(plan: Plan, tasks: Sequence[Task]) -> Iterator[Done]:
    """Compute tasks one after another in this process."""
    for number, task in enumerate(tasks):
        yield number, compute(plan, task)


def compute_numbered(plan: Plan, number: int, task: Task) -> Done:
    """Compute a task in a worker; its number says which it was."""
    return number, compute(plan, task)


@contextlib.contextmanager
def open_workers(jobs: int = 1, cluster: str | None = None) -> Iterator[Compute]:
    """Give what computes tasks: `jobs` processes of this machine, or a cluster.

    Parameters
    ----------
    jobs
        Processes; 1: this one.
    cluster
        "local:4" is the same as `jobs=4`; "tls://host:8786" is the scheduler of a Dask cluster.

    Raises
    ------
    UsageError
        For a number or an address that is none, or a cluster without certificates.
    StudyError
        For workers with another version of the twin.
    ToolMissingError
        Without joblib or Dask.
    """
    if cluster is not None and jobs != 1:
        raise UsageError("--jobs and --cluster say both where tasks run; accepted: one of them")
    local = re.fullmatch(r"local:([1-9]\d{0,2})", cluster or "")
    if local is not None:
        jobs, cluster = int(local[1]), None
    if not 1 <= jobs <= 1024:
        raise UsageError(f"--jobs {jobs}; accepted: 1 to 1024 processes")
    if cluster is not None:
        with open_cluster(cluster) as client:
            yield lambda plan, tasks: _compute_on(client, plan, tasks)
    elif jobs > 1:
        with need_extra("several processes", "joblib", "study"):
            import joblib
        yield lambda plan, tasks: _compute_beside(joblib, jobs, plan, tasks)
    else:
        yield compute_here


def _compute_beside(joblib: Any, jobs: int, plan: Plan, tasks: Sequence[Task]) -> Iterator[Done]:
    """Compute tasks in processes of this machine; a worker that dies costs what it was at."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = dict(enumerate(tasks))
    for attempt in range(TRIES + 1):
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        try:
            with warnings.catch_warnings():  # One that grew is ended between tasks.
                warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
                for number, rows in pool(joblib.delayed(compute_numbered)(plan, number, task)
                                         for number, task in [*left.items()]):
                    del left[number]
                    yield number, rows
            return
        except BrokenProcessPool as error:
            if attempt == TRIES:
                raise StudyError(f"worker processes died {TRIES + 1} times; what was done is kept, "
                                 "and the same command goes on with it") from error


@contextlib.contextmanager
def open_cluster(address: str) -> Iterator[Any]:
    """Give the client of a cluster all of whose workers have this version of the twin."""
    if address.startswith("tcp://"):
        raise UsageError(f"--cluster {address!r}: tcp:// runs the code of whoever connects; "
                         "accepted: tls://host:8786, with certificates")
    if not re.fullmatch(r"tls://\S+:\d+", address):
        raise UsageError(f"--cluster {address!r}; accepted: local:4, or the address of a Dask "
                         "scheduler such as tls://host:8786")
    with need_extra("clusters", "Dask", "study"):
        distributed: Any = import_module("distributed")
    credentials = _load_credentials(distributed, address)
    with contextlib.ExitStack() as opened:
        try:
            client = opened.enter_context(
                distributed.Client(address, security=credentials, timeout=30))
        except (OSError, TimeoutError) as error:
            raise StudyError(f"{address}: no scheduler answers: {error}") from error
        try:
            found = client.run(identify, on_error="return")
        except Exception as error:  # Of whatever kind a worker without the twin raises.
            raise StudyError(f"{address}: a worker cannot be asked: {error}") from error
        if not found:
            raise StudyError(f"{address}: has no workers; accepted: a scheduler with some")
        for worker, versions in found.items():
            _check(worker, versions)
        yield client


def _load_credentials(distributed: Any, address: str) -> Any:
    """Return the certificates Dask's own configuration names; without them nothing connects."""
    from dask.config import get

    files = []
    for key, variable in CREDENTIALS.items():
        file = get(f"distributed.comm.tls.{key}", None)
        if not file or not Path(file).is_file():
            raise UsageError(f"--cluster {address!r}: DASK_DISTRIBUTED__COMM__TLS__{variable} "
                             f"names no file: {file or 'not set'}; accepted: a PEM file in that "
                             f"variable for each of {', '.join(CREDENTIALS.values())}")
        files.append(file)
    authority, certificate, key = files
    context = ssl.create_default_context()
    try:
        wrong, wanted = authority, "a PEM certificate of the CA"
        context.load_verify_locations(authority)
        wrong, wanted = f"{certificate}, {key}", "a PEM certificate and the key it was made with"
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise UsageError(f"{wrong}: {error}; accepted: {wanted}") from error
    return distributed.Security(require_encryption=True)


def _check(worker: str, versions: object) -> None:
    if versions != identify():
        stated = versions if isinstance(versions, str) else f"{type(versions).__name__}: {versions}"
        raise StudyError(f"worker {worker} has another version of the twin: {stated}; accepted: "
                         f"{identify()}")


def compute_checked(plan: Plan, tasks: Sequence[tuple[int, Task]]) -> list[Done] | tuple[str, str]:
    """Compute some tasks, unless this worker came later and has another version of the twin."""
    if identify() != plan.identity:
        return _OTHER, identify()
    return [(number, compute(plan, task)) for number, task in tasks]


def cut_batches(tasks: Sequence[Task], workers: int) -> list[list[tuple[int, Task]]]:
    """Return tasks with their numbers as they are sent: several at once where there are many.

    Parameters
    ----------
    tasks
        In order.
    workers
        That are there; each gets `TURNS` times work or more, so that a slow one holds up none.
    """
    size = min(MOST_SENT, max(1, len(tasks) // (TURNS * max(1, workers))))
    numbered = [*enumerate(tasks)]
    return [numbered[begin:begin + size] for begin in range(0, len(numbered), size)]


def _compute_on(client: Any, plan: Plan, tasks: Sequence[Task]) -> Iterator[Done]:
    """Compute tasks on a cluster; Dask gives what a lost worker was at to another."""
    distributed: Any = import_module("distributed")

    shared: Any = plan  # Models and boards of files are sent once, not with every task.
    if plan.models or plan.boards:
        shared = client.scatter(plan, broadcast=True, hash=False)
    futures = [client.submit(compute_checked, shared, batch, pure=False, retries=2)
               for batch in cut_batches(tasks, len(client.scheduler_info()["workers"]))]
    for _, result in distributed.as_completed(futures, with_results=True, raise_errors=True):
        if isinstance(result, list):
            yield from result
            continue
        if not isinstance(result, tuple) or result[0] != _OTHER:
            raise StudyError(f"the cluster lost a task ({result}); what was done is kept, and the "
                             "same command goes on with it")
        client.cancel(futures)
        raise StudyError(f"a worker came with another version of the twin: {result[1]}; "
                         f"accepted: {plan.identity}")
