"""Loops of the simulations: plain Python, compiled ahead of time into the library beside them.

A loop is a function with `@compile_kept`, and calls functions with `@compile_part`; numba compiles
them (`build`). Where there is no library, or the environment has
NUMBA_DISABLE_JIT=1, loops run as the Python they are.
"""

import ctypes
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hwmodels.kernels.library import Library, find_library

Words: TypeAlias = Annotated[NDArray[np.int64], "i1"]
"""Array of a kernel, one dimension; beside each how a signature names it."""
Table: TypeAlias = Annotated[NDArray[np.int64], "i2"]
"""Array of a kernel, rows and columns."""
Cube: TypeAlias = Annotated[NDArray[np.int64], "i3"]
"""Array of a kernel, three dimensions."""
Slaves: TypeAlias = Annotated[NDArray[np.uint64], "u1"]
"""Unsigned array of a kernel, one dimension."""
Integer: TypeAlias = Any
"""Whole number of a kernel: int64, uint64 or Python's, which compilation distinguishes by use and
checkers of types cannot."""
Loop = TypeVar("Loop", bound=Callable[..., Any])

NOTHING = "none"
PARTS: list[Callable[..., Any]] = []
"""Functions that loops may call."""
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class Kernel:
    """A loop by name, looked up in the library when it is first called.

    Parameters
    ----------
    module, name : str
        The module is imported only where the loop runs as Python.
    """

    native: tuple[str, ...] = ()

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *arguments: Any) -> Any:
        """Run it; arrays are changed in place."""
        return self._run(*arguments)

    @functools.cached_property
    def py_func(self) -> Callable[..., Any]:
        """Return the loop in Python."""
        found = vars(import_module(self.module))[self.name]
        function: Callable[..., Any] = found.py_func if isinstance(found, Kernel) else found
        return function

    @property
    def symbol(self) -> str:
        """Return its name in the library."""
        return f"{self.module.replace('.', '_')}_{self.name}"

    @functools.cached_property
    def library(self) -> Library | None:
        """The library it is looked up in; None where it runs as Python."""
        return None if INTERPRETED else find_library()

    @functools.cached_property
    def _run(self) -> Callable[..., Any]:
        """Callable with arrays and numbers."""
        if self._loaded is None:
            return self.py_func
        native, rows = self._loaded
        return lambda *arguments: native(*self._flatten(rows, arguments))

    @functools.cached_property
    def _loaded(self) -> tuple[Callable[..., Any], list[tuple[Any, int] | None]] | None:
        """Machine code, and the type and dimensions of each argument that is an array."""
        if self.library is None:
            return None
        returned, *kinds = self.library.signatures[self.symbol]
        types = [one for kind in kinds for one in
                 ([ctypes.c_void_p] + [ctypes.c_int64] * int(kind[1]) if kind[1:]
                  else [ctypes.c_int64])]
        native = ctypes.CFUNCTYPE(None if returned == NOTHING else ctypes.c_int64, *types)(
            self.library.address_of(self.symbol))
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


class Callback(Kernel):
    """A loop that native code calls with words, an array behind its last argument."""

    @functools.cached_property
    def address(self) -> int:
        """Return where its machine code is, as long as this lives."""
        if self.library is not None:
            return self.library.address_of(self.symbol)
        run = self._run

        def call(*arguments: Any) -> None:
            run(*arguments[:-1], np.ctypeslib.as_array(
                (ctypes.c_int64 * BOUNDLESS).from_address(arguments[-1])))

        self._called = ctypes.CFUNCTYPE(None, *(_NATIVE[kind] for kind in self.native))(call)
        return ctypes.cast(self._called, ctypes.c_void_p).value or 0


BOUNDLESS = 1 << 40
"""Words of an array behind a pointer alone; its real size is the business of what is in it."""


def _address_of(array: NDArray[Any]) -> int:
    """Return where an array in one piece begins; asking its buffer is faster than its interface."""
    try:
        return _addressof(_of_buffer(array))
    except (TypeError, ValueError):  # read-only, or empty
        address: int = array.__array_interface__["data"][0]
        return address


_addressof, _of_buffer = ctypes.addressof, cast(Any, ctypes.c_char.from_buffer)
_DTYPES = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
_NATIVE = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "ptr": ctypes.c_void_p}


def kinds_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the types of a loop's arguments: "i" a number, "u1" unsigned words, "i2" a table."""
    return tuple(getattr(one.annotation, "__metadata__", "i")[0]
                 for one in inspect.signature(function).parameters.values())


def lowest_bit(value: Integer) -> Integer:
    """Return the place of the lowest bit that is set, of a number that is not zero.

    Parameters
    ----------
    value : int
        Compiled, this is one instruction of the processor.

    Returns
    -------
    int
        From zero.
    """
    return np.uint64((int(value) & -int(value)).bit_length() - 1)


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
    PARTS.append(function)
    return function


def compile_kept(function: Loop) -> Loop:
    """Run a function as compiled ahead of time.

    Parameters
    ----------
    function : callable
        With arrays and whole numbers as arguments, a whole number or nothing as result. No two
        arrays overlap.

    Returns
    -------
    callable
        What runs it; `py_func` is the loop in Python.
    """
    if INTERPRETED:
        return function
    loop = Kernel(function.__module__, function.__name__)
    loop.py_func = function
    return cast(Loop, loop)


def compile_callback(*native: str) -> Callable[[Callable[..., None]], Callback]:
    """Compile a function that native code calls.

    Parameters
    ----------
    *native : str
        Its arguments as they are passed, "i64", "i32" or "ptr"; the last one is an array.

    Returns
    -------
    callable
        Makes of a function, with a whole number or array for each, what has an `address`.
    """
    def make(function: Callable[..., None]) -> Callback:
        made = Callback(function.__module__, function.__name__)
        made.py_func, made.native = function, native
        return made

    return make


RUN_PROGRAMS = Kernel("hwmodels.kernels.cache_nest", "run_programs")
"""The loop every prediction runs, without the module it is written in."""
