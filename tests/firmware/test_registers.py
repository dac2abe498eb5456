"""Ports' own functions on an emulated core, with models of the registers they use.

What a model does is written from the part's reference manual; no part was asked.
"""

from __future__ import annotations

import struct

import pytest
from made_networks import needs_tools, random_network
from made_patience import HANG_S

pytest.importorskip("elftools", reason="needs the boards extra")
pytest.importorskip("unicorn", reason="needs the boards extra")

import unicorn
from elftools.elf.elffile import ELFFile
from unicorn import arm_const as arm

from hwmodels.board.file import load_board
from twin.deployment.deployment import place
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.plan import FIRMWARE
from twin.program.image.compile.ports import load_port

pytestmark = needs_tools("make", "arm-none-eabi-gcc")
STACK, RETURN, ROOM = 0x10008000, 0x1000F000, 0x10001000  # beside the part's own memories
UNKNOWN = -2**31
PORTS = {"apollo510_evb": "rtt-m55"}
MEMORIES = ((0x00000000, 0x04000000), (0x08000000, 0x01000000), (0x10000000, 0x10000000),
            (0x20000000, 0x01000000), (0x40000000, 0x20000000), (0xD0000000, 0x00100000),
            (0xE0000000, 0x00100000))


class Part:
    """A core with memory wherever the part has something; `model` sees each write to a register
    and each read before it happens."""

    def __init__(self, path) -> None:
        self.machine = unicorn.Uc(unicorn.UC_ARCH_ARM,
                                  unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        for base, size in MEMORIES:
            self.machine.mem_map(base, size)
        with open(path, "rb") as stream:
            elf = ELFFile(stream)
            for section in elf.iter_sections():
                if section["sh_flags"] & 2 and section["sh_type"] == "SHT_PROGBITS":
                    self.machine.mem_write(section["sh_addr"], section.data())
            table = elf.get_section_by_name(".symtab")
            self.symbols = {s.name: s["st_value"] for s in table.iter_symbols()}
        self.model = lambda address, value: None
        for begin in (0x14000000, 0x40000000, 0x50000000, 0xE0000000):
            self.machine.hook_add(unicorn.UC_HOOK_MEM_WRITE | unicorn.UC_HOOK_MEM_READ, self._seen,
                                  begin=begin, end=begin + 0x0FFFFFFF)

    def _seen(self, machine, access, address, size, value, data) -> None:
        self.model(address, value & 0xFFFFFFFF if access == unicorn.UC_MEM_WRITE else None)

    def set(self, address: int, value: int, layout: str = "<I") -> None:
        self.machine.mem_write(address, struct.pack(layout, value))

    def get(self, address: int) -> int:
        return struct.unpack("<I", self.machine.mem_read(address, 4))[0]

    def call(self, name: str, *arguments: int) -> None:
        registers = (arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R1)
        for register, value in zip(registers, arguments, strict=False):
            self.machine.reg_write(register, value)
        self.machine.reg_write(arm.UC_ARM_REG_SP, STACK)
        self.machine.reg_write(arm.UC_ARM_REG_LR, RETURN | 1)
        self.machine.emu_start(self.symbols[name] | 1, RETURN, timeout=int(HANG_S * 1e6))
        assert self.machine.reg_read(arm.UC_ARM_REG_PC) == RETURN, f"{name} does not return"

    def select(self, name: str, *ids: int) -> None:
        self.machine.mem_write(ROOM, struct.pack(f"<{len(ids)}H", *ids))
        self.call(name, ROOM, len(ids))
        assert self.machine.reg_read(arm.UC_ARM_REG_R0) == 1

    def read(self, name: str, count: int) -> tuple[int, ...]:
        self.call(name, ROOM)
        return struct.unpack(f"<{count}I", self.machine.mem_read(ROOM, 4 * count))

    def environment(self, name: str) -> tuple[int, int, int]:
        """Temperature in millidegree, supply in mV, clock source."""
        self.machine.mem_write(ROOM, struct.pack("<iiiI", UNKNOWN, UNKNOWN, UNKNOWN, 0))
        self.call(name, ROOM)
        return struct.unpack("<iii", self.machine.mem_read(ROOM, 12))


@pytest.fixture(scope="module")
def make_part(tmp_path_factory):
    graph, folder = random_network(9), tmp_path_factory.mktemp("parts")

    def make(name: str) -> Part:
        if not (folder / name).exists():
            board = load_board(name)
            port = load_port(PORTS.get(name, name))
            # The emulated core lacks the M55's loop instructions: unoptimised code has none.
            level = "-O0" if port.core == "cortex-m55" else "-O2"
            build_firmware(graph, port, folder / name, optimisation=level, deployment=place(
                graph, board, FIRMWARE, weights=None, arena=None,
                code=dict(board.placement)["code"]))
        return Part(folder / name / "firmware.elf")

    return make


CYCCNT, DWT_CTRL, SYST_CSR, PMU = 0xE0001004, 0xE0001000, 0xE000E010, 0xE0003000


@pytest.mark.parametrize("moves", [True, False])
def test_a_cycle_counter_is_taken_when_it_is_seen_to_move(make_part, moves):
    """No feature bit is believed: CYCCNT is enabled and watched, else SysTick counts."""
    part = make_part("nucleo_l4r5zi")

    def count(address, value):
        if address == CYCCNT and value is None and moves and part.get(DWT_CTRL) & 1:
            part.set(CYCCNT, part.get(CYCCNT) + 7)

    part.model = count
    part.call("start_counter")
    assert (part.get(SYST_CSR) == 7) != moves
    part.call("read_counter")
    first = part.machine.reg_read(arm.UC_ARM_REG_R0)
    if not moves:  # SysTick counts down
        part.set(0xE000E018, part.get(0xE000E018) + (1 << 24) - 100)
    part.call("read_counter")
    assert part.machine.reg_read(arm.UC_ARM_REG_R0) - first == (7 if moves else 100 - (1 << 24))


def test_events_of_the_m55_are_chained_pairs(make_part):
    """DDI 0553: event 0x1e of an odd counter counts the wraps of the even one before it."""
    part = make_part("apollo510_evb")
    part.set(PMU + 0xE00, 8)  # PMU_TYPE: eight counters
    part.call("start_core_events")
    part.select("select_core_events", 0x1008, 0x1003, 0x1200)  # instructions, refills, MVE
    types = [part.get(PMU + 0x400 + 4 * i) for i in range(6)]
    assert types == [0x08, 0x1E, 0x03, 0x1E, 0x200, 0x1E]
    assert part.get(PMU + 0xC00) == 0b111111  # PMU_CNTENSET
    for number, value in enumerate((0xFFFF, 2, 5, 0, 0x8000, 1)):
        part.set(PMU + 4 * number, value)
    wraps = iter([True])

    def wrap(address, value):  # the even counter of the first pair wraps while it is read
        if address == PMU and value is None and next(wraps, False):
            part.set(PMU, 3)
            part.set(PMU + 4, 3)

    part.model = wrap
    assert part.read("read_core_events", 3) == (0x30003, 5, 0x18000)


ICACHE, DCACHE = 0x40030400, 0x40031400
ICACHE_HIT, ICACHE_MISS, READ_HIT, READ_MISS = 0x20, 0x21, 0x22, 0x23


def test_monitors_of_the_u5_are_summed_over_readings(make_part):
    """RM0456: hits have 32 bits, misses 16 and stop at the top; a reset bit clears one."""
    part = make_part("nucleo_u575zi_q")

    def reset_misses(address, value):
        if address in (ICACHE, DCACHE) and value is not None and value & 1 << 19:
            part.set(address + 0x14, 0)  # IMISSMRST, RMISSMRST

    part.call("start_monitors")
    assert part.get(ICACHE) & part.get(DCACHE) & (3 << 16 | 1) == 3 << 16 | 1  # on, both counting
    part.model = reset_misses
    part.select("select_part_events", ICACHE_MISS, ICACHE_HIT, READ_MISS)
    part.set(ICACHE + 0x10, 100_000)
    for count in (65_000, 700):
        part.set(ICACHE + 0x14, count)
        part.set(DCACHE + 0x14, 3)
        misses, hits, reads = part.read("read_part_events", 3)
    assert (misses, hits, reads) == (65_700, 100_000, 6)
    assert part.get(ICACHE) & 15 << 18 == 0  # no reset bit stays set
    part.call("empty_part_caches")
    assert part.get(ICACHE) & part.get(DCACHE) & 2  # CACHEINV


def test_counters_of_the_xip_cache_are_taken_over_and_cleared(make_part):
    """RP2040 datasheet 2.6.3: they stop at the top and are cleared by any write."""
    part, base = make_part("rpi_pico"), 0x14000000
    part.select("port_select", 0x26, 0x27)  # accesses, hits
    for accesses, hits in ((1000, 900), (50, 20)):
        part.set(base + 0x10, accesses)
        part.set(base + 0x0C, hits)
        found = part.read("port_read", 2)
        assert part.get(base + 0x10) == part.get(base + 0x0C) == 0
    assert found == (1050, 920)
    assert part.environment("port_environment") == (UNKNOWN, UNKNOWN, 1)  # a crystal


ADCS = {  # data register, status, bit "converted", factory's reference, low, high, and their supply
    "nucleo_f401re": (0x4001204C, 0x40012000, 1 << 1, 0x1FFF7A2A, 0x1FFF7A2C, 0x1FFF7A2E, 3300,
                      80),
    "nucleo_l4r5zi": (0x50040040, 0x50040000, 1 << 2 | 1, 0x1FFF75AA, 0x1FFF75A8, 0x1FFF75CA, 3000,
                      100)}


@pytest.mark.parametrize("name", ADCS)
@pytest.mark.parametrize(("supply_mv", "degree_c"), [(3300, 30.0), (3000, 55.0), (1900, 85.0)])
def test_temperature_and_supply_by_the_adc(make_part, name, supply_mv, degree_c):
    """A made part: reference 1.21 V, sensor 0.76 V at 30 degrees and 2.5 mV more each degree."""
    part = make_part(name)
    data, status, done, reference, low, high, at_mv, span_c = ADCS[name]
    for address, volt in ((reference, 1.21), (low, 0.76), (high, 0.76 + 0.0025 * span_c)):
        part.set(address, round(volt * 4095 / (at_mv * 1e-3)), "<H")
    volts = {"reference": 1.21, "sensor": 0.76 + 0.0025 * (degree_c - 30)}
    channels = {"nucleo_f401re": (0x40012034, 0, {17: "reference", 18: "sensor"}),
                "nucleo_l4r5zi": (0x50040030, 6, {0: "reference", 17: "sensor"})}
    select, shift, names = channels[name]

    def convert(address, value):
        if address == status and value is None:
            part.set(status, done)
        if name == "nucleo_l4r5zi" and address == 0x50040008 and value is None:
            part.set(address, part.get(address) & ~(1 << 31))  # calibrated at once
            if part.get(address) & 2:
                part.set(address, 0)  # disabled
        if address == data and value is None:
            volt = volts[names[part.get(select) >> shift]]
            part.set(data, round(volt * 4095 / (supply_mv * 1e-3)))

    part.model = convert
    temperature, supply, clock_source = part.environment("read_part_environment")
    assert supply == pytest.approx(supply_mv, rel=2e-3)  # a step of 4095 in a third of full scale
    assert temperature == pytest.approx(1000 * degree_c, abs=1500)
    assert clock_source == 0


@pytest.mark.parametrize("name", ADCS)
def test_an_adc_that_never_answers_is_not_waited_for(make_part, name):
    assert make_part(name).environment("read_part_environment") == (UNKNOWN, UNKNOWN, 0)


@pytest.mark.parametrize("degree_c", [-20.25, 30.5, None])
def test_die_temperature_by_the_sensor_of_an_nrf52840(make_part, degree_c):
    """nRF52840 PS, TEMP: quarters of a degree after DATARDY; a silent sensor is not waited for."""
    part, base = make_part("nrf52840dk"), 0x4000C000

    def measure(address, value):
        if address == base and value == 1 and degree_c is not None:
            part.set(base + 0x508, round(4 * degree_c), "<i")
            part.set(base + 0x100, 1)

    part.model = measure
    found = UNKNOWN if degree_c is None else round(1000 * degree_c)
    assert part.environment("port_environment") == (found, UNKNOWN, 1)
