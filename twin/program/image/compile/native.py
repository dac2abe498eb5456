"""Generated C as a library of this machine, run layer by layer in a Python process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import time
from pathlib import Path

from hwmodels.errors import ToolMissingError
from hwmodels.isa import native_isa
from twin.errors import FirmwareError
from twin.network.graph import Graph
from twin.program.image.compile.ports import firmware_folder
from twin.program.image.compile.source import generate_source, write_source

FLAGS = ("-std=c99", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror")


class _Layer(ctypes.Structure):
    _fields_ = [("run", ctypes.CFUNCTYPE(None)), ("name", ctypes.c_char_p),
                ("output_offset", ctypes.c_uint32), ("output_bytes", ctypes.c_uint32),
                ("index", ctypes.c_uint32)]


class Model(ctypes.Structure):
    """Beginning of struct model (firmware/core/model.h)."""

    _fields_ = [("name", ctypes.c_char_p), ("layers", ctypes.POINTER(_Layer)),
                ("layer_count", ctypes.c_uint32), ("arena", ctypes.POINTER(ctypes.c_uint8)),
                ("arena_bytes", ctypes.c_uint32), ("input_offset", ctypes.c_uint32),
                ("input_bytes", ctypes.c_uint32), ("output_offset", ctypes.c_uint32),
                ("output_bytes", ctypes.c_uint32)]


def build_kernels(folder: Path) -> Path:
    """Compile the kernels into an object that libraries of several networks can link."""
    target = folder / "kernels.o"
    for source in sorted((firmware_folder() / "kernels").glob("*.c")):
        _compile(["-O2", "-c", str(source), "-o", str(folder / f"{source.stem}.part.o")], folder)
    _run(["ld", "-r", *map(str, sorted(folder.glob("*.part.o"))), "-o", str(target)], folder)
    return target


def build_library(graph: Graph, folder: Path, kernels: Path | None = None) -> Path:
    """Build a network as a shared library.

    Parameters
    ----------
    folder
        Gets sources and library.
    kernels
        Of `build_kernels`; compiled when not given.

    Raises
    ------
    ToolMissingError
        Without a C compiler.
    FirmwareError
        When it fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kernels = kernels or build_kernels(folder)
    source = generate_source(graph, native_isa())
    write_source(source, folder)
    text = source.model_c.replace("@BUILD@", "0").replace("@COMPILER@", "cc")
    (folder / "model.c").write_text(text, encoding="utf-8")
    library = folder / "model.so"
    root = firmware_folder()
    _compile(["-O1", "-shared", f"-I{root}/core", f"-I{root}/kernels", "model.c", "weights.S",
              str(kernels.resolve()), "-o", library.name], folder)
    return library


def _compile(arguments: list[str], folder: Path) -> None:
    if shutil.which("cc") is None:
        raise ToolMissingError("cc is not installed: install a C compiler")
    _run(["cc", *FLAGS, *arguments], folder)


def _run(command: list[str], folder: Path) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise FirmwareError(f"{command[0]} failed:\n{result.stderr.strip()}")


def keep_running(library: Path, seconds: float) -> None:
    """Run a library's layers over and over, for a profiler to watch."""
    model = Model.in_dll(ctypes.CDLL(str(library)), "model")
    runs = [model.layers[place].run for place in range(model.layer_count)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for run in runs:
            run()


if __name__ == "__main__":
    keep_running(Path(sys.argv[1]), float(sys.argv[2]))
