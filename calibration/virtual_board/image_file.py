"""Firmware images as an emulator loads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.errors import LinkError
from hwmodels.errors import extra_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFile:
    """What is loaded, and where.

    Parameters
    ----------
    pieces : tuple of (int, bytes)
        Load address and content.
    memories : tuple of (int, int)
        Address and size of what has to be there.
    vectors : int
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
    ToolMissingError
        Without pyelftools.
    """
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as error:
        raise extra_missing("images", "pyelftools", "boards") from error
    try:
        with open(path, "rb") as stream:
            elf = ELFFile(stream)
            pieces = tuple((s["p_paddr"], s.data()) for s in elf.iter_segments()
                           if s["p_type"] == "PT_LOAD" and s["p_filesz"])
            kept = [s for s in elf.iter_sections() if s["sh_flags"] & 2 and s["sh_size"]]
            spans = [(s["sh_addr"], s["sh_addr"] + s["sh_size"]) for s in kept]
            text = [(s["sh_addr"], s["sh_addr"] + s["sh_size"]) for s in kept
                    if s["sh_flags"] & 4]
            symbols: Any = elf.get_section_by_name(".symtab")
            vectors = symbols.get_symbol_by_name("vectors") if symbols else None
    except OSError as error:
        raise LinkError(f"{path}: cannot be read ({error.strerror})") from error
    except ELFError as error:
        raise LinkError(f"{path}: not an ELF image ({error})") from error
    if not vectors or not text or not pieces:
        raise LinkError(f"{path}: no code, or no symbol `vectors`, in the image")
    spans += [(address, address + len(data)) for address, data in pieces]
    return ImageFile(pieces=pieces, memories=tuple(_merge_pages(spans)),
                     vectors=vectors[0]["st_value"],
                     code=(min(text)[0], max(end for _, end in text)))


def check_image(path: str | Path, port: str) -> None:
    """Refuse an image that was built for another port than the emulator's.

    Parameters
    ----------
    path : path
        ELF file.
    port : str
        Of `firmware/ports`: what is about to run it.

    Raises
    ------
    LinkError
        Naming the port the image is for, or that it is no image of the firmware.
    ToolMissingError
        Without pyelftools.
    """
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as error:
        raise extra_missing("images", "pyelftools", "boards") from error
    if not Path(path).is_file():
        raise LinkError(f"{path}: no such image")
    try:
        with open(path, "rb") as stream:
            found = _find_port(ELFFile(stream))
    except OSError as error:
        raise LinkError(f"{path}: cannot be read ({error.strerror})") from error
    except ELFError as error:
        raise LinkError(f"{path}: not an ELF image ({error})") from error
    if found is None:
        raise LinkError(f"{path}: not an image of the firmware; accepted: what `twin firmware "
                        f"build --port {port}` makes")
    if port != found and not port.startswith(f"{found}-"):  # all cores of unicorn are one port
        raise LinkError(f"{path}: the image is for port {found}, not {port}, which has other "
                        "clocks and another serial line; accepted: no --image (one is built), or "
                        f"what `twin firmware build MODEL -b BOARD --port {port}` makes")


def _find_port(elf: Any) -> str | None:
    """Name of the port: the first member of `struct port` (firmware/core/port.h)."""
    symbols = elf.get_section_by_name(".symtab")
    table = symbols.get_symbol_by_name("port") if symbols else None
    if not table:
        return None
    if elf.elfclass == 64:  # this machine's: its pointers are filled in when it is loaded
        return "host"
    address = int.from_bytes(_read(elf, table[0]["st_value"])[:4], "little")
    name = _read(elf, address)
    return name.partition(b"\0")[0].decode("ascii", "replace") or None


def _read(elf: Any, address: int) -> bytes:
    """Bytes of the section an address lies in, from there on; none where it lies in none."""
    for section in elf.iter_sections():
        offset = address - section["sh_addr"]
        if section["sh_flags"] & 2 and 0 <= offset < section["sh_size"]:
            return bytes(section.data()[offset:offset + 64])
    return b""


def _merge_pages(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    merged: list[list[int]] = []
    for begin, end in sorted((a // PAGE * PAGE, -(-b // PAGE) * PAGE) for a, b in spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    for begin, end in merged:
        yield begin, end - begin
