"""Memories outside the chip: service times in cycles of their own clock.

SDRAM (single data rate), per piece of an access inside one row:

    cycles = {0 row open; tRCD bank closed; tRP + tRCD other row open} + CL + beats

writes without CL, but a bank last written pays tWR before it may be precharged. Refresh takes
(tRP + tRFC) / tREFI of the time, and closes every row.

Serial memory (xSPI: NOR, PSRAM; 1 to 16 lines, S = one edge, D = both edges of the clock):

    cycles = select + command + address + dummy + data
    phase  = ceil(bits / (lines x edges))

writes without dummy cycles. An access that continues the one before costs its data only (the
controller keeps the part selected), so the rate in bulk is lines x edges x clock / 8.

References: RM0390 and RM0433 (FMC SDRAM controller), RM0456 and RM0468 (OCTOSPI, memory-mapped
mode), JEDEC JESD251 (xSPI), Infineon 002-31339 (HyperRAM).
"""

from __future__ import annotations

import math
import re
from typing import Annotated

import numpy as np

from hwmodels.board.declaration import COUNT, SIZE, TEXT, WHOLE_CYCLES, Key
from hwmodels.errors import BoardError
from hwmodels.frozen import frozen

MODE = re.compile(r"(1|2|4|8|16)(S|D)-(1|2|4|8|16)(S|D)-(1|2|4|8|16)(S|D)")
"""Lines and edges of command, address and data, as JESD251 writes them."""


@frozen
class Sdram:
    """A single-data-rate SDRAM; cycles of the SDRAM clock."""

    bus_bytes: Annotated[int, Key(SIZE, "Data lines over eight.")]
    banks: Annotated[int, Key(COUNT, "Each holds one row open.")]
    row_bytes: Annotated[int, Key(SIZE, "Columns times `bus_bytes`.")]
    bank_bytes: Annotated[int, Key(
        SIZE, "Consecutive bytes of a bank before the next: rows times `row_bytes` where the bank "
              "is the top of the address (STM32 FMC), `row_bytes` where rows interleave.")]
    cas_cycles: Annotated[int, Key(WHOLE_CYCLES, "CL.")]
    rcd_cycles: Annotated[int, Key(WHOLE_CYCLES, "tRCD.")]
    rp_cycles: Annotated[int, Key(WHOLE_CYCLES, "tRP.")]
    wr_cycles: Annotated[int, Key(WHOLE_CYCLES, "tWR.")]
    rfc_cycles: Annotated[int, Key(WHOLE_CYCLES, "tRFC.")]
    refresh_cycles: Annotated[int, Key(WHOLE_CYCLES, "tREFI: cycles between refreshes.")]

    @property
    def refresh_share(self) -> float:
        """Share of the time no access is served: (tRP + tRFC) / tREFI."""
        return (self.rp_cycles + self.rfc_cycles) / self.refresh_cycles


def sdram_cycles(part: Sdram, addresses: np.ndarray, size_bytes: np.ndarray | int,
                 write: np.ndarray | bool = False) -> np.ndarray:
    """Return cycles of accesses to an SDRAM, in order, all banks closed at first.

    Parameters
    ----------
    addresses : ndarray of int, (accesses,)
        From the part's first byte.
    size_bytes : int or ndarray of int, (accesses,)
        Of each.
    write : bool or ndarray of bool, (accesses,)
        Which of them write.

    Returns
    -------
    ndarray of int64, (accesses,)
        Cycles of the SDRAM clock; refresh apart, see `Sdram.refresh_share`.

    Notes
    -----
    The first equation of the module, for each row an access touches.
    """
    first = np.asarray(addresses, np.int64)
    size = np.broadcast_to(np.asarray(size_bytes, np.int64), first.shape)
    writes = np.broadcast_to(write, first.shape)
    rows = (first + size - 1) // part.row_bytes - first // part.row_bytes + 1
    owner = np.repeat(np.arange(len(first)), rows)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(rows) - rows, rows)
    row = first[owner] // part.row_bytes + number
    start = np.maximum(first[owner], row * part.row_bytes)
    stop = np.minimum((first + size)[owner], (row + 1) * part.row_bytes)
    beats = -(-stop // part.bus_bytes) - start // part.bus_bytes
    cycles = beats + np.where(writes[owner], 0, part.cas_cycles)
    order = np.argsort(start // part.bank_bytes % part.banks, kind="stable")
    bank = (start // part.bank_bytes % part.banks)[order]
    fresh = np.diff(bank, prepend=-1) != 0
    other = ~fresh & (np.diff(row[order], prepend=-1) != 0)
    written = np.roll(writes[owner][order], 1)
    cycles[order] += (np.where(fresh | other, part.rcd_cycles, 0)
                      + np.where(other, part.rp_cycles + written * part.wr_cycles, 0))
    return np.bincount(owner, cycles, len(first)).astype(np.int64)


@frozen
class SerialMemory:
    """A memory behind an xSPI controller; cycles of the serial clock.

    Raises
    ------
    BoardError
        For a mode that is not of that form.
    """

    mode: Annotated[str, Key(
        TEXT, "Lines and edges of command, address and data: 1S-1S-4S, 8D-8D-8D, 8D-8D-16D.")]
    command_bits: Annotated[int, Key(
        WHOLE_CYCLES, "8; 16 where the command is extended (octal DTR).", required=True)] = 8
    address_bits: Annotated[int, Key(WHOLE_CYCLES, "24 or 32.", required=True)] = 32
    dummy_cycles: Annotated[int, Key(WHOLE_CYCLES, "Between address and data.", required=True)] = 0
    select_cycles: Annotated[int, Key(
        WHOLE_CYCLES, "Select going low and the shortest time it stays high between commands.")] = 0

    def __post_init__(self) -> None:
        """Refuse a mode that is not known."""
        if not MODE.fullmatch(self.mode):
            raise BoardError(f"serial memory: mode {self.mode!r}; accepted: lines 1, 2, 4, 8 or 16 "
                             "and edges S or D of command, address and data, as in '8D-8D-8D'")

    @property
    def bits_per_cycle(self) -> tuple[int, int, int]:
        """Bits of command, address and data that move in a cycle."""
        command, address, data = (int(phase[:-1]) * (2 if phase.endswith("D") else 1)
                                  for phase in self.mode.split("-"))
        return command, address, data

    @property
    def lead_cycles(self) -> int:
        """Cycles from select to the first data of a read."""
        command, address, _ = self.bits_per_cycle
        return (math.ceil(self.command_bits / command) + math.ceil(self.address_bits / address)
                + self.dummy_cycles)


def serial_cycles(part: SerialMemory, size_bytes: int, address: int = 0, *,
                  write: bool = False, continues: bool = False) -> int:
    """Return cycles of an access to a serial memory, of its clock.

    Parameters
    ----------
    address
        From the part's first byte.
    continues
        Whether it follows the one before without a gap, the part still selected.

    Notes
    -----
    The second equation of the module. Both edges of a cycle carry data, so an access with an odd
    start or end on 8 lines moves whole pairs of bytes.
    """
    bits = part.bits_per_cycle[2]
    unit = max(1, bits // 8)
    moved = -(-(address + size_bytes) // unit) * unit - address // unit * unit
    return -(-8 * moved // bits) + (
        0 if continues else part.select_cycles + part.lead_cycles - write * part.dummy_cycles)
