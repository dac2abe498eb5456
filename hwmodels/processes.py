"""Processes of this Python: they import what this one does, and nothing of where it was started."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from hwmodels.errors import TwinError, tell_in_one_line
from hwmodels.files import DocumentError, JsonObject, parse_json

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")

MOST_PROCESSES = 8
"""That share one computation."""

_held: list[Any] = []
"""In a forked process, what it computes: a function and its items."""


def map_forked(function: Callable[[_Item], _Made], items: Sequence[_Item]) -> Iterator[_Made]:
    """Yield what a function returns of each item, in order, computed by a process for each core.

    Processes are forked: they have what this one has read and send results only. Where the system
    has one core, forks nothing or this process has threads, all are computed here.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if min(cores, len(items)) < 2 or threading.active_count() > 1:
        yield from map(function, items)
        return
    pool = ProcessPoolExecutor(min(cores, len(items), MOST_PROCESSES),
                               mp_context=multiprocessing.get_context("fork"),
                               initializer=_hold, initargs=(function, items))
    try:
        yield from pool.map(_compute_held, range(len(items)))
    except KeyboardInterrupt:
        for process in multiprocessing.active_children():
            process.terminate()  # They wait for nothing: what is done of an item is lost.
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _hold(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The process that forked this one ends it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _held[:] = function, items


def _compute_held(number: int) -> Any:
    function, items = _held
    return function(items[number])


def command_of(module: str) -> tuple[str, ...]:
    """Return the command that runs a module; the folder it is started in is not searched."""
    return (sys.executable, "-P", "-m", module)


def environment() -> dict[str, str]:
    """Return the environment in which such a command finds this project's packages."""
    paths = (str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def limit_memory(extra_bytes: int) -> None:
    """Let this process take so much more than it has, where the system can say so."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    except (ImportError, OSError):
        return
    most = pages * resource.getpagesize() + extra_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def ask(module: str, asked: Any, late_s: float) -> JsonObject:
    """Return what a process of a module that calls `serve` answers to the one request there is.

    What is read there does nothing to this process: where it ends or is late, that is a refusal.

    Returns
    -------
    mapping
        "refused": name of the error, "" where it is none of this project's, and "why".
    """
    try:
        done = subprocess.run(command_of(module), capture_output=True, check=False,
                              input=pickle.dumps(asked), env=environment(), timeout=late_s)
        answer: JsonObject = dict(parse_json(done.stdout.decode()))
    except subprocess.TimeoutExpired:
        return {"refused": "", "why": f"took more than {late_s:,.0f} s"}
    except (DocumentError, TypeError, ValueError):
        return {"refused": "", "why": f"ended over it (exit code {done.returncode})"}
    return answer


def serve(answer: Callable[[Any], JsonObject], extra_bytes: int) -> None:
    """Answer the request of `ask`, on stdin, as JSON on stdout; what else is printed is none.

    Parameters
    ----------
    extra_bytes
        It may take beside its own and ten times what it is given.
    """
    asked, answers = sys.stdin.buffer.read(), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        limit_memory(extra_bytes + 10 * len(asked))
        made = answer(pickle.loads(asked))
    except TwinError as error:
        made = {"refused": type(error).__name__, "why": str(error)}
    except MemoryError:
        made = {"refused": "", "why": "takes more memory than is given to it"}
    except Exception as error:  # whatever code of others raises over a file
        made = {"refused": "", "why": tell_in_one_line(
            f"does not run it: {type(error).__name__}: {error}")}
    json.dump(made, answers)
    answers.flush()
