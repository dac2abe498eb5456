"""`twin predict --elf`: its options as values, and what it shows besides a network's report."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from twin.cli.output import open_console, show
from twin.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from twin.api.requests import Deployed
    from twin.pricing.prediction import Prediction
    from twin.program.deployment import Program


def deploy_from_options(elf: str, board: str, *, begin: str | None, end: str | None,
                        call: str | None, nth: str | None, layers: str,
                        memory: list[str] | None, registers: list[str] | None,
                        limit: str | None, placed: Deployed) -> Program:
    """Run a program as the options of a command say, once they are all known to be right."""
    from twin.api.commands.program import LIMIT, deploy_elf, prepare_board

    options = {"nth": parse_count(nth, "--nth", 1), "limit": parse_count(limit, "--limit", LIMIT)}
    contents, values = parse_memory(memory or []), parse_registers(registers or [])
    machine = prepare_board(board, placed.clock_hz, placed.changes or {})
    return deploy_elf(elf, machine, begin=begin, end=end, call=call, layers=layers,
                      memory=contents, registers=values, **options)


def parse_memory(texts: list[str]) -> dict[int, bytes]:
    """Read FILE@ADDRESS words.

    Raises
    ------
    UsageError
        For one without an address, or whose file cannot be read.
    """
    from twin.api.commands.program import read_memory

    found = {}
    for text in texts:
        file, at, address = text.rpartition("@")
        number = parse_number(address)
        if not at or number is None or not file:
            raise UsageError(f"--memory {text!r}: FILE@ADDRESS is expected, such as "
                             "dump.bin@0x1fff7500")
        found[number] = read_memory(file)
    return found


def parse_registers(texts: list[str]) -> dict[str, int]:
    """Read REG=VALUE words.

    Raises
    ------
    UsageError
        For a register or a value that is none.
    """
    from twin.api.commands.program import list_registers

    cores = list_registers()
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        number, name = parse_number(value), name.strip().lower()
        if number is None and is_integer(value):
            raise UsageError(f"--set-register {text!r}: {value.strip()} is not of 32 bits "
                             "unsigned; accepted: 0 to 0xffffffff")
        if number is None or not (name in cores or (parse_number(name) is not None
                                  and name.startswith("0x"))):
            raise UsageError(f"--set-register {text!r}: r0=VALUE to r12, sp, lr, on "
                             "RISC-V a0=VALUE and the like, or 0xADDRESS=VALUE is expected")
        found[name] = number
    return found


def parse_count(text: str | None, option: str, default: int) -> int:
    """Read a whole number from 1 on; the default where it is not given.

    Raises
    ------
    UsageError
        For anything else.
    """
    number = default if text is None else (parse_number(text.replace(",", "")) or 0)
    if number < 1:
        raise UsageError(f"{option} {text!r}: a whole number from 1 on is expected")
    return number


def parse_number(text: str) -> int | None:
    """Read a number of 32 bits, in hexadecimal with 0x; None for none."""
    try:
        number = int(text.strip(), 0)
    except ValueError:
        return None
    return number if 0 <= number < 1 << 32 else None


def is_integer(text: str) -> bool:
    """Whether a text is a whole number of any size."""
    with suppress(ValueError):
        int(text.strip(), 0)
        return True
    return False


def show_functions(prediction: Prediction) -> None:
    """Print the functions a program spent its time in."""
    from twin.reports.tables.functions import functions_table

    console = open_console()
    show(console, "")
    show(console, functions_table(prediction, console))


def write_flames(prediction: Prediction, path: str) -> Path:
    """Write where the time goes, for a viewer."""
    from twin.reports.functions import write_function_flames

    return write_function_flames(prediction, path)
