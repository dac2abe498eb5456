"""The port that speaks through memory: a probe's view of the rings, in the Unicorn emulator."""

from __future__ import annotations

import struct
import zlib

import pytest
from made_networks import needs_tools

pytest.importorskip("cobs", reason="needs the boards extra")
pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("elftools", reason="needs the boards extra")

import unicorn
from cobs import cobs
from elftools.elf.elffile import ELFFile
from unicorn import arm_const

from twin.deployment.deploy import deploy
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port

RING = struct.Struct("<IIIIII")  # name, bytes, size, written, taken, flags: as SEGGER's probes do


class Probe:
    """Reads and writes memory of a core that runs in slices."""

    def __init__(self, image) -> None:
        self.core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        self.core.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M4)
        self.core.mem_map(0x08000000, 0x200000)
        self.core.mem_map(0x20000000, 0xA0000)
        self.core.mem_map(0xE0000000, 0x100000)
        with image.open("rb") as file:
            elf = ELFFile(file)
            for segment in elf.iter_segments():
                if segment["p_type"] == "PT_LOAD":
                    self.core.mem_write(segment["p_paddr"], segment.data())
            symbols = elf.get_section_by_name(".symtab")
            self.control = symbols.get_symbol_by_name("rtt_control")[0]["st_value"]
            vectors = symbols.get_symbol_by_name("vectors")[0]["st_value"]
        stack, reset = struct.unpack("<II", self.core.mem_read(vectors, 8))
        self.core.reg_write(arm_const.UC_ARM_REG_SP, stack)
        self.here = reset

    def run(self, instructions: int) -> None:
        self.core.emu_start(self.here | 1, 0xFFFFFFFE, count=instructions)
        self.here = self.core.reg_read(arm_const.UC_ARM_REG_PC)

    def ring(self, down: bool) -> tuple[int, tuple[int, ...]]:
        at = self.control + 24 + RING.size * down
        return at, RING.unpack(self.core.mem_read(at, RING.size))

    def take(self) -> bytes:
        at, (_, room, size, written, taken, _) = self.ring(False)
        found = bytes(self.core.mem_read(room, size))
        self.core.mem_write(at + 16, struct.pack("<I", written))
        return found[taken:written] if taken <= written else found[taken:] + found[:written]

    def give(self, data: bytes) -> None:
        at, (_, room, size, written, _, _) = self.ring(True)
        for byte in data:
            self.core.mem_write(room + written, bytes([byte]))
            written = (written + 1) % size
        self.core.mem_write(at + 12, struct.pack("<I", written))


@needs_tools("make", "arm-none-eabi-gcc")
def test_a_probe_meets_the_banner_and_a_session(tmp_path):
    deployment = deploy("kws", "nucleo_l4r5zi")
    probe = Probe(build_firmware(deployment.graph, load_port("rtt-m4"), tmp_path,
                                 deployment=deployment).image)
    said = b""
    for _ in range(20):  # the banner waits until the ring has been read
        probe.run(20_000)
        said += probe.take()
    assert bytes(probe.core.mem_read(probe.control, 16)) == b"SEGGER RTT".ljust(16, b"\0")
    assert said.endswith(b"m-init-done\r\nm-ready\r\n")
    body = struct.pack("<BBHHHHHII", 0x80, 0, 1, 0, 12, 1, 1, 0, 77)
    probe.give(cobs.encode(body + zlib.crc32(body).to_bytes(4, "little")) + b"\0")
    answer = b""
    for _ in range(20):
        probe.run(20_000)
        answer += probe.take()
    reply = cobs.decode(answer.strip(b"\0"))
    assert struct.unpack_from("<BBHHH", reply) == (0x80, 1, 0, 1, 16)
    assert struct.unpack_from("<HHIII", reply, 8)[3:] == (77, 0)
