"""Numba: loops whose machine code is kept for the next process, away from the package.

What is compiled, and not found kept, is told to the logger `hwmodels.kernels` at level INFO.
"""

import contextlib
import functools
import glob
import hashlib
import hmac
import inspect
import logging
import os
import pickle
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import caching, compiler, event, serialize
from numpy.typing import NDArray

SEAL_BYTES = SECRET_BYTES = 32

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
    """Folder of kept machine code: TWIN_KERNELS, or one of the user's cache."""
    named = os.environ.get("TWIN_KERNELS")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(cache, "embedded-twin", "kernels")


@functools.cache
def fingerprint_sources(folder: Path) -> str:
    """Hash of a folder's modules: a loop is made of others, so a change of one is one of all."""
    hashed = hashlib.sha256(str(folder).encode())
    for path in sorted(folder.glob("*.py")):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


class Store:
    """Kept machine code, of one user alone: loading it is running it.

    Parameters
    ----------
    folder : Path
        Made where it is missing. One that others can write is not used.

    Notes
    -----
    Each entry begins with a keyed hash of its name and content. The key lies in the folder, made at
    random: a damaged entry, or one that somebody put there who cannot read the folder, is not
    loaded. Nothing here fails: what cannot be kept or loaded is compiled again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @functools.cached_property
    def key(self) -> bytes | None:
        """Secret of the folder; None where nothing can be kept safely."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_own(os.stat(self.folder)):
                return None
            path = self.folder / "key"
            if not path.exists():
                write_private(path, secrets.token_bytes(SECRET_BYTES))
            found = path.read_bytes() if _is_own(os.lstat(path)) else b""
            if len(found) != SECRET_BYTES:  # damaged; what it guarded is of no more use
                path.unlink()
                return None
            return found
        except OSError:
            return None

    def load(self, name: str) -> bytes | None:
        """Return an entry; None where there is none that this user kept as it is."""
        try:
            content = (self.folder / name).read_bytes() if self.key else b""
        except OSError:
            return None
        seal, entry = content[:SEAL_BYTES], content[SEAL_BYTES:]
        return entry if entry and hmac.compare_digest(seal, self._seal(name, entry)) else None

    def save(self, name: str, entry: bytes) -> None:
        """Keep an entry; those of its function's older sources go.

        Parameters
        ----------
        name : str
            Function, sources and the rest, with dots between them.
        entry : bytes
            Not empty.
        """
        function, sources, _ = name.rsplit(".", 2)
        if not self.key:
            return
        with contextlib.suppress(OSError):
            for path in self.folder.glob(f"{glob.escape(function)}.*.*"):
                if path.name.count(".") == name.count(".") and \
                        path.name.rsplit(".", 2)[1] != sources:
                    path.unlink()
            write_private(self.folder / name, self._seal(name, entry) + entry)

    def _seal(self, name: str, entry: bytes) -> bytes:
        hashed = hashlib.blake2b(name.encode(), key=self.key or b"", digest_size=SEAL_BYTES)
        hashed.update(entry)
        return hashed.digest()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its user alone reads, whole or not at all."""
    from hwmodels.files import write_whole

    write_whole(path, content, mode=0o600)


def _is_own(found: os.stat_result) -> bool:
    """Whether it is this user's, and nobody else writes it."""
    return not hasattr(os, "getuid") or (
        found.st_uid == os.getuid() and not found.st_mode & 0o022)


class Kept(caching.Cache):
    """What numba asks for a function's machine code, and gives it to."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func, self._name = function, repr(function)
        self.source = Path(inspect.getfile(function)).parent
        self._enabled = True

    @functools.cached_property
    def store(self) -> Store | None:
        """None for a user without a home."""
        place = hashlib.sha256(str(self.source).encode()).hexdigest()[:16]
        try:
            return Store(user_folder() / f"{self.source.name}-{place}")
        except RuntimeError:
            return None

    @property
    def cache_path(self) -> str:
        """Folder of the entries."""
        return str(self.store.folder) if self.store else ""

    def flush(self) -> None:
        """Keep what is there: entries are found by content."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code of a function for types; None where it is not kept."""
        target_context.refresh()
        entry = self.store.load(self._entry(sig, target_context.codegen())) \
            if self.store and self._enabled else None
        if entry is None:
            return None
        try:
            rebuild: Any = compiler.CompileResult
            return rebuild._rebuild(target_context, *pickle.loads(entry))
        except Exception:  # of another build of numba that calls itself the same
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code of a function for types."""
        if self.store and self._enabled and not data.lifted \
                and not data.library.has_dynamic_globals:
            self.store.save(self._entry(sig, data.codegen), serialize.dumps(data._reduce()))

    def _entry(self, sig: Any, codegen: Any) -> str:
        """Name by content: function, its sources, and types, machine and versions."""
        parent: Any = self  # Numba has no types.
        function = parent._py_func
        rest = repr((parent._index_key(sig, codegen), sys.version_info, numba.__version__))
        return ".".join((f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}",
                         fingerprint_sources(self.source)[:16],
                         hashlib.sha256(rest.encode()).hexdigest()[:32]))


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
    """`numba.njit` that keeps what it compiles, by content, in the user's own folder.

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
    next installation would meet a package of nothing but a cache, and could load that one. And
    numba loads unasked what lies there, or where NUMBA_CACHE_DIR points.
    """
    def decorate(function: Loop) -> Loop:
        compiled: Any = compile_part(**options)(function)
        if hasattr(compiled, "_cache"):  # compilation is not switched off
            compiled._cache = Kept(function)
        return cast(Loop, compiled)

    return decorate
