"""Processes of this Python: they import what this one does, and nothing of where it was started."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TextIO, TypeVar

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


def take_request() -> tuple[bytes, TextIO]:
    """Return the one request of a child process, and where to answer: what is printed is none."""
    asked = sys.stdin.buffer.read()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return asked, answers
