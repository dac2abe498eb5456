"""Numba: loops whose machine code is kept for the next process, away from the package.

What is compiled, and not found kept, is told to the logger `hwmodels.kernels` at level INFO.
"""

import logging
import os
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import caching, event
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.int64]
"""Array of a kernel, of any shape."""
Integer: TypeAlias = Any
"""Whole number of a kernel: int64, uint64 or Python's, which numba tells apart by use and checkers
of types cannot."""
Loop = TypeVar("Loop", bound=Callable[..., Any])

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


class Store(caching.IndexDataCacheFile):
    """Kept machine code of one function, several processes at a time.

    Notes
    -----
    Numba numbers files of code. Of two processes that compile a function for different types at
    a time each would call its file the first, and the index name the other's code. Here a name is
    never given twice, and in the index only when its file is there. At worst an entry is lost, and
    compiled again.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep an entry; those of sources that have changed go.

        Parameters
        ----------
        key : tuple
            Types, machine and byte code of the function.
        data : tuple
            Machine code, as numba packs it.
        """
        parent: Any = self  # Numba has no types.
        if Path(parent._index_path).exists() and not parent._load_index():
            stem = parent._index_name.removesuffix(".nbi")
            for file in Path(parent._cache_path).iterdir():
                if file.name.startswith(f"{stem}.") and file.suffix == ".nbc":
                    file.unlink(missing_ok=True)
        name = parent._data_name(uuid.uuid4().int)
        parent._save_data(name, data)
        parent._save_index({**parent._load_index(), key: name})


def keep(function: Loop) -> Loop:
    """Have a function that numba keeps kept in a `Store`, and return it."""
    cache = getattr(function, "_cache", None)
    if cache is not None:  # None: compilation is switched off
        kept, store = cache._cache_file, cast(Any, Store)
        cache._cache_file = store(cache_path=kept._cache_path, source_stamp=kept._source_stamp,
                                  filename_base=kept._index_name.removesuffix(".nbi"))
    return function


def compile_part(**options: Any) -> Callable[[Loop], Loop]:
    """`numba.njit` with a type; of the parts that a kernel calls.

    Parameters
    ----------
    **options
        Of `numba.njit`.

    Returns
    -------
    callable
        A decorator, which leaves the function's type as it is.
    """
    decorator: Callable[[Loop], Loop] = numba.njit(**options)
    return decorator


def compile_callback(signature: Any, **options: Any) -> Callable[[Callable[..., None]], Any]:
    """`numba.cfunc` with a type.

    Parameters
    ----------
    signature
        Of numba, of what C calls.
    **options
        Of `numba.cfunc`.

    Returns
    -------
    callable
        A decorator; what it makes has an `address`.
    """
    decorator: Callable[[Callable[..., None]], Any] = numba.cfunc(signature, **options)
    return decorator


def compile_kept(**options: Any) -> Callable[[Loop], Loop]:
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
    def decorate(function: Loop) -> Loop:
        config: Any = numba.config
        named = config.CACHE_DIR
        config.CACHE_DIR = named or str(user_folder())
        try:
            return keep(compile_part(cache=True, **options)(function))
        finally:
            config.CACHE_DIR = named

    return decorate
