"""Start-up: from reset to where the measured part of a program begins.

`Machine` finds the reset vector; memories are `memory`, registers of peripherals `peripherals`,
interrupts `exceptions`; time is `Machine.cycles`, which SysTick and cycle counters follow.
"""

from __future__ import annotations

from twin.errors import ProgramError
from twin.program.asking import MAINS, Wanted, name_registers
from twin.program.machine import Machine


def go_to_start(machine: Machine, wanted: Wanted) -> int | None:
    """Run up to the measured part; return the address its function returns to, None for `end`.

    Raises
    ------
    ProgramError
        When it does not come there.
    """
    elf = machine.elf
    machine.doing = f"start-up, up to {wanted.begin or wanted.call}"
    for name, value in wanted.registers.items():
        if name.startswith("0x"):
            machine.peripherals.fixed[int(name, 16) & ~3] = value
    if wanted.skip_startup:
        _skip(machine)
    if wanted.call is not None:
        main = wanted.begin or next(name for name in MAINS if name in elf.symbols)
        target = elf.address_of(wanted.call, "--call")
        machine.sought = f"{main} was not reached"
        machine.run(elf.address_of(main, "--from"))
        machine.sought = ""
        back = machine.next
        machine.set("LR", back | machine.code.MODE)
        machine.next = target
        return back
    assert wanted.begin is not None
    begin = elf.address_of(wanted.begin, "--from")
    if wanted.end is not None:
        elf.address_of(wanted.end, "--to")
    for turn in range(wanted.nth):
        machine.sought = f"--from {wanted.begin} was " + (
            f"reached {turn} of {wanted.nth} times" if turn else "not reached")
        machine.instead = f"--nth up to {turn}" if turn else ""
        if turn:
            _step(machine)
        machine.run(begin)
        machine.turns_left = wanted.nth - turn
        if machine.handed_over:
            break
    machine.sought = machine.instead = ""
    return None if wanted.end else machine.get("LR")


def _skip(machine: Machine) -> None:
    """Have a program stand at its main: what is loaded for RAM lies there, all else of it is 0."""
    elf = machine.elf
    main = next((name for name in MAINS if name in elf.symbols), None)
    if main is None:
        raise ProgramError(f"{elf.path}: --skip-startup needs a function {' or '.join(MAINS)}, and "
                           "no symbol is named so; accepted: a program with symbols")
    for _, runs, content in elf.pieces:
        if any(low <= runs and runs + len(content) <= high for low, high in machine.spans):
            machine.machine.mem_write(runs, content)
    machine.next = elf.symbols[main]
    if "__global_pointer$" in elf.symbols:
        machine.set("X3", elf.symbols["__global_pointer$"])


def _step(machine: Machine) -> None:
    """Run one instruction, to come to where the program stands once more."""
    machine.machine.emu_start(machine.next | machine.code.MODE, 0xFFFFFFFE, 0, 1)
    machine.next = machine.get("PC") & ~1


def set_registers(machine: Machine, wanted: Wanted) -> None:
    """Set the core's registers the measured part begins with."""
    for name, value in name_registers(wanted.registers, machine.code.REGISTERS).items():
        machine.set(name, value)


def find_start(machine: Machine, wanted: Wanted) -> tuple[int, int]:
    """Return where the billed part begins, for a start-up that goes on in QEMU."""
    if wanted.call is not None or any(not name.startswith("0x") for name in wanted.registers):
        raise ProgramError(
            f"{machine.elf.path}: start-up runs Helium instructions "
            f"({machine.elf.name_place(machine.next)}), so it goes on in QEMU: no --call and no "
            "--set-register of the core; accepted: --from")
    assert wanted.begin is not None
    return machine.elf.address_of(wanted.begin, "--from"), machine.turns_left
