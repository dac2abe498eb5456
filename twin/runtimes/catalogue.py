"""`twin runtimes`: the kernel libraries there are, and one in full."""

from __future__ import annotations

from twin import runtimes
from twin.runtimes.runtime import Runtime


def list_runtimes() -> tuple[Runtime, ...]:
    """Read every runtime that is shipped, by name and version."""
    return tuple(runtimes.load_runtime(one) for one in runtimes.list_runtimes())


def show_runtime(name: str) -> Runtime:
    """Read a runtime.

    Returns
    -------
    Runtime
        With every number and its source.
    """
    return runtimes.load_runtime(name)
