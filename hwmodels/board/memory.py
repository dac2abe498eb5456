"""Service times of memories, in cycles of the memory's own clock.

Array behind wait states (flash, SRAM, ROM): n bytes with w wait states, a bytes per array read,
b bytes moved per cycle and latency L; within one burst the array is read ahead while the bus
drains what has been read:

    cycles = 1 + L + max(ceil(n/a) (1 + w) + ceil(min(a, n)/b) - 2, w + ceil(n/b) - 1)

Between accesses, a line buffer saves the reads inside the latched line, and a prefetch starts the
next line's read as soon as the array is free. A line that is consumed in c cycles then waits
max(0, 1 + w - c); without prefetch w per line, without a buffer w per access. An array read is
not broken off by another access (assumed).

SDRAM (single data rate), per piece of an access inside one row:

    cycles = controller + {0 row open; tRCD bank closed; tRP + tRCD other row open} + CL + beats

writes without CL, but a bank last written pays tWR before it may be precharged. Refresh takes
(tRP + tRFC) / tREFI of the time, and closes every row.

Serial memory (xSPI: NOR, PSRAM; 1 to 16 lines, S = one edge, D = both edges of the clock):

    cycles = select + command + address + alternate + dummy + data
    phase  = ceil(bits / (lines x edges))

once per command; a new command is needed at a boundary the controller does not cross and when the
part's longest select time is over. An access that continues the one before costs its data only
(the controller keeps the part selected), so the rate in bulk is lines x edges x clock / 8.

References: RM0090 and RM0367 (flash interface, buffers and prefetch), RM0390 and RM0433 (FMC
SDRAM controller), RM0456 and RM0468 (OCTOSPI, memory-mapped mode), JEDEC JESD251 (xSPI),
Infineon 002-31339 (HyperRAM).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hwmodels.errors import BoardError

if TYPE_CHECKING:
    from hwmodels.board.facts import Memory

MODE = re.compile(r"(1|2|4|8|16)(S|D)-(1|2|4|8|16)(S|D)-(1|2|4|8|16)(S|D)")
"""Lines and edges of command, address and data, as JESD251 writes them."""


def burst_cycles(memory: Memory, size_bytes: np.ndarray | int, moved_bytes: float) -> np.ndarray:
    """Return cycles of bursts that read or write whole, from request to last beat.

    Parameters
    ----------
    memory : Memory
        Array behind wait states.
    size_bytes : int or ndarray of int, (bursts,)
        Of each burst.
    moved_bytes : float
        Bytes the bus moves in a cycle of the memory's clock; the memory's own
        `bytes_per_cycle` comes first where it is stated.

    Returns
    -------
    ndarray of float, (bursts,) or ()
        Cycles of the memory's clock, the access's own one included.

    Notes
    -----
    The first equation of the module.
    """
    size, moved = np.asarray(size_bytes), memory.bytes_per_cycle or moved_bytes
    array = (np.ceil(size / memory.read_bytes) * (1 + memory.wait_states)
             + np.ceil(np.minimum(memory.read_bytes, size) / moved) - 2)
    bus = memory.wait_states + np.ceil(size / moved) - 1
    return 1 + memory.latency_cycles + np.maximum(array, bus)


def sequential_wait_cycles(memory: Memory, consume_cycles: float, accesses: int = 1) -> float:
    """Return wait cycles of one array line in the middle of a long sequential read.

    Parameters
    ----------
    memory : Memory
        Array behind wait states.
    consume_cycles : float
        Cycles of the memory's clock from the first access in a line to the first in the next,
        waits apart.
    accesses : int
        Accesses that fall into a line.

    Returns
    -------
    float
        Cycles per line: max(0, 1 + w - c) with prefetch, w with a line buffer, w per access
        without.
    """
    if not memory.line_buffer:
        return float(memory.wait_states * accesses)
    if not memory.prefetch:
        return float(memory.wait_states)
    return max(0.0, 1 + memory.wait_states - consume_cycles)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayReads:
    """What a sequence of reads met in an array behind wait states.

    Parameters
    ----------
    waits : ndarray of int64, (reads,)
        Cycles each read waited: exposed.
    array_reads : int
        Lines read from the array for an access or ahead of one; each holds the array 1 + w
        cycles, so w x array_reads is what occurred.
    """

    waits: np.ndarray
    array_reads: int


def read_array(memory: Memory, addresses: np.ndarray, width_bytes: int = 4,
               gap_cycles: np.ndarray | int = 0) -> ArrayReads:
    """Read an array access by access: line buffer, prefetch and time in between.

    Parameters
    ----------
    memory : Memory
        Array behind wait states.
    addresses : ndarray of int, (reads,)
        First byte of each.
    width_bytes : int
        Bytes of each; a read that straddles lines needs them all.
    gap_cycles : int or ndarray of int, (reads,)
        Cycles of the memory's clock between the end of the read before and this one.

    Returns
    -------
    ArrayReads
        Waits per read, array reads.

    Notes
    -----
    A read without wait takes one cycle per line it touches. One read a step, in Python: for
    patterns, not networks.
    """
    period, ahead = 1 + memory.wait_states, memory.prefetch and memory.line_buffer
    addresses = np.asarray(addresses)
    gaps = np.broadcast_to(gap_cycles, addresses.shape)
    latched = coming = -1
    now = free = ready = reads = 0
    waits = np.zeros(len(addresses), np.int64)
    for row, (address, gap) in enumerate(zip(addresses.tolist(), gaps.tolist(), strict=True)):
        now += gap
        for line in range(address // memory.read_bytes,
                          (address + width_bytes - 1) // memory.read_bytes + 1):
            now += 1
            if memory.line_buffer and line == latched:
                continue
            if line != coming:
                ready = max(now - 1, free) + period
                reads += 1
            wait = max(0, ready - now)
            waits[row] += wait
            now += wait
            latched = line
            if ahead:
                # The next read starts when the array is free and the buffer is being emptied.
                coming, ready = line + 1, max(now - 1, ready) + period
                reads += 1
            free = ready
    return ArrayReads(waits=waits, array_reads=reads)


def bank_numbers(addresses: np.ndarray, banks: int, interleave_bytes: int) -> np.ndarray:
    """Return the bank each address lies in.

    Parameters
    ----------
    addresses : ndarray of int, (accesses,)
        From the memory's first byte.
    banks : int
        Of the memory.
    interleave_bytes : int
        Consecutive bytes of one bank before the next begins.

    Returns
    -------
    ndarray of int64, (accesses,)
        0 to banks - 1.
    """
    return np.asarray(addresses, np.int64) // interleave_bytes % banks


def banks_of(memory: Memory, addresses: np.ndarray) -> np.ndarray:
    """Return the bank of each address: pieces of one size, or interleaved where stated."""
    size = memory.interleave_bytes or -(-memory.size_bytes // memory.banks)
    return bank_numbers(addresses - memory.address, memory.banks, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdram:
    """A single-data-rate SDRAM and its controller; cycles of the SDRAM clock.

    Parameters
    ----------
    bus_bytes : int
        Data lines over eight.
    banks : int
        Each holds one row open.
    row_bytes : int
        Columns x bus bytes.
    bank_bytes : int
        Consecutive bytes of a bank before the next: rows x row bytes where the bank is the top
        of the address (STM32 FMC), `row_bytes` where rows interleave.
    cas_cycles, rcd_cycles, rp_cycles, wr_cycles, rfc_cycles : int
        CL, tRCD, tRP, tWR, tRFC.
    refresh_cycles : int
        tREFI: cycles between refreshes.
    controller_cycles : int
        Of the controller, per piece of an access.
    """

    bus_bytes: int
    banks: int
    row_bytes: int
    bank_bytes: int
    cas_cycles: int
    rcd_cycles: int
    rp_cycles: int
    wr_cycles: int
    rfc_cycles: int
    refresh_cycles: int
    controller_cycles: int = 0

    @property
    def refresh_share(self) -> float:
        """Share of the time no access is served: (tRP + tRFC) / tREFI."""
        return (self.rp_cycles + self.rfc_cycles) / self.refresh_cycles


def sdram_cycles(part: Sdram, addresses: np.ndarray, size_bytes: np.ndarray | int,
                 write: np.ndarray | bool = False) -> np.ndarray:
    """Return cycles of accesses to an SDRAM, in order, all banks closed at first.

    Parameters
    ----------
    part : Sdram
        Timings.
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
    The second equation of the module, for each row an access touches.
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
    cycles = part.controller_cycles + beats + np.where(writes[owner], 0, part.cas_cycles)
    order = np.argsort(start // part.bank_bytes % part.banks, kind="stable")
    bank = (start // part.bank_bytes % part.banks)[order]
    fresh = np.diff(bank, prepend=-1) != 0
    other = ~fresh & (np.diff(row[order], prepend=-1) != 0)
    written = np.roll(writes[owner][order], 1)
    cycles[order] += (np.where(fresh | other, part.rcd_cycles, 0)
                      + np.where(other, part.rp_cycles + written * part.wr_cycles, 0))
    return np.bincount(owner, cycles, len(first)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialMemory:
    """A memory behind an xSPI controller; cycles of the serial clock.

    Parameters
    ----------
    mode : str
        Lines and edges of command, address and data: "1S-1S-4S", "8D-8D-8D", "8D-8D-16D".
    command_bits : int
        8; 16 where the command is extended (octal DTR).
    address_bits : int
        24 or 32.
    alternate_bits : int
        Mode bits after the address, on its lines.
    dummy_cycles, write_dummy_cycles : int
        Between address and data.
    select_cycles : int
        Select going low and the shortest time it stays high between commands.
    boundary_bytes : int
        The controller starts a new command where an access crosses a multiple of it; 0: never.
    longest_select_cycles : int
        The part refreshes itself while not selected, so longer accesses are cut (tCSM); 0: any.

    Raises
    ------
    BoardError
        For a mode that is not of that form.
    """

    mode: str
    command_bits: int = 8
    address_bits: int = 32
    alternate_bits: int = 0
    dummy_cycles: int = 0
    write_dummy_cycles: int = 0
    select_cycles: int = 0
    boundary_bytes: int = 0
    longest_select_cycles: int = 0

    def __post_init__(self) -> None:
        if not MODE.fullmatch(self.mode):
            raise BoardError(f"serial memory: mode {self.mode!r}; accepted: lines 1, 2, 4, 8 or 16 "
                             "and edges S or D of command, address and data, as in '8D-8D-8D'")
        room = self.longest_select_cycles - self.lead_cycles(write=False)
        if self.longest_select_cycles and room < 1:
            raise BoardError(f"serial memory: longest_select_cycles {self.longest_select_cycles}; "
                             f"accepted: above {self.lead_cycles(write=False)}, what comes before "
                             "data, or 0")

    @property
    def bits_per_cycle(self) -> tuple[int, int, int]:
        """Bits of command, address and data that move in a cycle."""
        command, address, data = (int(phase[:-1]) * (2 if phase.endswith("D") else 1)
                                  for phase in self.mode.split("-"))
        return command, address, data

    def lead_cycles(self, *, write: bool = False) -> int:
        """Return cycles from select to the first data."""
        command, address, _ = self.bits_per_cycle
        return (math.ceil(self.command_bits / command) + math.ceil(self.address_bits / address)
                + math.ceil(self.alternate_bits / address)
                + (self.write_dummy_cycles if write else self.dummy_cycles))

    def bulk_bytes_per_second(self, clock_hz: float) -> float:
        """Return the rate of data alone: lines x edges x clock / 8."""
        return self.bits_per_cycle[2] * clock_hz / 8


def serial_cycles(part: SerialMemory, size_bytes: np.ndarray | int,
                  addresses: np.ndarray | int = 0, *, write: bool = False,
                  continues: np.ndarray | bool = False) -> np.ndarray:
    """Return cycles of accesses to a serial memory.

    Parameters
    ----------
    part : SerialMemory
        Phases.
    size_bytes : int or ndarray of int, (accesses,)
        Of each.
    addresses : int or ndarray of int, (accesses,)
        From the part's first byte.
    write : bool
        Whether they write.
    continues : bool or ndarray of bool, (accesses,)
        Which of them follow the one before without a gap, the part still selected.

    Returns
    -------
    ndarray of int64, (accesses,) or ()
        Cycles of the serial clock.

    Notes
    -----
    The third equation of the module. Both edges of a cycle carry data, so an access with an odd
    start or end on 8 lines moves whole pairs of bytes.
    """
    first, size = np.asarray(addresses, np.int64), np.asarray(size_bytes, np.int64)
    bits = part.bits_per_cycle[2]
    unit = max(1, bits // 8)
    moved = -(-(first + size) // unit) * unit - first // unit * unit
    data = -(-8 * moved // bits)
    lead = part.lead_cycles(write=write)
    cuts = np.zeros_like(data)
    if part.boundary_bytes:
        cuts = cuts + (first + size - 1) // part.boundary_bytes - first // part.boundary_bytes
    if part.longest_select_cycles:
        cuts = np.maximum(cuts, -(-data // (part.longest_select_cycles - lead)) - 1)
    commands = cuts + np.where(continues, 0, 1)
    return commands * (part.select_cycles + lead) + data
