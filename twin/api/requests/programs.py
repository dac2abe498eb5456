"""Requests for machine code: which part of a program is run, and libraries learnt from programs."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING

from hwmodels.errors import reworded
from hwmodels.files import File, read_regular
from twin.api.requests import Part, option, required
from twin.errors import UsageError

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.network.graph import Graph

LARGEST_MEMORY_BYTES = 64 << 20


def parse_number(text: str) -> int | None:
    """Read a number of 32 bits, in hexadecimal with 0x; None for none."""
    number = _read_integer(text)
    return number if number is not None and 0 <= number < 1 << 32 else None


def _read_integer(text: str) -> int | None:
    try:
        return int(text.strip(), 0)
    except ValueError:
        return None


def parse_count(text: str, option: str) -> int:
    """Read a whole number from 1 on; raises `UsageError` for anything else."""
    number = parse_number(text.replace(",", "")) or 0
    if number < 1:
        raise UsageError(f"{option} {text!r}: a whole number from 1 on is expected")
    return number


def parse_memory(texts: Sequence[str]) -> dict[int, bytes]:
    """Read FILE@ADDRESS words.

    Raises
    ------
    UsageError
        For one without an address, or whose file cannot be read or is larger than a
        microcontroller's memory.
    """
    found = {}
    for text in texts:
        file, at, address = text.rpartition("@")
        number = parse_number(address)
        if not at or number is None or not file:
            raise UsageError(f"--memory {text!r}: FILE@ADDRESS is expected, such as "
                             "dump.bin@0x1fff7500")
        with reworded(OSError, UsageError, f"--memory {file}: cannot be read (", ")"):
            found[number] = read_regular(file, LARGEST_MEMORY_BYTES)
    return found


def parse_registers(texts: Sequence[str]) -> dict[str, int]:
    """Read REG=VALUE words; raises `UsageError` for a register or a value that is none."""
    from hwmodels.program import riscv, thumb

    cores = {name.lower() for core in (thumb, riscv) for name in core.REGISTERS}
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        number, name = parse_number(value), name.strip().lower()
        if number is None and _read_integer(value) is not None:
            raise UsageError(f"--set-register {text!r}: {value.strip()} is not of 32 bits "
                             "unsigned; accepted: 0 to 0xffffffff")
        if number is None or not (name in cores or (parse_number(name) is not None
                                  and name.startswith("0x"))):
            raise UsageError(f"--set-register {text!r}: r0=VALUE to r12, sp, lr, on "
                             "RISC-V a0=VALUE and the like, or 0xADDRESS=VALUE is expected")
        found[name] = number
    return found


class DeployElf(Part):
    """A program, and the board it runs on under emulation."""

    elf: File
    board: "File | Board"
    _: KW_ONLY
    clock_hz: float | None = None


class LearnRuntime(Part):
    """Programs that run networks on a kernel library, which is learnt from them."""

    elfs: Sequence[File] = required(
        "", "ELF...", "Programs of a Cortex-M with one build of a library, each run under "
        "emulation; of a RISC-V core too.", text=list[str])
    models: "Sequence[File | Graph]"
    board: "File | Board"
    _: KW_ONLY
    output: File = option(
        "my_runtime.yaml", "--output -o", "FILE", "Runtime file (.yaml) to write; what it was "
        "learnt from before is kept and joined.")
    base: str | None = option(
        None, "--base", "NAME", "Runtime of operators no program ran; by default by what the "
        "programs were made with.")
