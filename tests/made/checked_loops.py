"""With NUMBA_BOUNDSCHECK=1: loops compiled by numba in this process, every index checked."""

import functools
import sys

import numba

from hwmodels.kernels import build, compiled, library


def check_loops() -> None:
    """Have every loop run so from now on."""
    compiled.Kernel.library = None
    compiled.Kernel._run = property(functools.cache(_jit))


def _jit(loop):
    function = loop.py_func
    folders = tuple(folder.replace("/", ".") for folder in library.FOLDERS)
    build.declare_parts([one for name, one in sys.modules.items() if name.startswith(folders)],
                        error_model="numpy", boundscheck=True)
    kinds = [build.SCALARS[kind[0]] if len(kind) == 1 else
             numba.types.Array(build.SCALARS[kind[0]], int(kind[1]), "C")
             for kind in compiled.kinds_of(function)]
    return numba.njit(tuple(kinds), error_model="numpy", boundscheck=True)(function)
