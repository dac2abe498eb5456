"""Numba: loops whose machine code is kept for the next process, away from the package."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def user_folder() -> Path:
    """Folder of kept machine code; NUMBA_CACHE_DIR goes before it."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache, "embedded-twin", "kernels")


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
