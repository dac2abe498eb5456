"""QEMU for what Unicorn lacks, Helium: a program goes on there from where Unicorn brought it.

QEMU runs a bare core whose memories are copies of the board's, peripherals among them; a plugin
(`tracer.c`, compiled for each run) writes down blocks and accesses, which are replayed here.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from hwmodels.errors import ToolMissingError
from hwmodels.files import open_exclusive, write_whole
from hwmodels.program.thumb import DEVICES, is_jump
from twin.program.machine import Machine

QEMU, COMPILER = "qemu-system-arm", "cc"
_MACHINE = "lm3s6965evb"
"""A core and its interrupt controller, little else; memories of the board lie on top of it."""
_CHUNK_BYTES = 1 << 20
_PAGE = 4096
_FLOATS, _WORDS, _STUB_BYTES = 0x200, 0x300, 0x1000


def go_on(machine: Machine, until: int, back: int | None, start: tuple[int, int] | None) -> None:
    """Run a program in QEMU from where it stands, up to an address or a return.

    Parameters
    ----------
    machine
        Stands at the first instruction; its counts go on.
    until
        Address it ends before.
    back
        Address the function it stands in returns to.
    start : (int, int) or None
        Where the billed part begins, and which time it is come to; None: here.

    Raises
    ------
    ToolMissingError
        Without QEMU or a C compiler.
    ProgramError
        When it cannot go on.
    """
    words, names = machine.words, machine.names
    words[[names.BEGIN, names.UNTIL, names.DEPTH, names.STOPPING]] = (
        machine.next, until & ~1, 0, 0)
    words[[names.ALARM, names.TRACED_END, names.BLOCK_END]] = 1 << 62, -1, -1
    words[[names.START, names.START_TURNS]] = start or (-1, 0)
    if back is not None:
        words[words[names.CALLS_AT]], words[names.DEPTH] = back & ~1, 1
    with tempfile.TemporaryDirectory(prefix="twin-traced-") as folder:
        _run(machine, Path(folder))
    machine.check()


def _run(machine: Machine, folder: Path) -> None:
    from twin.program.kernels.hooks import replay

    doing = machine.doing
    machine.doing = f"{doing}: starting QEMU"
    plugin = folder / "tracer.so"
    write_whole(plugin, _compile())
    ends = find_ends(machine)
    memories, stub = _write_memories(machine, folder)
    reading, writing = os.pipe()
    command = [_tool(QEMU), "-M", _MACHINE, "-cpu", machine.traits.emulators["qemu"],
               "-display", "none", "-monitor", "none", "-serial", "none", "-plugin",
               ",".join([str(plugin), f"out={writing}", *memories]),
               "-device", f"loader,addr=0x{stub | 1:x},cpu-num=0"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, pass_fds=(writing,)) as process:
        os.close(writing)
        try:
            with os.fdopen(reading, "rb", buffering=_CHUNK_BYTES) as stream:
                machine.doing = f"{doing}, in QEMU"
                while not machine.words[machine.names.STOPPING]:
                    chunk = stream.read(_CHUNK_BYTES)
                    if not chunk:
                        break
                    replay(machine.words, ends, np.frombuffer(chunk[:len(chunk) // 8 * 8], "<i8"))
        finally:
            process.kill()
        output = process.stderr.read().decode(errors="replace") if process.stderr else ""
    if machine.failure is None and not machine.words[machine.names.STOPPING]:
        machine.fail("QEMU ended before what was asked for was reached"
                     + (f" ({output.strip().splitlines()[-1][:200]})" if output.strip() else ""))


def find_ends(machine: Machine) -> np.ndarray:
    """Return where the block at each halfword of code ends: behind a jump, before a loop."""
    found = machine.listing.instructions
    loops = {int(one.operands.split(",")[-1], 16) for one in found.values()
             if one.mnemonic in ("le", "letp")}
    ends = np.zeros(sum(high - low + 1 >> 1 for low, high in machine.counters.spans),
                    dtype=np.int64)
    place = sum(high - low + 1 >> 1 for low, high in machine.elf.code)
    for low, high in reversed(machine.elf.code):
        place -= high - low + 1 >> 1
        after: dict[int, int] = {}
        for address in range(low + (high - low - 1) // 2 * 2, low - 1, -2):
            one = found.get(address)
            if one is None:
                continue
            following = address + one.size_bytes
            end = (following if is_jump(one.mnemonic, one.operands) or following in loops
                   else after.get(following, following))
            after[address] = ends[place + (address - low >> 1)] = end
    return ends


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ToolMissingError(f"{name} is not installed: programs with Helium instructions need "
                               "it (apt-get install qemu-system-arm gcc)")
    return found


@cache
def _compile() -> bytes:
    """Compile the plugin for the QEMU there is, once for both passes."""
    output = subprocess.run([_tool(QEMU), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"version (\d+)\.(\d+)", output.stdout)
    release = (int(match[1]), int(match[2])) if match else (7, 2)
    version = 1 if release < (9, 0) else 2 if release < (9, 1) else 3 if release < (9, 2) else 4
    with tempfile.TemporaryDirectory(prefix="twin-plugin-") as folder:
        made = Path(folder) / "tracer.so"
        done = subprocess.run(
            [_tool(COMPILER), "-O2", "-shared", "-fPIC", f"-DPLUGIN_VERSION={version}", "-o",
             str(made), str(Path(__file__).with_name("tracer.c"))],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolMissingError(f"{COMPILER} does not compile QEMU's plugin: "
                                   f"{done.stderr.strip().splitlines()[-1]}")
        return made.read_bytes()


def _write_memories(machine: Machine, folder: Path) -> tuple[list[str], int]:
    """Write memories down as they are; return the plugin's arguments, and where to begin."""
    stub = next(page for page in range(0x9FFFF000, 0x60000000, -_PAGE)
                if not any(low < page + _PAGE and page < high for low, high in machine.spans))
    base, size = DEVICES[0]
    lines = []
    for low, content in (*machine.contents(), (stub, make_stub(machine, stub))):
        path = _write_pieces(folder / f"{low:08x}", (
            (at, piece) for at in range(0, len(content), _PAGE)
            if (piece := content[at:at + _PAGE]) != bytes(_PAGE)))
        lines.append(f"memory={low:x}:{len(content):x}:{path}")
    path = _write_pieces(folder / "devices", (
        (word - base, struct.pack("<I", value))
        for word, value in machine.peripherals.registers.items() if base <= word < base + size))
    lines.append(f"memory={base:x}:{size:x}:{path}")
    return lines, stub


def _write_pieces(path: Path, pieces: Iterable[tuple[int, bytes]]) -> Path:
    """Write what is not 0, each piece at its place: holes take neither disk nor time."""
    with open_exclusive(path) as stream:
        for at, piece in pieces:
            stream.seek(at)
            stream.write(piece)
    return path


def make_stub(machine: Machine, place: int) -> bytes:
    """Return code that sets a core's registers and jumps to where the program stands."""
    code = bytearray()

    def put(*halfwords: int) -> None:
        code.extend(struct.pack(f"<{len(halfwords)}H", *halfwords))

    literals: list[int] = []

    def load(register: int, value: int) -> None:
        """LDR.W register, [PC, #...]: literals lie at 0x100."""
        put(0xF8DF, register << 12 | 0x100 + 4 * len(literals) - (len(code) + 4 & ~3))
        literals.append(value & 0xFFFFFFFF)

    def store(address: int, value: int) -> None:
        load(0, address)
        load(1, value)
        put(0x6001)                      # STR r1, [r0]

    store(0xE000ED08, machine.peripherals.registers.get(0xE000ED08, machine.vectors))
    store(0xE000ED88, 0x00F0FFFF)        # CPACR: floating point and vectors
    put(0xF3BF, 0x8F4F, 0xF3BF, 0x8F6F)  # DSB; ISB
    load(0, place + _FLOATS)
    put(0xEC90, 0x0A20)                  # VLDMIA r0, {s0-s31}
    load(1, machine.get("FPSCR") | 4 << 16)  # LTPSIZE 4: no tail predication
    put(0xEEE1, 0x1A10)                  # VMSR FPSCR, r1
    load(1, machine.get("XPSR") & 0xF80F0000)
    put(0xF381, 0x8C00)                  # MSR APSR_nzcvqg, r1
    load(2, machine.get("SP"))
    put(0x4695)                          # MOV sp, r2
    load(14, machine.get("LR"))
    load(12, place + _WORDS)
    put(0xE89C, 0x1FFF)                  # LDM r12, {r0-r12}
    load(15, machine.next | 1)
    content = bytes(code).ljust(0x100, b"\0") + struct.pack(f"<{len(literals)}I", *literals)
    content = content.ljust(_FLOATS, b"\0") + struct.pack(
        "<32I", *(machine.get(f"S{one}") & 0xFFFFFFFF for one in range(32)))
    content = content.ljust(_WORDS, b"\0") + struct.pack(
        "<13I", *(machine.get(f"R{one}") for one in range(13)))
    return content.ljust(_STUB_BYTES, b"\0")
