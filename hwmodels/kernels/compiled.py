"""Loops compiled once, whose machine code is kept for the next process, away from the package.

A loop is plain Python with `@compile_kept`, and calls functions with `@compile_part` or
`@compile_inline`. `translation` makes LLVM's text of it, llvmlite machine code of that. What is
compiled, and not found kept, is told to the logger `hwmodels.kernels` at level INFO. Where the
environment has NUMBA_DISABLE_JIT=1, loops run as the Python they are.
"""

import contextlib
import ctypes
import functools
import hashlib
import inspect
import logging
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hwmodels.kernels.store import Store, fingerprint_sources

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
NOT_KEPT = "note: simulation kernels are compiled by every command; {folder} keeps none: {reason}"
PARTS: dict[Callable[..., Any], bool] = {}
"""Functions that loops may call, and whether they are put in place of every call."""
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class Kernel:
    """A loop by name, compiled or read when it is first called.

    Parameters
    ----------
    module, name : str
        Of this package; it is imported only where its machine code is not kept.
    """

    native: tuple[str, ...] = ()

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name, self.folder = module, name, HERE

    def __call__(self, *arguments: Any) -> Any:
        """Run it; arrays are changed in place."""
        return self._run(*arguments)

    def bind(self, *arguments: Any) -> Callable[[NDArray[np.int64]], None]:
        """Give all arguments but one, an array, before it is called often.

        Parameters
        ----------
        *arguments
            As of a call; None for the array still to come, of one dimension. They stay alive as
            long as what is returned does.

        Returns
        -------
        callable
            What runs it on that array, in one piece and writable; nothing is returned.
        """
        place = next(place for place, one in enumerate(arguments) if one is None)
        before, after = arguments[:place], arguments[place + 1:]
        if INTERPRETED:
            return lambda array: self.py_func(*before, array, *after)
        native, rows = self._loaded
        first, last = self._flatten(rows[:place], before), self._flatten(rows[place + 1:], after)

        def run(array: NDArray[np.int64], _kept: object = arguments) -> None:
            native(*first, _addressof(_of_buffer(array)), len(array), *last)

        return run

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
        from hwmodels.folders import user_folder

        place = hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]
        try:
            return Store(user_folder("TWIN_KERNELS", "kernels") / f"{self.folder.name}-{place}")
        except RuntimeError:
            return None

    @functools.cached_property
    def _run(self) -> Callable[..., Any]:
        """Callable with arrays and numbers."""
        if INTERPRETED:
            return self.py_func
        native, rows = self._loaded
        return lambda *arguments: native(*self._flatten(rows, arguments))

    @functools.cached_property
    def _loaded(self) -> tuple[Callable[..., Any], list[tuple[Any, int] | None]]:
        """Machine code, and the type and dimensions of each argument that is an array."""
        signature, _, code = self._entry().partition(b"\n")
        returned, *kinds = signature.decode().split(" ")
        types = [one for kind in kinds for one in
                 ([ctypes.c_void_p] + [ctypes.c_int64] * int(kind[1]) if kind[1:]
                  else [ctypes.c_int64])]
        self._engine = _machine().load_code(code)  # What it loaded goes with it.
        native = ctypes.CFUNCTYPE(None if returned == NOTHING else ctypes.c_int64, *types)(
            self._engine.get_function_address(self.name))
        return native, [(_DTYPES[kind[0]], int(kind[1])) if kind[1:] else None for kind in kinds]

    def _flatten(self, rows: Sequence[tuple[Any, int] | None],
                 arguments: Sequence[Any]) -> list[int]:
        """Return what machine code takes: numbers, and of arrays address and shape."""
        flat: list[int] = []
        for row, given in zip(rows, arguments, strict=True):
            if row is None:
                flat.append(int(given))
                continue
            if given.dtype != row[0] or given.ndim != row[1] or not given.flags.c_contiguous:
                raise TypeError(f"{self.name}: {given.dtype} array of {given.ndim} dimensions, not "
                                "in one piece or of another type")
            flat += (_address_of(given), *given.shape)
        return flat

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
            made: bytes = _machine().compile_module(translate(
                function, kinds, PARTS, self.native))
            made = " ".join((NOTHING if returned is None else "i", *kinds)).encode() + b"\n" + made
            if store:
                store.save(key, made)
                if store.refusal:
                    _tell_not_kept(store)
        return made


class Callback(Kernel):
    """A loop that native code calls, compiled or read when its address is first asked for."""

    @functools.cached_property
    def address(self) -> int:
        """Return where its machine code is, as long as this lives."""
        self._engine = _machine().load_code(self._entry().partition(b"\n")[2])
        return int(self._engine.get_function_address(self.name))


def _address_of(array: NDArray[Any]) -> int:
    """Return where an array in one piece begins; its buffer tells faster than its interface."""
    try:
        return _addressof(_of_buffer(array))
    except (TypeError, ValueError):  # read-only, or empty
        address: int = array.__array_interface__["data"][0]
        return address


_addressof, _of_buffer = ctypes.addressof, cast(Any, ctypes.c_char.from_buffer)
_DTYPES = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


def kinds_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the types of a loop's arguments, as `translation` names them."""
    return tuple(getattr(one.annotation, "__metadata__", "i")[0]
                 for one in inspect.signature(function).parameters.values())


def _tell_not_kept(store: Store) -> None:
    """Say, once a process, why the next one compiles again."""
    global _told_not_kept
    if not _told_not_kept:
        _told_not_kept = True
        logging.getLogger(__package__).info(
            NOT_KEPT.format(folder=store.folder, reason=store.refusal))


_told_not_kept = False


def _machine() -> Any:
    """Return what makes and loads machine code; imported where a loop is about to run."""
    from hwmodels.kernels import machine

    return machine


def lowest_bit(value: Integer) -> Integer:
    """Return the place of the lowest bit that is set, of a number that is not zero.

    Parameters
    ----------
    value : int
        Compiled, one instruction of the processor tells.

    Returns
    -------
    int
        From zero.
    """
    return np.uint64((int(value) & -int(value)).bit_length() - 1)


def likely(held: Integer) -> Integer:
    """Return a condition of `if` or `while` that the processor shall guess holds.

    Parameters
    ----------
    held : bool
        Compiled, what hangs on it stays a branch: what follows need not wait for it.

    Returns
    -------
    bool
        The condition.
    """
    return held


def abreast(count: Integer) -> range:
    """Return a range whose turns tell nothing of each other.

    Parameters
    ----------
    count : int
        Compiled, several turns are done by one instruction.

    Returns
    -------
    range
        From zero.
    """
    return range(int(count))


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
    """Let loops call a function, as `compile_part` does, and put it in place of every call."""
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


def compile_callback(*native: str) -> Callable[[Callable[..., None]], Callback]:
    """Compile a function that native code calls, and keep its machine code by content.

    Parameters
    ----------
    *native : str
        Its arguments as they are passed, "i64", "i32" or "ptr".

    Returns
    -------
    callable
        Makes of a function, with a whole number or array for each, what has an `address`.
    """
    def make(function: Callable[..., None]) -> Callback:
        made = Callback(function.__module__.rpartition(".")[2], function.__name__)
        made.py_func, made.folder = function, Path(inspect.getfile(function)).parent
        made.native = native
        return made

    return make


def kept_loops() -> list[Kernel]:
    """Return every loop of this package."""
    names = [path.stem for path in sorted(HERE.glob("*.py")) if path.stem[0] != "_"]
    modules = [import_module(f"{__package__}.{name}") for name in names]
    return [one for name, module in zip(names, modules, strict=True)
            for one in vars(module).values() if isinstance(one, Kernel) and name == one.module]


RUN_PROGRAMS = Kernel("cache_nest", "run_programs")
TRANSFER_STATE = Kernel("cache_transfer", "transfer_state")
CUT_PHASES = Kernel("cache_phases", "cut_phases")
SKIP_PHASES = Kernel("cache_streams", "skip_phases")
"""Loops every prediction runs, without the modules they are written in."""
