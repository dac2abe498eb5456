"""Build a firmware image: write the sources, compile, read what came out."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.errors import ToolMissingError, check_word
from hwmodels.files import hash_files, list_files
from hwmodels.frozen import entity
from hwmodels.isa import MACHINES
from hwmodels.processes import command_of
from twin.deployment.deployment import Deployment
from twin.errors import DoesNotFitError, FirmwareError, UsageError
from twin.network.graph import Graph
from twin.program.image.compile.boot_checksum import write_boot_checksum
from twin.program.image.compile.image_sizes import ImageSizes, read_sizes
from twin.program.image.compile.memory_map import (
    SAMPLE_BYTES,
    SAMPLES,
    choose_sample_capacity,
    write_memory_map,
)
from twin.program.image.compile.permission import check_permission
from twin.program.image.compile.plan import FIRMWARE, KERNELS
from twin.program.image.compile.ports import Port, firmware_folder, load_port
from twin.program.image.compile.source import Source, draft_build, generate_source, write_source

COMPILERS = ("gcc", "clang")
OPTIMISATIONS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Oz", "-Og")

_THEIRS = ", CMSIS-NN"

_OVERFLOW = re.compile(r"region [`']MEMORY_(\w+)' overflowed by (\d+) bytes"
                       r"|section '([\w.]+)' will not fit in region '(?:MEMORY_)?(\w+)'")

_REFUSED = re.compile(r"error: (unrecognized -m.*|unsupported (?:option|argument) .*"
                      r"|unknown target CPU .*)")


@entity
class Build:
    """A built image.

    Parameters
    ----------
    folder
        Holds model.c, weights.bin and the image.
    image
        ELF file.
    compiler
        What compiled it, with version and optimisation.
    source
        The network as C.
    samples
        How many the board keeps, 16 bytes each.
    digest
        Hash of every source and option, which the image states.
    """

    folder: Path
    image: Path
    port: Port
    compiler: str
    source: Source
    sizes: ImageSizes
    samples: int
    digest: bytes

    @property
    def predicted(self) -> dict[str, int]:
        """Bytes as planned: code, weights and requantisation, flash, arena, and RAM.

        Notes
        -----
        RAM is arena, the input's copy, samples, and what the firmware needs itself. Weights count
        there where they are copied to it, and code where all lies there, of which flash has none:
        choices the image carries, no prediction.
        """
        placement, kept = self.source.placement, self.sizes.lies_in_ram
        linked = placement.weights_bytes + FIRMWARE.code_bytes
        return {"code_bytes": FIRMWARE.code_bytes, "weights_bytes": placement.weights_bytes,
                "flash_bytes": 0 if kept else linked, "arena_bytes": placement.arena_bytes,
                "ram_bytes": (
                    placement.weights_bytes * self.sizes.weights_in_ram + linked * kept
                    + placement.arena_bytes + self.source.input_room_bytes + FIRMWARE.ram_bytes
                    + SAMPLE_BYTES * (self.samples - SAMPLES[-1]))}


def build_firmware(graph: Graph, port: Port, folder: str | Path, *, compiler: str | None = None,
                   optimisation: str = "-O2", kernels: str = "own",
                   deployment: Deployment | None = None, defines: tuple[str, ...] = (),
                   tile: int = 2, board: Board | None = None, within: Path | None = None,
                   accept: Callable[[Build], None] = lambda made: None) -> Build:
    """Build the image of a network for a port.

    Parameters
    ----------
    port
        From `twin.program.image.compile.ports`.
    folder
        Where sources and image go once all of it is built; an earlier build stays until then.
    compiler
        "gcc", or "clang": the one in ziglang where installed, else the system's. By default GCC,
        and where it is not installed, the clang of ziglang.
    optimisation
        One of `OPTIMISATIONS`.
    kernels
        "own", or "cmsis-nn" from the checkout CMSIS_NN_PATH names.
    deployment
        Board and memories, for ports without a map of their own.
    defines
        Further macros, "NAME" or "NAME=VALUE".
    tile
        Windows our own int8 convolution copies before it multiplies them.
    board
        Whose memories the sizes are of, where no deployment says.
    accept
        Called with the build before it goes there; what it raises leaves the folder as it was.
    within
        Where it is built until then; by default in the folder.

    Returns
    -------
    Build
        With its sizes.

    Raises
    ------
    RuntimeRefusedError, ToolMissingError
        When the firmware has no kernel for a layer; when compiler, make or checkout are not there.
    DoesNotFitError, FirmwareError
        When the linker runs out of a memory; when the compiler fails.
    """
    _check_choices(compiler, optimisation, kernels)
    source = generate_source(graph, port.isa, kernels=kernels, tile=tile)
    memory_map, samples = map_memories(source, port, deployment)
    compiler = _find_compiler(compiler or _default_compiler(port), port)  # Before it is written.
    with draft_build(folder, within) as draft:
        write_source(source, draft)
        made = compile_source(source, port, draft, compiler=compiler, optimisation=optimisation,
                              memory_map=memory_map, samples=samples, named=Path(folder),
                              defines=list_macros(defines, tile),
                              board=deployment.board if deployment is not None else board)
        accept(made)
    return made


def map_memories(source: Source, port: Port, deployment: Deployment | None) -> tuple[str, int]:
    """Return a port's memory map, where it has none of its own, and how many samples it keeps."""
    if deployment is None or port.fixed_map:
        return "", SAMPLES[0]
    return write_memory_map(deployment), choose_sample_capacity(
        deployment, source.placement.arena_bytes, source.input_room_bytes)


def compile_source(source: Source, port: Port, folder: str | Path, *, memory_map: str,
                   compiler: str | None = None, optimisation: str = "-O2",
                   samples: int = SAMPLES[0], defines: tuple[str, ...] = (),
                   board: Board | None = None, named: Path | None = None) -> Build:
    """Compile what is written in a folder: model.c, weights.S and whatever C lies beside them.

    Parameters
    ----------
    port
        From `twin.program.image.compile.ports`.
    folder
        Where it is, and where the image goes.
    memory_map
        Text of memory.ld; "": the port brings its own.
    compiler
        "gcc", "clang" or "zig"; by default what is there.
    optimisation
        One of `OPTIMISATIONS`.
    samples
        How many the board keeps.
    board
        Whose memories the sizes are of.
    named
        Folder that it will be moved to, which the image names for debuggers.

    Raises
    ------
    ToolMissingError, DoesNotFitError, FirmwareError
        As `build_firmware`.
    """
    used = compiler or _find_compiler(_default_compiler(port), port)
    folder, macros = Path(folder), list_macros(defines, samples=samples)
    if memory_map:
        (folder / "memory.ld").write_text(memory_map, encoding="utf-8")
    named = folder if named is None else named
    version = _describe(used, port, optimisation, source.kernels)
    digest = _fill_in(folder, source, port, version, macros)
    _make(folder, named, port, used, optimisation, source.kernels, macros)
    image = folder / "firmware.elf"
    sizes = read_sizes(image, board)
    if "BOOT_CHECKSUM" in port.settings:
        write_boot_checksum(image, int(port.settings["BOOT_CHECKSUM"]))
    return Build(folder=named, image=named / image.name, port=port, compiler=version, source=source,
                 sizes=sizes, samples=samples, digest=digest)


def choose_kernels(asked: str = "") -> str:
    """Return whose kernels to link: as asked, else CMSIS-NN's where CMSIS_NN_PATH names them."""
    return asked or ("cmsis-nn" if os.environ.get("CMSIS_NN_PATH") else "own")


def runtime_of(compiler: str) -> str:
    """Return the runtime an image is of, from what it says of its compiler."""
    return "cmsis-nn" if compiler.endswith(_THEIRS) else "firmware"


def _check_choices(compiler: str | None, optimisation: str, kernels: str) -> None:
    for what, value, accepted in (("--compiler", compiler or COMPILERS[0], COMPILERS),
                                  ("--opt", optimisation, OPTIMISATIONS),
                                  ("--kernels", kernels, KERNELS)):
        check_word(what, value, accepted, UsageError)
    path = os.environ.get("CMSIS_NN_PATH", "")
    if kernels == "cmsis-nn" and not (Path(path) / "Include" / "arm_nnfunctions.h").is_file():
        raise ToolMissingError("CMSIS_NN_PATH must name a checkout of CMSIS-NN (with "
                               f"Include/arm_nnfunctions.h); it is {path or 'not set'!r}")


def _default_compiler(port: Port) -> str:
    there = shutil.which(MACHINES[port.arch].compiler[0]) is not None
    return "gcc" if there or find_spec("ziglang") is None else "clang"


def _find_compiler(compiler: str, port: Port) -> str:
    """Return "gcc", "clang" or "zig", whichever is to run."""
    check_permission()
    if shutil.which("make") is None:
        raise ToolMissingError("make is not installed: apt-get install make")
    gcc, advice = MACHINES[port.arch].compiler
    if compiler == "clang" and find_spec("ziglang") is not None:
        return "zig"
    if compiler == "clang" and shutil.which("clang") is None:
        raise ToolMissingError("clang is not installed: pip install ziglang, or "
                               "apt-get install clang")
    # The system's clang links with GCC's run-time library.
    if shutil.which(gcc) is None:
        raise ToolMissingError(f"{gcc} is not installed: {advice}; or pip install ziglang and "
                               "--compiler clang")
    return compiler


def installed_compilers(port: Port) -> tuple[str, ...]:
    """Return which of `COMPILERS` are there for a port.

    Raises
    ------
    ToolMissingError
        When none is, with what to install for the first.
    """
    found: list[str] = []
    missing: list[ToolMissingError] = []
    for name in COMPILERS:
        try:
            _find_compiler(name, port)
        except ToolMissingError as error:
            missing.append(error)
        else:
            found.append(name)
    if not found:
        raise missing[0]
    return tuple(found)


def find_missing(name: str) -> str:
    """Return what has to be installed before an image of a port can be built; "" when nothing."""
    try:
        port = load_port(name)
        _find_compiler(_default_compiler(port), port)
    except ToolMissingError as error:
        return str(error)
    return ""


def describe_compiler(port: Port, optimisation: str, compiler: str | None = None) -> str:
    """Return what would compile our kernels for a port, as `Build.compiler` says it."""
    used = _find_compiler(compiler or _default_compiler(port), port)
    return _describe(used, port, optimisation, "own")


def _describe(used: str, port: Port, optimisation: str, kernels: str) -> str:
    return f"{_version(used, port)} {optimisation}{_THEIRS * (kernels == 'cmsis-nn')}"


def _version(used: str, port: Port) -> str:
    command = {"gcc": (MACHINES[port.arch].compiler[0], "-dumpfullversion"),
               "clang": ("clang", "-dumpversion"),
               "zig": (*command_of("ziglang"), "version")}[used]
    version = _ask_version(command, shutil.which(command[0]))
    return f"{'clang of zig' if used == 'zig' else used} {version}"


@lru_cache(maxsize=8)
def _ask_version(command: tuple[str, ...], _path: str | None) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def list_macros(defines: tuple[str, ...], tile: int = 2,
                samples: int = SAMPLES[0]) -> tuple[str, ...]:
    """Return macros with those of a tile, and of a number of samples, that is not the usual."""
    return (*defines, *(f"CONV_TILE={tile}",) * (tile != 2),
            *(f"SAMPLE_CAPACITY={samples}u",) * (samples != SAMPLES[0]))


def fingerprint(source: Source, port: Port, compiler: str, macros: tuple[str, ...],
                memory_map: bytes) -> bytes:
    """Return a hash of everything an image is made from.

    Parameters
    ----------
    source
        The network as C.
    compiler
        As `Build.compiler` says it.
    macros
        Defined besides.
    memory_map
        Of memory.ld; empty: the port's own.
    """
    settings = port.arguments if port.derived else ()  # of a core's file, which is of no folder
    digest = hashlib.sha256("\0".join((source.model_c, port.name, compiler, *macros, *settings)
                                      ).encode())
    digest.update(source.image.content)
    roots = {str(firmware_folder()): ["Makefile", "core", "protocol", "kernels", "ports"]}
    if source.kernels == "cmsis-nn":
        roots[os.environ["CMSIS_NN_PATH"]] = ["Include", "Source"]
    for top, parts in roots.items():
        files = (*list_files(top, parts, (".c", ".h", ".ld", ".mk")),)
        digest.update(_hash_once(top, files, tuple(
            (found.st_size, found.st_mtime_ns) for found in map(os.stat, files))))
    digest.update(memory_map)
    return digest.digest()


@lru_cache(maxsize=8)
def _hash_once(top: str, files: tuple[str, ...], _states: tuple[tuple[int, int], ...]) -> bytes:
    return hash_files(top, files).encode()


def _fill_in(folder: Path, source: Source, port: Port, compiler: str,
             macros: tuple[str, ...]) -> bytes:
    """Write a hash of every source and option into model.c, and return it."""
    memory = folder / "memory.ld"
    digest = fingerprint(source, port, compiler, macros,
                         memory.read_bytes() if memory.is_file() else b"")
    build = ", ".join(f"0x{byte:02x}" for byte in digest)
    text = source.model_c.replace("@BUILD@", build).replace("@COMPILER@", compiler)
    (folder / "model.c").write_text(text, encoding="utf-8")
    return digest


def _make(folder: Path, named: Path, port: Port, used: str, optimisation: str, kernels: str,
          macros: tuple[str, ...]) -> None:
    where = folder.resolve()
    command = ["make", "-s", f"-j{os.cpu_count() or 1}", "-f", str(firmware_folder() / "Makefile"),
               *port.arguments, f"MODEL={where}", f"OUT={where}", f"COMPILER={used}",
               f"NAMED={named.resolve()}",
               f"OPT={optimisation}", f"PYTHON={sys.executable}",
               "DEFINES=" + " ".join(f"-D{macro}" for macro in macros)]
    theirs = os.environ.get("CMSIS_NN_PATH", "") if kernels == "cmsis-nn" else ""
    if any(" " in str(path) for path in (where, firmware_folder(), theirs)):
        raise UsageError(f"{named}: make cannot work in a folder whose path has a blank; give "
                         "another with -o")
    environment = {**os.environ, "CMSIS_NN_PATH": str(Path(theirs).resolve()) if theirs else ""}
    result = subprocess.run(command, capture_output=True, text=True, cwd=where, env=environment,
                            check=False)
    shutil.rmtree(where / "objects", ignore_errors=True)  # the image and its sources stay
    if result.returncode == 0:
        return
    overflow = _OVERFLOW.search(result.stderr)
    if overflow:
        region = overflow[1] or overflow[4]
        by = f" by {int(overflow[2]):,} bytes" if overflow[2] else ""
        raise DoesNotFitError(f"does not fit: the image exceeds {region.lower()}{by}")
    refused = _REFUSED.search(result.stderr)
    if refused:
        raise FirmwareError(f"{port.name}: the compiler refuses the core's flags: {refused[1]}; "
                            "accepted: core.build of the core's file with options it knows")
    raise FirmwareError(f"{port.name}: the image cannot be built:\n"
                        + "\n".join(result.stderr.strip().splitlines()[-12:]))
