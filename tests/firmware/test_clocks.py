"""Ports' clocks on an emulated core: what their registers say afterwards is the board's own clock.

A model answers as the device header names the bits: an oscillator or a voltage that was asked
for is ready, a clock that was chosen runs. No part was asked.
"""

from __future__ import annotations

import subprocess

import pytest
from made_networks import needs_tools

pytest.importorskip("unicorn", reason="needs the boards extra")

import unicorn
from unicorn import arm_const as arm

from hwmodels.board.file import load_board
from twin.program.image.compile.ports import firmware_folder, load_port

pytestmark = needs_tools("arm-none-eabi-gcc")
PORTS = firmware_folder() / "ports"
RCC, PWR, FLASH = 0x58024400, 0x58024800, 0x52002000
H7 = ("nucleo_h723zg", "nucleo_h7a3zi_q", "stm32h747i_disco")
RETURN = 0x0800F000


class Registers:
    """Memory in place of all registers; `rules` are (written, bits, read, bits that follow)."""

    def __init__(self, name: str, folder, rules, preset=(), *defines: str) -> None:
        port = load_port(name)
        families = [name, *port.settings["FAMILY"].split()]
        source = next(PORTS / family / "clocks.c" for family in families
                      if (PORTS / family / "clocks.c").is_file())
        image = folder / "clocks.elf"
        includes = [f"-I{PORTS / family}" for family in families]
        subprocess.run(["arm-none-eabi-gcc", "-std=c99", "-mthumb", f"-mcpu={port.core}", "-O2",
                        "-ffreestanding", "-nostdlib", *defines,
                        "-Wl,-Ttext=0x08000000,--entry=0",
                        f"-I{PORTS.parent / 'core'}", f"-I{PORTS.parent / 'protocol'}", *includes,
                        str(source), "-lgcc", "-o", str(image)], check=True)
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", str(image),
                        str(folder / "clocks.bin")], check=True)
        listed = subprocess.run(["arm-none-eabi-nm", str(image)], capture_output=True, text=True,
                                check=True).stdout.splitlines()
        self.symbols = {line.split()[-1]: int(line.split()[0], 16) for line in listed}
        self.machine = unicorn.Uc(unicorn.UC_ARCH_ARM,
                                  unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        for base in (0x08000000, 0x20000000, 0x40000000, 0x50000000, 0x52000000, 0x56000000,
                     0x58000000, 0xE0000000):
            self.machine.mem_map(base, 0x01000000)
        self.machine.mem_write(0x08000000, (folder / "clocks.bin").read_bytes())
        for address, value in preset:
            self.set(address, value)
        self.rules = rules
        self.machine.hook_add(unicorn.UC_HOOK_MEM_WRITE, self._written, begin=0x40000000,
                              end=0x5FFFFFFF)

    def _written(self, machine, access, address, size, value, data) -> None:
        for place, mask, shown, follow in self.rules:
            if place == address:
                shift = (follow & -follow).bit_length() - (mask & -mask).bit_length()
                bits = (value & mask) << shift if shift > 0 else (value & mask) >> -shift
                if shown == address:  # the write itself is still to come
                    self.later.append((shown, bits, follow))
                else:
                    self.set(shown, self.get(shown) & ~follow | bits & follow)

    def set(self, address: int, value: int) -> None:
        self.machine.mem_write(address, value.to_bytes(4, "little"))

    def get(self, address: int) -> int:
        return int.from_bytes(self.machine.mem_read(address, 4), "little")

    def call(self, name: str) -> int:
        self.machine.reg_write(arm.UC_ARM_REG_SP, 0x20010000)
        self.machine.reg_write(arm.UC_ARM_REG_LR, RETURN | 1)
        place = self.symbols[name] | 1
        for _ in range(10_000):  # step by step, so that ready bits appear beside what was written
            self.later = []
            self.machine.emu_start(place, RETURN, count=1)
            for shown, bits, follow in self.later:
                self.set(shown, self.get(shown) & ~follow | bits & follow)
            place = self.machine.reg_read(arm.UC_ARM_REG_PC)
            if place == RETURN:
                return self.machine.reg_read(arm.UC_ARM_REG_R0)
            place |= 1
        raise AssertionError(f"{name} waits for ever at {place:#x}")


def check_against_board(name: str, hz: int, flash_waits: int) -> None:
    board = load_board(name)
    assert hz == board.clock(board.core.clock).frequency_hz
    assert flash_waits == board.memory("flash").wait_states


RULES_H7 = ((RCC, 1, RCC, 1 << 2), (RCC, 1 << 24, RCC, 1 << 25),
            (RCC + 0x10, 7, RCC + 0x10, 7 << 3))
READY_H7 = ((PWR + 0x04, 1 << 13), (PWR + 0x18, 1 << 13), (RCC, 1 << 2))


@pytest.mark.parametrize("name", H7)
def test_pll_of_the_h7(name, tmp_path):
    """PLL1: HSI of 64 MHz / M x N / P; the bus and the UART are where the variant says."""
    part = Registers(name, tmp_path, RULES_H7, (*READY_H7, (FLASH + 0x70, 4)))
    part.call("start_clocks")
    divider = part.get(RCC + 0x30)
    hz = 64_000_000 // (part.get(RCC + 0x28) >> 4) * ((divider & 0x1FF) + 1) // (
        (divider >> 9 & 0x7F) + 1)
    assert part.call("find_cpu_hz") == hz
    check_against_board(name, hz, part.get(FLASH) & 15)
    assert part.get(RCC + 0x10) & 7 == 3 and part.get(RCC) >> 24 & 1
    assert part.get(RCC + 0x18) & 15 == (0 if name == "nucleo_h7a3zi_q" else 8)  # the bus: / 1, / 2
    vco = hz * ((divider >> 9 & 0x7F) + 1)
    assert 192_000_000 <= vco <= 836_000_000  # wide range of the PLL


def test_without_the_option_the_h723_runs_at_520_mhz(tmp_path):
    part = Registers("nucleo_h723zg", tmp_path, RULES_H7, READY_H7)
    part.call("start_clocks")
    assert part.call("find_cpu_hz") == 520_000_000 and (part.get(RCC + 0x30) & 0x1FF) == 259


def test_pll_of_the_f746(tmp_path):
    rcc, power = 0x40023800, 0x40007000
    part = Registers("nucleo_f746zg", tmp_path, (
        (rcc, 1, rcc, 2), (rcc, 1 << 24, rcc, 1 << 25), (rcc + 8, 3, rcc + 8, 3 << 2),
        (power, 1 << 16, power + 4, 1 << 16), (power, 1 << 17, power + 4, 1 << 17)))
    part.call("start_clocks")
    pll = part.get(rcc + 4)
    hz = 16_000_000 // (pll & 0x3F) * (pll >> 6 & 0x1FF) // (2 * (pll >> 16 & 3) + 2)
    check_against_board("nucleo_f746zg", hz, part.get(0x40023C00) & 15)
    assert part.get(rcc + 8) >> 10 & 7 == 5  # APB1 and the UART at a quarter


def test_the_nrf5340_runs_undivided(tmp_path):
    part = Registers("nrf5340dk", tmp_path, (), ((0x50005558, 1),))  # halved at reset
    part.call("start_core_clock")
    assert part.get(0x50005558) == 0


def test_pll_of_the_pico_2(tmp_path):
    """12 MHz x FBDIV / both dividers; what is asked is ready, the PLL locks when written."""
    pll, clocks = 0x40050000, 0x40010000
    part = Registers("rpi_pico2", tmp_path, ((pll, 1, pll, 1 << 31),), (
        (0x40048004, 1 << 31), (clocks + 0x38, 1 << 2), (clocks + 0x44, 1 << 1),
        (0x40020008, 1 << 14)))
    part.call("start_clocks")
    divider = part.get(pll + 0x0C)
    hz = 12_000_000 * part.get(pll + 8) // (divider >> 16 & 7) // (divider >> 12 & 7)
    board = load_board("rpi_pico2")
    assert hz == board.clock(board.core.clock).frequency_hz
    assert 400_000_000 <= 12_000_000 * part.get(pll + 8) <= 1_600_000_000  # of the VCO


def test_pll_of_the_ra6m4(tmp_path):
    """24 MHz / 3 x (PLLMUL + 1) / 2; three wait states of the flash."""
    system = 0x4001E000
    part = Registers("ek_ra6m4", tmp_path, (), ((system + 0x3C, 1 << 3 | 1 << 5),))
    part.call("start_clocks")
    setting = part.get(system + 0x28) & 0xFFFF
    hz = 24_000_000 // ((setting & 3) + 1) * ((setting >> 8 & 0x3F) + 1) // 2
    check_against_board("ek_ra6m4", hz, part.get(0x4001C11C) & 0xFF)
    assert part.get(system + 0x24) >> 16 & 7 == 5  # SCKSCR


@pytest.mark.parametrize(("hz", "defines"), [(800_000_000, ()), (600_000_000, ("-DCORE_600",))])
def test_pll_of_the_n6(hz, defines, tmp_path):
    """64 MHz / M x N / both post-dividers / the core's divider; ones written to CSR switch on."""
    rcc, power = 0x56028000, 0x56024800
    part = Registers("stm32n6570_dk", tmp_path, (
        (rcc + 0x800, 1 << 3, rcc + 4, 1 << 3), (rcc + 0x800, 1 << 8, rcc + 4, 1 << 8),
        (rcc + 0x1000, 1 << 8, rcc + 4, 0), (power + 0x20, 1, power + 0x20, 2),
        (rcc + 0x20, 3 << 16, rcc + 0x20, 3 << 20), (rcc + 0x20, 3 << 24, rcc + 0x20, 3 << 28)),
        ((power, 4), (power + 0x20, 1 << 17), (rcc + 0x88, 0x4900000D)), "-DSETTLE_US=1", *defines)
    part.call("start_clocks")
    pll, post = part.get(rcc + 0x80), part.get(rcc + 0x88)
    vco = 64_000_000 // (pll >> 20 & 0x3F) * (pll >> 8 & 0xFFF)
    assert post >> 30 & 1 and not post >> 3 & 1 and (post >> 24 & 7) == (post >> 27 & 7) == 1
    assert vco // ((part.get(rcc + 0xC4) >> 16 & 0xFF) + 1) == hz
    assert vco // ((part.get(rcc + 0xC8) >> 16 & 0xFF) + 1) == 400_000_000
    assert part.get(rcc + 0x20) & (3 << 16 | 3 << 24) == 3 << 16 | 3 << 24
    assert part.get(power) & 4 == 0 and part.get(power + 0x20) & 1 == (hz > 600_000_000)
    board = load_board("stm32n6570_dk")
    assert defines or hz == board.clock(board.core.clock).frequency_hz
