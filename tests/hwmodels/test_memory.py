"""Service times of memories against hand counts, data sheets and each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from array_reads import read_array

from hwmodels.board.external import Sdram, SerialMemory, sdram_cycles, serial_cycles
from hwmodels.board.facts import Memory
from hwmodels.board.file import load_board
from hwmodels.board.memory import (
    bank_numbers,
    burst_cycles,
    sequential_wait_cycles,
)
from hwmodels.errors import BoardError
from hwmodels.paths.refill import clock_ratio, uncached_cycles

FLASH = Memory(name="flash", role="flash", address=0x08000000, size_bytes=1 << 20, wait_states=5,
               read_bytes=16)

FMC = Sdram(bus_bytes=4, banks=4, row_bytes=2048, bank_bytes=8 << 20, cas_cycles=3, rcd_cycles=2,
            rp_cycles=2, wr_cycles=2, rfc_cycles=7, refresh_cycles=1562)
"""IS42S32800J at 100 MHz as ST's board support for the STM32H747I-EVAL sets the FMC: CL 3, tRCD 2,
tRP 2, tWR 2, tRC 7; 512 columns of 4 bytes; 4096 refreshes in 64 ms, one in 15.625 us."""

OCTAL = SerialMemory(mode="8D-8D-8D", command_bits=16, address_bits=32, dummy_cycles=20,
                     select_cycles=2)
"""MX66UW1G45G on the STM32N6570-DK: 8 lines, both edges, 20 dummy cycles at 200 MHz."""


@pytest.mark.parametrize("name", ["stm32n6570_dk", "nucleo_h7a3zi_q", "stm32h747i_disco",
                                  "nucleo_l4r5zi"])
def test_bursts_and_prices_are_one_equation(name):
    """`uncached_cycles` is the burst of a line, beyond the access's own cycle, in core cycles."""
    board = load_board(name)
    checked = 0
    for memory in board.memories:
        if memory.bus is None:
            continue
        cycles = burst_cycles(memory, 32, board.bus(memory.bus).width_bytes)
        assert (float(cycles) - 1) * clock_ratio(board, memory) == pytest.approx(
            uncached_cycles(board, memory, 32))
        checked += 1
    assert checked


def test_a_burst_by_hand():
    """32 bytes, 16 a read, 2 wait states, 8 a beat: reads end in cycles 3 and 6, beats 3 4 6 7."""
    memory = replace(FLASH, wait_states=2)
    assert burst_cycles(memory, 32, 8) == 7
    # Bus bound: 16 bytes in 4 beats, the array waits once: 2 + 4.
    assert burst_cycles(memory, 16, 4) == 6


@pytest.mark.parametrize("wait_states", [1, 2, 4, 7])
def test_doubled_wait_states_double_the_waits_without_buffer_and_prefetch(wait_states):
    rng = np.random.default_rng(wait_states)
    addresses, gaps = rng.integers(0, 4096, 300), rng.integers(0, 9, 300)
    once, twice = (read_array(replace(FLASH, wait_states=factor * wait_states), addresses,
                              gap_cycles=gaps) for factor in (1, 2))
    straddling = np.count_nonzero(addresses % 16 > 12)
    assert once.waits.sum() == wait_states * (300 + straddling)
    assert np.array_equal(twice.waits, 2 * once.waits)
    assert once.array_reads == twice.array_reads == 300 + straddling


def test_no_wait_states_no_waits():
    memory = replace(FLASH, wait_states=0, line_buffer=True, prefetch=True)
    assert not read_array(memory, np.arange(0, 4096, 4)).waits.any()


def test_a_line_buffer_reads_each_line_once():
    reads = read_array(replace(FLASH, line_buffer=True), np.arange(0, 1024, 4))
    assert reads.array_reads == 1024 // 16
    assert reads.waits.sum() == 5 * 1024 // 16
    assert sequential_wait_cycles(replace(FLASH, line_buffer=True), 4) == 5
    assert sequential_wait_cycles(FLASH, 4, accesses=4) == 20


@pytest.mark.parametrize("gap", range(5))
@pytest.mark.parametrize("wait_states", [0, 2, 5, 9])
def test_prefetch_in_steady_state(gap, wait_states):
    """Four words of a line in c = 4 (1 + gap) cycles: max(0, 1 + w - c) per line."""
    memory = replace(FLASH, wait_states=wait_states, line_buffer=True, prefetch=True)
    waits = read_array(memory, np.arange(0, 4096, 4), gap_cycles=gap).waits
    steady = waits.reshape(-1, 4).sum(axis=1)[4:]
    assert set(steady) == {sequential_wait_cycles(memory, 4 * (1 + gap))}


def test_prefetch_hides_but_does_not_save_reads():
    plain = replace(FLASH, line_buffer=True)
    ahead = replace(plain, prefetch=True)
    addresses = np.arange(0, 1024, 4)
    assert read_array(ahead, addresses).waits.sum() < read_array(plain, addresses).waits.sum()
    assert (read_array(ahead, addresses).array_reads
            == read_array(plain, addresses).array_reads + 1)


def test_a_jump_waits_for_the_read_ahead_to_end():
    """The first read ends at 6, the read ahead at 12; a jump at 6 waits 6 + 5."""
    memory = replace(FLASH, line_buffer=True, prefetch=True)
    assert read_array(memory, np.array([0, 512])).waits.tolist() == [5, 6 + 5]


def test_banks():
    assert bank_numbers(np.array([0, 4, 8, 12, 16]), 2, 8).tolist() == [0, 0, 1, 1, 0]


def test_sdram_rows_by_hand():
    addresses = np.array([0, 32, 2048, 2080, 8 << 20, 0])
    # closed: tRCD + CL + 8 beats; open: CL + 8; another row: tRP + tRCD more; open; other bank
    # closed; back in bank 0, whose row 1 is open.
    assert sdram_cycles(FMC, addresses, 32).tolist() == [13, 11, 15, 11, 13, 15]


def test_sdram_writes_and_pieces():
    # A write has no CL: 2 + 8. A read of another row then pays tWR: 2 + 2 + 2 + 3 + 8.
    assert sdram_cycles(FMC, np.array([0, 2048]), 32,
                        write=np.array([True, False])).tolist() == [10, 17]
    # Two words on either side of a row boundary: closed row, then tRP + tRCD; CL twice.
    assert sdram_cycles(FMC, np.array([2040]), 16).tolist() == [2 + 3 + 2 + 2 + 2 + 3 + 2]
    # An unaligned halfword across two words is two beats.
    assert sdram_cycles(FMC, np.array([3]), 2).tolist() == [2 + 3 + 2]


def test_sdram_refresh_share():
    """(2 + 7) / 1562: 0.58 % of the time."""
    assert FMC.refresh_share == pytest.approx(9 / 1562)


def test_octal_flash_in_bulk_reaches_400_megabytes_a_second():
    """8 bit x 2 edges x 200 MHz / 8 = 400 MB/s."""
    assert OCTAL.bits_per_cycle[2] * 200e6 / 8 == 400e6
    size = 4 << 20
    seconds = serial_cycles(OCTAL, size) / 200e6
    assert size / seconds == pytest.approx(400e6, rel=1e-4)
    # One access that goes on where the last ended costs its data only.
    assert serial_cycles(OCTAL, 32, continues=True) == 16


def test_octal_flash_per_access():
    """Command 16 bits and address 32 bits at 16 bits a cycle, 20 dummy: 1 + 2 + 20 before data."""
    assert OCTAL.lead_cycles == 23
    assert serial_cycles(OCTAL, 32) == 2 + 23 + 16
    flash = load_board("stm32n6570_dk").memory("flash")
    assert flash.latency_cycles == pytest.approx(OCTAL.lead_cycles, abs=OCTAL.select_cycles)
    assert flash.bytes_per_cycle == OCTAL.bits_per_cycle[2] / 8


@pytest.mark.parametrize(("mode", "command_bits", "lead", "rate_bytes"), [
    ("1S-1S-1S", 8, 8 + 32 + 8, 1 / 8),
    ("1S-1S-4S", 8, 8 + 32 + 8, 1 / 2),
    ("1S-4S-4S", 8, 8 + 8 + 8, 1 / 2),
    ("4S-4D-4D", 8, 2 + 4 + 8, 1),
    ("8S-8S-8S", 16, 2 + 4 + 8, 1),
    ("8D-8D-8D", 16, 1 + 2 + 8, 2),
    ("8D-8D-16D", 16, 1 + 2 + 8, 4),
])
def test_phases_of_the_xspi_modes(mode, command_bits, lead, rate_bytes):
    """Bits over lines x edges; 8 dummy cycles."""
    part = SerialMemory(mode=mode, command_bits=command_bits, dummy_cycles=8)
    assert part.lead_cycles == lead
    assert serial_cycles(part, 64) == lead + 64 / rate_bytes
    assert part.bits_per_cycle[2] / 8 == rate_bytes


def test_odd_addresses_move_whole_pairs():
    """Three bytes from an odd address on 8 DTR lines: four bytes in two cycles."""
    assert serial_cycles(OCTAL, 3, 1, continues=True) == 2
    assert serial_cycles(OCTAL, 3, 0, continues=True) == 2
    assert serial_cycles(OCTAL, 2, 1, continues=True) == 2


@pytest.mark.parametrize("mode", ["8D", "3S-3S-3S", "8X-8D-8D", ""])
def test_modes_that_do_not_exist_are_refused(mode):
    with pytest.raises(BoardError, match="8D-8D-8D"):
        SerialMemory(mode=mode)
