"""What an image takes of flash and RAM, from its ELF file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from hwmodels.board.facts import FLASH_ROLES, Board
from hwmodels.frozen import NamedTexts, frozen
from hwmodels.program.elf import WRITABLE, Tables, read_elf_file
from twin.errors import FirmwareError


@frozen
class MemoryUse:
    """What an image takes of one memory.

    Parameters
    ----------
    name
        Of the board's.
    flash
        Whether it is not written while the image runs.
    used_bytes, size_bytes
        Taken by what lies there and what is kept there to be copied; and all of it.
    kept_bytes
        Of what is taken: kept to be copied elsewhere.
    """

    name: str
    flash: bool
    used_bytes: int
    size_bytes: int
    kept_bytes: int = 0


@frozen
class ImageSizes:
    """Sections of an image by what they hold.

    Parameters
    ----------
    code_bytes
        Instructions and constants other than the model's weights.
    weights_bytes
        The model's constants.
    data_bytes
        Initialised data: in flash and in RAM.
    bss_bytes
        Zeroed data: buffers of the run loop, the copy of the input.
    arena_bytes
        Activations and scratch.
    weights_in_ram
        Whether the constants are copied to RAM at start.
    memories
        By memory of the board; none where the image is not linked to its memories.
    placement : tuple of (str, str)
        Where weights, arena and code lie while it runs: role and memory; none where `memories` is.
    """

    code_bytes: int
    weights_bytes: int
    data_bytes: int
    bss_bytes: int
    arena_bytes: int
    stack_bytes: int
    weights_in_ram: bool
    memories: tuple[MemoryUse, ...] = ()
    placement: NamedTexts = ()

    @property
    def lies_in_ram(self) -> bool:
        """Whether something else, a boot loader or a debugger, brings all of it into RAM."""
        return bool(self.memories) and not any(one.flash for one in self.memories)

    @property
    def flash_bytes(self) -> int:
        """What is programmed; nothing of an image that lies in RAM."""
        if self.memories:
            return sum(one.used_bytes for one in self.memories if one.flash)
        return self.code_bytes + self.weights_bytes + self.data_bytes

    @property
    def ram_bytes(self) -> int:
        """What is taken at run time."""
        if self.memories:
            return sum(one.used_bytes for one in self.memories if not one.flash)
        return (self.data_bytes + self.bss_bytes + self.arena_bytes + self.stack_bytes
                + (self.weights_bytes if self.weights_in_ram else 0))


def read_sizes(path: Path, board: Board | None = None) -> ImageSizes:
    """Read the sizes of an image.

    Parameters
    ----------
    path
        ELF file.
    board
        Whose memories it may be linked to.

    Raises
    ------
    FirmwareError
        When it is not an ELF file.
    """
    totals = dict.fromkeys(("code", "weights", "data", "bss", "arena", "stack"), 0)
    in_ram = False
    elf = read_elf_file(path, FirmwareError)
    loads = [(one.runs, one.loaded, one.memory_bytes) for one in elf.loads]
    for one in elf.allocated:
        kind = _kind(one.name, bool(one.flags & WRITABLE), not one.stored)
        totals[kind] += one.size_bytes
        if kind == "weights":
            in_ram = any(start <= one.address < start + size and start != load
                         for start, load, size in loads) and _is_copied(elf)
    memories = () if board is None else share_memories(
        ((one.address, one.size_bytes, one.stored) for one in elf.allocated), loads, board) or ()
    return ImageSizes(weights_in_ram=in_ram, memories=memories,
                      placement=() if board is None or not memories else _place(elf, board),
                      **{f"{name}_bytes": size for name, size in totals.items()})


def share_memories(sections: Iterable[tuple[int, int, bool]],
                   loads: Sequence[tuple[int, int, int]], board: Board
                   ) -> tuple[MemoryUse, ...] | None:
    """Return what a program takes of memories: where it runs, and where copies of it are kept.

    Parameters
    ----------
    sections : iterable of (int, int, bool)
        Address at run time, bytes, and whether the file has the content.
    loads : sequence of (int, int, int)
        Segments: address at run time, load address, bytes.

    Returns
    -------
    tuple of MemoryUse, or None
        None where something lies in no memory of the board.

    Notes
    -----
    Windows on one memory are one place: what is loaded through another is not copied. RAM that
    keeps what start-up copies elsewhere counts as taken: nothing gives it back.
    """
    find = partial(_find, board)
    taken, kept = Counter[str](), Counter[str]()
    for start, size, stored in sections:
        runs = find(start)
        places = {find(start - at + loaded) for at, loaded, length in loads
                  if stored and at <= start < at + length} - {runs}
        if runs is None or None in places:
            return None
        for name, _ in (runs, *(place for place in places if place is not None)):
            taken[name] += size
        for name, _ in (place for place in places if place is not None):
            kept[name] += size
    return tuple(MemoryUse(name=one.name, flash=one.role in FLASH_ROLES,
                           used_bytes=taken[one.name], size_bytes=one.size_bytes,
                           kept_bytes=kept[one.name])
                 for one in board.memories if one.name in taken)


def _find(board: Board, address: int) -> tuple[str, int] | None:
    """Memory an address is of, and where in it."""
    return next(((one.name, address - low) for one in board.memories
                 for low, high in one.spans if low <= address < high), None)


def _place(elf: Tables, board: Board) -> NamedTexts:
    """Return which memory has weights, arena and code, of those that are sections."""
    found = {one.name: _find(board, one.address) for one in elf.allocated}
    places = ((role, found.get(name)) for role, name in (
        ("weights", ".model_weights"), ("arena", ".model_arena"), ("code", ".text")))
    return tuple((role, place[0]) for role, place in places if place is not None)


def _is_copied(elf: Tables) -> bool:
    """Whether start-up copies the weights: a second window of the same flash is no copy."""
    places = {one.value for one in elf.symbols if one.name in ("weights_load", "weights_start")}
    return len(places) != 1


def _kind(name: str, writable: bool, empty: bool) -> str:
    named = {".model_weights": "weights", ".model_arena": "arena", ".stack": "stack"}
    if name in named:
        return named[name]
    if not writable:
        return "code"
    return "bss" if empty else "data"
