"""Processes of this Python: they import what this one does, and nothing of where it was started."""

from __future__ import annotations

import os
import sys
from pathlib import Path


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
