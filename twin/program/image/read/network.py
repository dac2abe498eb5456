"""A deployment of the firmware as kernels: built where it is not, then read."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.frozen import record
from hwmodels.isa import MACHINES, load_isa
from hwmodels.kernel import Lowered
from twin.deployment.deployment import Deployment
from twin.errors import FirmwareError, RuntimeRefusedError
from twin.program.elf import Elf, read_elf
from twin.program.image.compile.source import Source
from twin.program.image.compile.store import choose_port, keep_image
from twin.program.image.read.kernels import read_kernels

Network = tuple[Lowered, ...]


def read_network(deployment: Deployment) -> Network:
    """Return the kernels of every layer from the image of a deployment.

    Parameters
    ----------
    deployment
        With runtime firmware.

    Returns
    -------
    tuple of tuple of Kernel
        One tuple per layer; an alias has none.

    Raises
    ------
    RuntimeRefusedError
        When the board's core is none whose code is read, or has no port.
    ToolMissingError
        When the cross compiler or make is not there.
    """
    return _read(_key_of(deployment))


def read_built_image(path: str | Path) -> Elf:
    """Read an image of an Arm Cortex-M, with its symbols, as `twin firmware build` leaves it.

    Raises
    ------
    FirmwareError
        When it is no such file.
    """
    image = read_elf(path, FirmwareError, "image")
    if not MACHINES[image.machine].images:
        able = " or ".join(one.description for one in MACHINES.values() if one.images)
        raise FirmwareError(f"{path}: of {MACHINES[image.machine].description}; accepted: an image "
                            f"of {able}")
    if image.stripped:
        raise FirmwareError(f"{path}: no symbols; accepted: an image that is not stripped")
    return image


def identify_image(deployment: Deployment) -> str:
    """Return the hash an image is kept under; parameters and errors as of `read_network`."""
    return _key_of(deployment).name


def _key_of(deployment: Deployment) -> _Key:
    port = choose_port(deployment)
    described = load_isa(port.isa)
    if described.dialect not in described.code.images:
        raise RuntimeRefusedError(
            f"runtime firmware: the machine code of a {port.core or port.arch} is not read; "
            "accepted: Cortex-M3 and later; of any other the program itself: `twin firmware "
            "build`, then `twin predict --elf firmware.elf --call infer_once`")
    kept = keep_image(deployment, port=port)
    return _Key(kept.path, kept.key, tuple((one.name, one.address, one.size_bytes) for one in
                                           deployment.board.memories), deployment, kept.source)


@record
class _Key:
    """What is read, equal to another when the image and the memories are the same."""

    path: Path
    name: str
    memories: tuple[tuple[str, int, int], ...]
    deployment: Deployment = field(compare=False)
    source: Source = field(compare=False)


@lru_cache(maxsize=8)
def _read(key: _Key) -> Network:
    return read_kernels(read_built_image(key.path), key.deployment.executed,
                        key.source.placement, key.source.image,
                        lambda address: _memory_at(key.deployment.board, address))


def _memory_at(board: Board, address: int) -> str:
    for memory in board.memories:
        if memory.address <= address < memory.address + memory.size_bytes:
            return memory.name
    raise FirmwareError(f"{board.name}: no memory at 0x{address:08x}, which the image accesses")
