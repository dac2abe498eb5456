"""What machine code says by its bytes: one decoder of each encoding, `thumb` and `riscv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hwmodels.program import riscv, thumb


class Encoding(Protocol):
    """The interface of the modules of encodings."""

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


def encoding_of(machine: str) -> Encoding:
    """Return the encoding of a kind of machine code: "arm" or "riscv"."""
    return {"arm": thumb, "riscv": riscv}[machine]
