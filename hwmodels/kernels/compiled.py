"""Loops compiled once, whose machine code is kept for the next process, away from the package.

A loop is plain Python with `@compile_kept`, and calls functions with `@compile_part` or
`@compile_inline`. `translation` makes LLVM's text of it, llvmlite machine code of that. What is
compiled, and not found kept, is told to the logger `hwmodels.kernels` at level INFO. Where the
environment has NUMBA_DISABLE_JIT=1, loops run as the Python they are.
"""

import contextlib
import ctypes
import functools
import glob
import hashlib
import hmac
import inspect
import logging
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

SEAL_BYTES = SECRET_BYTES = 32
LARGEST_ENTRY_BYTES = 64 << 20

Words: TypeAlias = Annotated[NDArray[np.int64], "i1"]
"""Array of a kernel, one dimension; how `translation` calls it stands beside each."""
Table: TypeAlias = Annotated[NDArray[np.int64], "i2"]
"""Array of a kernel, rows and columns."""
Cube: TypeAlias = Annotated[NDArray[np.int64], "i3"]
"""Array of a kernel, three dimensions."""
Slaves: TypeAlias = Annotated[NDArray[np.uint64], "u1"]
"""Unsigned array of a kernel, one dimension."""
Integer: TypeAlias = Any
"""Whole number of a kernel: int64, uint64 or Python's, which compilation tells apart by use and
checkers of types cannot."""
Loop = TypeVar("Loop", bound=Callable[..., Any])

HERE = Path(__file__).parent
NOTHING = "none"
TOLD = "compiling simulation kernels, once: {name}"
PARTS: dict[Callable[..., Any], bool] = {}
"""Functions that loops may call, and whether they are put in place of every call."""
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def user_folder(variable: str = "TWIN_KERNELS", name: str = "kernels") -> Path:
    """Folder of what is kept: the one a variable of the environment names, or the user's cache's.

    Raises
    ------
    RuntimeError
        For a user without a home.
    """
    named = os.environ.get(variable)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(cache, "embedded-twin", name)


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
                with self.hold():
                    if not path.exists():  # nor did another process make it
                        write_private(path, secrets.token_bytes(SECRET_BYTES))
            found = read_private(path) if _is_own(os.lstat(path)) else b""
            if len(found) != SECRET_BYTES:  # damaged; what it guarded is of no more use
                path.unlink()
                return None
            return found
        except OSError:
            return None

    def load(self, name: str) -> bytes | None:
        """Return an entry; None where there is none that this user kept as it is."""
        try:
            content = read_private(self.folder / name) if self.key else b""
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

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Let one process at a time make what is missing; none waits where that is not known."""
        with contextlib.ExitStack() as held:
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                if _is_own(os.stat(self.folder)):
                    file = held.enter_context(open(self.folder / "lock", "ab"))
                    os.fchmod(file.fileno(), 0o600)
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _seal(self, name: str, entry: bytes) -> bytes:
        hashed = hashlib.blake2b(name.encode(), key=self.key or b"", digest_size=SEAL_BYTES)
        hashed.update(entry)
        return hashed.digest()


def read_private(path: Path) -> bytes:
    """Read a regular file of the store; OSError where it is none, or too large to be an entry."""
    from hwmodels.files import read_regular

    return read_regular(path, LARGEST_ENTRY_BYTES)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its user alone reads, whole or not at all."""
    from hwmodels.files import write_whole

    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.lstat().st_mode):
            path.unlink()  # A pipe would be waited for, a link followed.
    write_whole(path, content, mode=0o600)


def _is_own(found: os.stat_result) -> bool:
    """Whether it is this user's, and nobody else writes it."""
    return not hasattr(os, "getuid") or (
        found.st_uid == os.getuid() and not found.st_mode & 0o022)


class Kernel:
    """A loop by name, compiled or read when it is first called.

    Parameters
    ----------
    module, name : str
        Of this package; it is imported only where its machine code is not kept.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name, self.folder = module, name, HERE

    def __call__(self, *arguments: Any) -> Any:
        """Run it; arrays are changed in place."""
        return self._run(*arguments)

    @functools.cached_property
    def py_func(self) -> Callable[..., Any]:
        """Return the loop in Python."""
        found = vars(import_module(f"{__package__}.{self.module}"))[self.name]
        function: Callable[..., Any] = found.py_func if isinstance(found, Kernel) else found
        return function

    def prepare(self) -> None:
        """Compile it unless that is kept, and do not run it."""
        self._entry()

    @functools.cached_property
    def store(self) -> Store | None:
        """Where its machine code is kept; None for a user without a home."""
        place = hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]
        try:
            return Store(user_folder() / f"{self.folder.name}-{place}")
        except RuntimeError:
            return None

    @functools.cached_property
    def _run(self) -> Callable[..., Any]:
        """Callable with arrays and numbers."""
        if INTERPRETED:
            return self.py_func
        signature, _, code = self._entry().partition(b"\n")
        returned, *kinds = signature.decode().split(" ")
        types = [one for kind in kinds for one in
                 ([ctypes.c_void_p] + [ctypes.c_int64] * int(kind[1]) if kind[1:]
                  else [ctypes.c_int64])]
        self._engine = _machine().load_code(code)  # What it loaded goes with it.
        native = ctypes.CFUNCTYPE(None if returned == NOTHING else ctypes.c_int64, *types)(
            self._engine.get_function_address(self.name))

        def run(*arguments: Any) -> Any:
            flat: list[int] = []
            for kind, given in zip(kinds, arguments, strict=True):
                if kind[1:]:
                    if given.dtype != _DTYPES[kind[0]] or given.ndim != int(kind[1]) \
                            or not given.flags.c_contiguous:
                        raise TypeError(f"{self.name}: {given.dtype} array of {given.ndim} "
                                        "dimensions, not in one piece or of another type")
                    flat.append(given.__array_interface__["data"][0])
                    flat += given.shape
                else:
                    flat.append(int(given))
            return native(*flat)

        return run

    def _entry(self) -> bytes:
        """Return types of result and arguments, a line, and its machine code, kept or made."""
        sources = fingerprint_sources(HERE)[:8] + fingerprint_sources(self.folder)[:8]
        rest = hashlib.sha256(_machine().describe_machine().encode()).hexdigest()[:32]
        key = ".".join((self.module, self.name, sources, rest))
        store = self.store
        found = store.load(key) if store else None
        if found is not None:
            return found
        with store.hold() if store else contextlib.nullcontext():
            found = store.load(key) if store else None
            if found is not None:
                return found
            logging.getLogger(__package__).info(TOLD.format(name=self.name))
            from hwmodels.kernels.translation import translate

            function = self.py_func
            kinds = kinds_of(function)
            returned = inspect.signature(function).return_annotation
            made: bytes = _machine().compile_module(translate(function, kinds, PARTS))
            made = " ".join((NOTHING if returned is None else "i", *kinds)).encode() + b"\n" + made
            if store:
                store.save(key, made)
        return made


_DTYPES = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


def kinds_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the types of a loop's arguments, as `translation` names them."""
    return tuple(getattr(one.annotation, "__metadata__", "i")[0]
                 for one in inspect.signature(function).parameters.values())


def _machine() -> Any:
    """Return what makes and loads machine code; imported where a loop is about to run."""
    from hwmodels.kernels import machine

    return machine


def compile_part(function: Loop) -> Loop:
    """Let loops call a function.

    Parameters
    ----------
    function : callable
        Left as it is.

    Returns
    -------
    callable
        The function.
    """
    PARTS[function] = False
    return function


def compile_inline(function: Loop) -> Loop:
    """Let loops call a function, and put it in place of every call.

    Parameters
    ----------
    function : callable
        Left as it is.

    Returns
    -------
    callable
        The function.
    """
    PARTS[function] = True
    return function


def compile_kept(function: Loop) -> Loop:
    """Compile a loop when it is first called, and keep its machine code by content.

    Parameters
    ----------
    function : callable
        With arrays and whole numbers as arguments, a whole number or nothing as result.

    Returns
    -------
    callable
        What runs it; `py_func` is the loop in Python.
    """
    if INTERPRETED:
        return function
    loop = Kernel(function.__module__.rpartition(".")[2], function.__name__)
    loop.py_func, loop.folder = function, Path(inspect.getfile(function)).parent
    return cast(Loop, loop)


def kept_loops() -> list[Kernel]:
    """Return every loop of this package."""
    names = [path.stem for path in sorted(HERE.glob("*.py")) if path.stem[0] != "_"]
    modules = [import_module(f"{__package__}.{name}") for name in names]
    return [one for name, module in zip(names, modules, strict=True)
            for one in vars(module).values() if isinstance(one, Kernel) and name == one.module]


RUN_PROGRAM = Kernel("cache_nest", "run_program")
CUT_PHASES = Kernel("cache_phases", "cut_phases")
"""Loops every prediction runs, without the modules they are written in."""
