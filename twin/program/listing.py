"""Assembly text of a program with Helium, which only binutils disassemble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calibration.virtual_board.listing import Listing
from twin.image.read.image import Listed, disassemble


@dataclass(kw_only=True)
class ToolListing(Listing):
    """Blocks of a file, as the cross compiler's binutils write them.

    Parameters
    ----------
    path : Path
        ELF file.
    """

    path: Path

    @cached_property
    def instructions(self) -> Mapping[int, Listed]:
        """All of the file's, by address."""
        return disassemble(self.path)

    def text(self, address: int, code: bytes) -> str:
        """Return the assembly text of a block."""
        lines, place = [], address
        while place < address + len(code):
            one = self.instructions.get(place)
            if one is None:
                return Listing.text(self, address, code)
            lines.append(one.text)
            place += one.size_bytes
        return "\n".join(lines)
