"""The shared library of compiled loops, built of exactly the sources it lies beside."""

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDERS = ("hwmodels/kernels", "calibration/virtual_board/kernels", "twin/program/kernels")
"""Where loops are written, below the folder all packages lie in."""
TOOLS = ("numba", "ziglang")
"""Packages of the extra `compile`, which building needs and nothing else."""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
LEVELS = (("_v3", 3), ("", 0))
"""Suffixes of symbols, the fastest first, and what `twin_level` has to be for them."""
SUFFIXES = {"darwin": "dylib", "win32": "dll"}
BUILDING = "compiling simulation loops, once: about a minute"
PLAIN = ("note: simulation loops run as plain Python, slowly ({reason}); "
         "pip install 'embedded-twin[compile]' and python -m hwmodels.kernels compile them")


class Library:
    """Compiled loops of one platform.

    Parameters
    ----------
    path : Path
        Written by `build`.

    Raises
    ------
    OSError
        Where it is missing or of another machine.
    """

    def __init__(self, path: Path) -> None:
        self._native = ctypes.CDLL(str(path))
        try:
            text = ctypes.c_char_p.in_dll(self._native, "twin_loops").value or b""
            level = self._native.twin_level()
            self._suffixes = tuple(suffix for suffix, least in LEVELS if level >= least)
        except (AttributeError, ValueError) as error:
            raise OSError(f"{path.name} is no library of loops") from error
        _, *rows = text.decode().split("\n")
        self.signatures = {name: tuple(kinds) for name, *kinds in map(str.split, rows)}

    def address_of(self, symbol: str) -> int:
        """Return where a loop begins, in the version for this processor."""
        found = next(filter(None, (getattr(self._native, symbol + suffix, None)
                                   for suffix in self._suffixes)))
        return ctypes.cast(found, ctypes.c_void_p).value or 0


def checksum_sources() -> str:
    """Return a hash of every module of the folders: one loop is made of many."""
    hashed = hashlib.sha256()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.py")):
            hashed.update(path.name.encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()[:32]


def name_platform() -> str:
    """Return this platform as `build` names it, linux-x86_64."""
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get(
        "PROCESSOR_ARCHITECTURE", "")
    return f"{sys.platform}-{MACHINES.get(machine.lower(), machine.lower())}"


def name_library(platform: str) -> str:
    """Return the file name of a platform's library."""
    return f"loops-{platform}.{SUFFIXES.get(platform.partition('-')[0], 'so')}"


@functools.cache
def find_library() -> Library | None:
    """Return the library of these sources; in a checkout it is built where it is missing or older.

    Returns
    -------
    Library or None
        None where there is none and none can be built; the log says so once.
    """
    found, reason = open_library()
    if found is None and _can_build():
        from hwmodels.locks import lock

        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):
                held.enter_context(lock(HERE / ".building", wait=True))
            found, reason = open_library()
            if found is None:
                why = _build()
                found, reason = (None, why) if why else open_library()
    if found is None:
        logging.getLogger(__package__).warning(PLAIN.format(reason=reason))
    return found


def open_library(folder: Path = HERE) -> tuple[Library | None, str]:
    """Return the library of this platform and these sources, or why there is none."""
    path = folder / name_library(name_platform())
    if not path.exists():
        return None, f"none compiled for {name_platform()}"
    try:
        # Opened, a library of other sources would answer for the one built in its place.
        content = path.read_bytes()
        if b"twin_loops" in content and checksum_sources().encode() not in content:
            return None, f"sources changed after {path.name} was compiled"
        return Library(path), ""
    except OSError as error:
        return None, str(error)


def _can_build() -> bool:
    """Whether this is a checkout that can be written to, with all tools."""
    from importlib.util import find_spec

    return ((ROOT / "pyproject.toml").is_file() and os.access(HERE, os.W_OK)
            and all(find_spec(name) for name in TOOLS))


def _build() -> str:
    """Build the library in a process of its own; return why it could not be, "" where it was."""
    import subprocess

    from hwmodels.processes import command_of, environment

    logging.getLogger(__package__).info(BUILDING)
    ended: Any = subprocess.run(command_of("hwmodels.kernels"), env=environment(),
                                capture_output=True, text=True, check=False)
    return "" if ended.returncode == 0 else (
        ended.stderr.strip().splitlines() or ["the build ended"])[-1][:200]
