"""What a program's machine code tells by its bytes, by instruction set: `thumb` and `riscv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from twin.errors import ProgramError


class InstructionSet(Protocol):
    """The interface of the modules of instruction sets."""

    @property
    def DEVICES(self) -> tuple[tuple[int, int], ...]:
        """Address and bytes of what is no memory."""

    @property
    def MODE(self) -> int:
        """Bit 0 of an address to run at."""

    @property
    def RETURN_CODES(self) -> int:
        """From here on addresses are returns from handlers."""

    @property
    def JUMP(self) -> str:
        """An unconditional jump, as assembly text."""

    @property
    def STAND_IN(self) -> str:
        """What an instruction the core's table does not know is scheduled as."""

    @property
    def ENDLESS(self) -> bytes:
        """A jump to itself."""

    @property
    def REGISTERS(self) -> Mapping[str, str]:
        """Registers a user may set, as the emulator calls them."""

    def ends_in_call(self, code: bytes) -> bool:
        """Whether a block ends in a call."""

    def count_instructions(self, code: bytes) -> int:
        """Return how many instructions there are."""

    def measure_instructions(self, code: bytes) -> list[int]:
        """Return the bytes of each instruction."""

    def find_calls(self, code: bytes, address: int) -> list[int]:
        """Return where calls in code that runs at an address go."""

    def find_target(self, line: str, address: int) -> int | None:
        """Return where a jump goes, 0 where that is not told; None of what is no jump."""

    def without_target(self, line: str) -> str:
        """Return a jump that leads nowhere."""


def name_registers(registers: Mapping[str, int], known: Mapping[str, str]) -> dict[str, int]:
    """Return what registers of a core are set to, by the emulator's names.

    Parameters
    ----------
    registers : mapping of str to int
        As `--set-register` has them; those by address are of peripherals, and left out.
    known : mapping of str to str
        The core's.

    Raises
    ------
    ProgramError
        For one the core has not.
    """
    found = {}
    for name, value in registers.items():
        if name.startswith("0x"):
            continue
        if name.upper() not in known:
            raise ProgramError(f"--set-register {name}: the core has no such register; accepted: "
                               f"{', '.join(known).lower()}, or 0xADDRESS=VALUE")
        found[known[name.upper()]] = value
    return found
