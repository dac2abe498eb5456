"""What machine code says by its bytes: one decoder of each encoding, `thumb` and `riscv`.

Both have MACHINE (kind of machine code), DEVICES (address and bytes of what is not memory), MODE
(bit 0 of an address to run at), RETURN_CODES (from here on addresses are returns from handlers),
JUMP and STAND_IN (an unconditional jump, and what an instruction the core's table does not know is
scheduled as), ENDLESS (a jump to itself), REGISTERS a user may set, by the emulator's names,
ARGUMENTS (those that hold arguments and results), and the functions `ends_in_call`,
`measure_instructions`, `find_calls`, `find_target`, `without_target`.
"""

from __future__ import annotations

from types import ModuleType

from hwmodels.program import riscv, thumb


def encoding_of(machine: str) -> ModuleType:
    """Return the encoding of a kind of machine code."""
    return {one.MACHINE: one for one in (thumb, riscv)}[machine]
