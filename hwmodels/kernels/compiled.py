"""Numba: loops whose machine code is kept for the next process, away from the package.

What is compiled, and not found kept, is told to the logger `hwmodels.kernels` at level INFO.
"""

import logging
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

TOLD = "compiling simulation kernels, once: {name}"


class Teller(event.Listener):
    """Tells which of this package's loops is compiled, not those it is made of."""

    def __init__(self) -> None:
        self.depth = 0

    def on_start(self, event: Any) -> None:
        """Begin to compile a function, or one that it calls."""
        function = event.data["dispatcher"].py_func
        if not self.depth and function.__module__.startswith(__package__):
            logging.getLogger(__package__).info(TOLD.format(name=function.__name__))
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """End it."""
        self.depth -= 1


event.register("numba:compile", Teller())


def user_folder() -> Path:
    """Folder of kept machine code; NUMBA_CACHE_DIR goes before it."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache, "embedded-twin", "kernels")


def fingerprint_sources() -> int:
    """Checksum of the modules of the cache simulation.

    Numba's store of compiled code asks whether the file of an entry changed, and not those it
    imports: an entry that imports them has this in its closure.
    """
    return zlib.crc32(b"".join(path.read_bytes() for path in sorted(
        Path(__file__).parent.glob("cache_*.py"))))


def compile_kept(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` that keeps what it compiles.

    Parameters
    ----------
    **options
        Of `numba.njit`.

    Returns
    -------
    callable
        A decorator.

    Notes
    -----
    Numba would keep it beside the sources. An installer takes away only what it brought, so the
    next installation would meet a package of nothing but a cache, and could load that one.
    """
    def decorate(function: Callable[..., Any]) -> Any:
        config: Any = numba.config
        named = config.CACHE_DIR
        config.CACHE_DIR = named or str(user_folder())
        try:
            return numba.njit(cache=True, **options)(function)
        finally:
            config.CACHE_DIR = named

    return decorate
