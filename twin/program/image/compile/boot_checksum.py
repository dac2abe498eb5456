"""The checksum a boot ROM demands of the first bytes of an image."""

from __future__ import annotations

from pathlib import Path

from hwmodels.program.elf import read_elf_file
from twin.errors import FirmwareError

_POLYNOMIAL = 0x04C11DB7


def boot_checksum(content: bytes) -> int:
    """CRC-32 of a boot stage: not reflected, starting from all ones, not inverted at the end.

    References
    ----------
    RP2040 datasheet, section 2.8.1.3.1 (checksum).
    """
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (_POLYNOMIAL if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return crc


def write_boot_checksum(image: Path, size_bytes: int) -> None:
    """Put the checksum into the last four bytes of an image's boot stage.

    Raises
    ------
    FirmwareError
        When the image has no section .boot of that size.
    """
    elf = read_elf_file(image, FirmwareError)
    section = elf.section(".boot")
    if section is None or section.size_bytes != size_bytes:
        raise FirmwareError(f"{image}: no boot stage of {size_bytes} bytes")
    with image.open("r+b") as file:
        file.seek(section.offset + size_bytes - 4)
        file.write(boot_checksum(elf.data(section)[:-4]).to_bytes(4, "little"))
