"""Firmware images as an emulator loads them."""

from __future__ import annotations

from pathlib import Path

from calibration.errors import LinkError
from hwmodels.frozen import frozen
from hwmodels.program.elf import CODE, Tables, read_elf_file
from hwmodels.program.emulator import merge_pages


@frozen
class ImageFile:
    """What is loaded, and where.

    Parameters
    ----------
    pieces : tuple of (int, bytes)
        Load address and content.
    memories : tuple of (int, int)
        Address and size of what has to be there.
    vectors
        Address of the vector table.
    code : tuple of (int, int)
        First address of code, and the one after the last.
    """

    pieces: tuple[tuple[int, bytes], ...]
    memories: tuple[tuple[int, int], ...]
    vectors: int
    code: tuple[int, int]


PAGE = 1 << 16


def read_image(path: str | Path) -> ImageFile:
    """Read an ELF file built for an emulated core.

    Raises
    ------
    LinkError
        When it is none.
    """
    elf = read_elf_file(path, LinkError)
    pieces = tuple((one.loaded, elf.data(one)) for one in elf.loads if one.file_bytes)
    spans = [(one.address, one.address + one.size_bytes) for one in elf.allocated]
    text = [span for one, span in zip(elf.allocated, spans, strict=True) if one.flags & CODE]
    vectors = elf.symbol("vectors")
    if not vectors or not text or not pieces:
        raise LinkError(f"{path}: no code, or no symbol `vectors`, in the image")
    spans += [(address, address + len(data)) for address, data in pieces]
    return ImageFile(pieces=pieces, memories=tuple(
        (low, high - low) for low, high in merge_pages(spans, PAGE)),
                     vectors=vectors.value, code=(min(text)[0], max(end for _, end in text)))


def check_image(path: str | Path, port: str) -> None:
    """Refuse an image that was built for another port than the emulator's.

    Parameters
    ----------
    path
        ELF file.
    port
        Of `firmware/ports`: what is about to run it.

    Raises
    ------
    LinkError
        Naming the port the image is for, or that it is not an image of the firmware.
    """
    if not Path(path).is_file():
        raise LinkError(f"{path}: no such image")
    found = _find_port(read_elf_file(path, LinkError))
    if found is None:
        raise LinkError(f"{path}: not an image of the firmware; accepted: what `twin firmware "
                        f"build --port {port}` makes")
    if port != found and not port.startswith(f"{found}-"):  # all cores of unicorn are one port
        raise LinkError(f"{path}: the image is for port {found}, not {port}, which has other "
                        "clocks and another serial line; accepted: no --image (one is built), or "
                        f"what `twin firmware build MODEL -b BOARD --port {port}` makes")


def _find_port(elf: Tables) -> str | None:
    """Name of the port: the first member of `struct port` (firmware/core/port.h)."""
    table = elf.symbol("port")
    if table is None:
        return None
    if elf.bits == 64:  # this machine's: its pointers are filled in when it is loaded
        return "host"
    address = int.from_bytes(_read(elf, table.value)[:4], "little")
    name = _read(elf, address)
    return name.partition(b"\0")[0].decode("ascii", "replace") or None


def _read(elf: Tables, address: int) -> bytes:
    """Bytes of the section an address lies in, from there on; none where it lies in none."""
    for section in elf.allocated:
        offset = address - section.address
        if 0 <= offset < section.size_bytes:
            return elf.data(section)[offset:offset + 64]
    return b""
