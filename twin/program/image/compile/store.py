"""Images kept by content: one is built once, and again when anything it is made from changes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.drafts import draft_folder
from hwmodels.errors import ToolMissingError
from hwmodels.files import read_regular, write_whole
from hwmodels.folders import user_folder
from hwmodels.frozen import entity
from hwmodels.kernels.store import is_own
from twin.deployment.deployment import Deployment
from twin.errors import RuntimeRefusedError, UsageError
from twin.program.image.compile.build import (
    build_firmware,
    describe_compiler,
    fingerprint,
    list_macros,
    map_memories,
)
from twin.program.image.compile.ports import Port, list_ports, load_port, name_probe_port
from twin.program.image.compile.source import Source, generate_source

SEAL = ".sha256"

PORTABLE = ("KERNEL_PORTABLE",)
"""Macros that build the kernels without the core's own extensions."""


@entity
class KeptImage:
    """An image and what it was made from.

    Parameters
    ----------
    path
        ELF file.
    source
        The network as C.
    key
        Hash of what it was made from.
    """

    path: Path
    source: Source
    key: str


def store_folder() -> Path:
    """Folder of kept images: TWIN_IMAGES, or one of the user's cache."""
    return user_folder("TWIN_IMAGES", "images")


def port_of(board: Board) -> Port:
    """Return the board's own port, or the one of its core that needs no serial line.

    Raises
    ------
    RuntimeRefusedError
        When the firmware has none.
    """
    ports = list_ports()
    name = board.name if board.name in ports else name_probe_port(board.core.model)
    if name not in ports:
        cores = sorted({core for name in list_ports() if (core := load_port(name).core)})
        raise RuntimeRefusedError(f"runtime firmware: no port for a {board.core.model}; there are "
                                  f"ports for {', '.join(cores)}")
    return load_port(name)


def choose_port(deployment: Deployment) -> Port:
    """Return the port a deployment's images are built for; raises as `port_of`."""
    built, core = deployment.runtime.built, deployment.board.core.model
    named = [] if built is None else [name for name in list_ports() if name.startswith(built.port)
                                      and load_port(name).core == core]
    return load_port(named[0]) if named else port_of(deployment.board)


def keep_image(deployment: Deployment, *, port: Port | None = None) -> KeptImage:
    """Return the image of a deployment of the firmware, built unless it was before.

    Parameters
    ----------
    deployment
        Its runtime's version names the level of optimisation, and the compiler where it is not
        the default one: "O2", "O3", "Os", "clang-O2".
    port
        By default that of the images there are, or the board's.

    Raises
    ------
    RuntimeRefusedError
        When there is no port for the board or no kernel for a layer.
    ToolMissingError
        When the cross compiler or make is not there, or none of the images there are is of this
        deployment.
    UsageError
        When the folder cannot be written.
    """
    graph = deployment.executed
    compiler, _, level = deployment.runtime.version.rpartition("-")
    chosen, level = compiler or None, f"-{level}"
    port, tile, built = port or choose_port(deployment), deployment.runtime.tile_windows, (
        deployment.runtime.built)
    source = generate_source(graph, port.isa, tile=tile)
    memory_map, samples = map_memories(source, port, deployment)
    described = describe_compiler(port, level, chosen) if built is None else built.compiler
    # a board said to be of a weaker instruction set than its port gets the kernels without it
    defines = PORTABLE if deployment.board.core.isa != port.isa else ()
    key = fingerprint(source, port, described, list_macros(defines, tile, samples),
                      memory_map.encode())
    if built is not None:
        path = next((Path(name) for name in built.files if key in read_regular(Path(name))), None)
        if path is None:
            raise ToolMissingError("no image that is there is of this deployment; accepted: a "
                                   "computer with make and the cross compiler, which builds it")
        return KeptImage(path=path, source=source, key=key.hex())

    def build(into: Path) -> None:
        build_firmware(graph, port, into, compiler=chosen, optimisation=level, tile=tile,
                       deployment=None if port.fixed_map else deployment, defines=defines)

    return KeptImage(path=_keep(key.hex(), build), source=source, key=key.hex())


def _keep(key: str, build: Callable[[Path], None]) -> Path:
    """Return a kept image; where none can be kept safely, one that goes with this process."""
    named = os.environ.get("TWIN_IMAGES")
    try:
        folder = store_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not named and hasattr(os, "getuid") \
                and folder.stat().st_uid == os.getuid():
            folder.chmod(0o700)  # as umasks of some systems left it for the user's group
        if is_own(folder.stat()):
            return _keep_in(folder, key, build)
    except OSError as error:
        if named:
            raise UsageError(f"{store_folder()}: images cannot be kept there ({error.strerror}); "
                             "set TWIN_IMAGES to a folder that can be written") from error
    return _keep_in(Path(_aside().name), key, build)


@functools.cache
def _aside() -> tempfile.TemporaryDirectory[str]:
    """Folder of this process's images: the user's own is of others too, read-only or full."""
    return tempfile.TemporaryDirectory(prefix="twin-images-")


def _keep_in(root: Path, key: str, build: Callable[[Path], None]) -> Path:
    folder = root / key[:32]
    image = folder / "firmware.elf"
    if _is_whole(image, key):
        return image
    with draft_folder(root, "new-") as made:
        build(made / "build")
        content = (made / "build" / "firmware.elf").read_bytes()
    _clear(folder, lambda mode: stat.S_ISDIR(mode) and is_own(folder.lstat()))
    folder.mkdir(exist_ok=True, mode=0o700)
    # Two that build the same at a time leave the same files.
    for path, kept in ((image, content), (image.with_suffix(SEAL), _seal(content, key).encode())):
        _clear(path, stat.S_ISREG)
        write_whole(path, kept, awaited=False)  # the seal is checked when it is read
    return image


def _clear(path: Path, is_right: Callable[[int], bool]) -> None:
    """Remove what is in the place of a file or folder and is none: no link is followed."""
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat().st_mode
        if stat.S_ISDIR(found) and not is_right(found):
            shutil.rmtree(path)
        elif not is_right(found):
            path.unlink()


def _is_whole(image: Path, key: str) -> bool:
    """Whether an image is there as it was built; a damaged one, or another's, is built again.

    What others can write, they can seal: the seal shows damage, the owner whose it is.
    """
    try:
        if not all(is_own(path.lstat()) for path in (image.parent, image, image.with_suffix(SEAL))):
            return False
        return read_regular(image.with_suffix(SEAL), 1000).decode("ascii", "replace") == _seal(
            read_regular(image), key)
    except OSError:
        return False


def _seal(content: bytes, key: str) -> str:
    """Line that belongs to an image: what it is, and what it was built of."""
    return f"{hashlib.sha256(content).hexdigest()} {key}\n"
