"""What an image takes of flash and RAM, from its ELF file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwmodels.errors import extra_missing
from twin.errors import FirmwareError


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSizes:
    """Sections of an image by what they hold.

    Parameters
    ----------
    code_bytes : int
        Instructions and constants other than the model's weights.
    weights_bytes : int
        The model's constants.
    data_bytes : int
        Initialised data: in flash and in RAM.
    bss_bytes : int
        Zeroed data: buffers of the run loop, the copy of the input.
    arena_bytes : int
        Activations and scratch.
    stack_bytes : int
        Reserved.
    weights_in_ram : bool
        Whether the constants are copied to RAM at start.
    """

    code_bytes: int
    weights_bytes: int
    data_bytes: int
    bss_bytes: int
    arena_bytes: int
    stack_bytes: int
    weights_in_ram: bool

    @property
    def flash_bytes(self) -> int:
        """What is programmed."""
        return self.code_bytes + self.weights_bytes + self.data_bytes

    @property
    def ram_bytes(self) -> int:
        """What is taken at run time."""
        return (self.data_bytes + self.bss_bytes + self.arena_bytes + self.stack_bytes
                + (self.weights_bytes if self.weights_in_ram else 0))


def read_sizes(path: Path) -> ImageSizes:
    """Read the sizes of an image.

    Raises
    ------
    ToolMissingError
        Without the `boards` extra.
    FirmwareError
        When it is no ELF file.
    """
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as error:
        raise extra_missing("sizes of images", "pyelftools", "boards") from error
    totals = dict.fromkeys(("code", "weights", "data", "bss", "arena", "stack"), 0)
    in_ram = False
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            loads = [(segment["p_vaddr"], segment["p_paddr"], segment["p_memsz"])
                     for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
            for section in elf.iter_sections():
                if not section["sh_flags"] & 2 or not section["sh_size"]:  # SHF_ALLOC
                    continue
                kind = _kind(section.name, bool(section["sh_flags"] & 1),
                             section["sh_type"] == "SHT_NOBITS")
                totals[kind] += section["sh_size"]
                if kind == "weights":
                    in_ram = any(start <= section["sh_addr"] < start + size and start != load
                                 for start, load, size in loads) and _is_copied(elf)
    except ELFError as error:
        raise FirmwareError(f"{path}: no ELF image ({error})") from error
    return ImageSizes(weights_in_ram=in_ram,
                      **{f"{name}_bytes": size for name, size in totals.items()})


def _is_copied(elf: Any) -> bool:
    """Whether start-up copies the weights: a second window of the same flash is no copy."""
    table = elf.get_section_by_name(".symtab")
    places = [symbol["st_value"] for name in ("weights_load", "weights_start")
              for symbol in (table.get_symbol_by_name(name) or () if table else ())]
    return len(set(places)) != 1


def _kind(name: str, writable: bool, empty: bool) -> str:
    named = {".model_weights": "weights", ".model_arena": "arena", ".stack": "stack"}
    if name in named:
        return named[name]
    if not writable:
        return "code"
    return "bss" if empty else "data"
