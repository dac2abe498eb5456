"""What loads and stores do: addresses, registers stepped, words of the stack kept."""

from __future__ import annotations

import re
from typing import Any

from hwmodels.errors import KernelError, reworded
from hwmodels.frozen import record
from hwmodels.isa.instruction import Instruction, parse_code
from hwmodels.isa.mnemonics import Word
from hwmodels.program.listing import Listed
from twin.errors import FirmwareError
from twin.program.image.read.sources import (
    PC,
    REGISTERS,
    SINGLES,
    SP,
    Operation,
    Source,
    number,
    register_list,
    source_of,
    split_operands,
)
from twin.program.image.read.values import DATA, Value, add, are_known

_SIZES = {"b": (1, False), "sb": (1, True), "h": (2, False), "sh": (2, True), "": (4, True)}
_SCALAR_ACCESS = re.compile(r"^(ldr|str)(sb|sh|b|h|)(t?)$")


def compile_access(word: Word, tokens: list[str], listed: Listed) -> Operation:
    """Return what a load or store does."""
    base = word.base
    single = _SCALAR_ACCESS.match(base)
    if single:
        size, signed = _SIZES[single[2]]
        return _scalar(single[1] == "ldr", size, signed, tokens, listed)
    if base in ("ldrd", "strd"):
        return _several(base == "ldrd", [REGISTERS[t] for t in tokens[:2]],
                        *_address(tokens[2:], listed))
    if base in ("push", "pop", "vpush", "vpop") or "ldm" in base or "stm" in base:
        return _block(base, tokens, listed)
    return _vector(word, tokens, listed)


def _address(tokens: list[str], listed: Listed) -> tuple[Source, int, Source | None]:
    """Address, register stepped (-1: none), and what it becomes."""
    inside = split_operands(tokens[0].rstrip("!")[1:-1])
    if inside[0] not in REGISTERS:
        return (lambda machine: DATA), -1, None
    register = REGISTERS[inside[0]]
    if register == PC:
        here = (listed.address + 4 & ~3) + (number(inside[1]) or 0 if len(inside) > 1 else 0)
        return (lambda machine: here), -1, None
    base: Source = lambda machine: machine.state[register]  # noqa: E731
    if len(inside) == 1:
        address = base
    elif inside[1] not in REGISTERS and number(inside[1]) is None:
        address = lambda machine: near(machine.state[register])  # noqa: E731  a vector of offsets
    else:
        offset = source_of(inside[1:], listed)
        address = lambda machine: indexed(machine.state[register], offset(machine))  # noqa: E731
    if tokens[0].endswith("!"):
        return address, register, address
    if len(tokens) > 1:
        step = source_of(tokens[1:], listed)
        return address, register, lambda machine: add(machine.state[register], step(machine))
    return address, -1, None


@record
class Near:
    """Somewhere behind an address: data decide where."""

    base: Value


def near(base: Value) -> Value | Near:
    """Return an address data decide, in a table whose place is known if it is."""
    return Near(base) if are_known(base) else base


def indexed(base: Value, offset: Value) -> Value | Near:
    """Address of an element; of a table that data index, somewhere in the table."""
    if offset is DATA:
        return near(base)
    if base is DATA and type(offset) is int and offset >= 1 << 16:
        return near(offset)
    return add(base, offset)


def _scalar(is_load: bool, size: int, signed: bool, tokens: list[str], listed: Listed) -> Operation:
    register = REGISTERS[tokens[0]]
    address, stepped, after = _address(tokens[1:], listed)

    def load(machine: Any) -> None:
        value = machine.load(address(machine), size, signed)
        if after is not None:
            machine.state[stepped] = after(machine)
        if register != PC:
            machine.state[register] = value

    def store(machine: Any) -> None:
        machine.store(address(machine), size, machine.state[register])
        if after is not None:
            machine.state[stepped] = after(machine)
    return load if is_load else store


def _several(is_load: bool, places: list[int], address: Source, stepped: int = -1,
             after: Source | None = None) -> Operation:
    """Words of consecutive addresses into or out of places of the state."""
    def run(machine: Any) -> None:
        first, state = address(machine), machine.state
        end = after(machine) if after is not None else None
        if is_load:
            loaded = [machine.load(add(first, 4 * i), 4, True) for i in range(len(places))]
        else:
            for i, place in enumerate(places):
                machine.store(add(first, 4 * i), 4, state.get(place, DATA))
        if after is not None:
            state[stepped] = end
        if is_load:
            for place, value in zip(places, loaded, strict=True):
                if place != PC:
                    state[place] = value
    return run


def _block(base: str, tokens: list[str], listed: Listed) -> Operation:
    if "push" in base or "pop" in base:
        register, steps, places = SP, True, register_list(tokens[0])
    else:
        register = REGISTERS[tokens[0].rstrip("!")]
        steps, places = tokens[0].endswith("!"), register_list(tokens[1])
    is_load = "pop" in base or "ldm" in base
    down = "push" in base or base.endswith(("db", "ea" if is_load else "fd"))
    size = 4 * len(places)
    before, behind = (-size, -size) if down else (0, size)
    after: Source | None = None
    if steps:
        after = lambda machine: add(machine.state[register], behind)  # noqa: E731
    return _several(is_load, places, lambda machine: add(machine.state[register], before),
                    register if steps else -1, after)


def parse_listed(listed: Listed) -> tuple[Instruction, list[int]]:
    """Return an instruction, and the places of single registers it writes."""
    with reworded(KernelError, FirmwareError, f"0x{listed.address:08x}: "):
        one = parse_code(listed.text)[0]
    return one, [SINGLES + int(name[1:]) for name in one.writes if re.fullmatch(r"s\d+", name)]


def _vector(word: Word, tokens: list[str], listed: Listed) -> Operation:
    """Return loads and stores of float and vector registers."""
    one, singles = parse_listed(listed)
    place = next((i for i, token in enumerate(tokens) if token.startswith("[")), None)
    if place is None:
        raise FirmwareError(f"0x{listed.address:08x}: {listed.text!r} is not understood")
    address, stepped, after = _address(tokens[place:], listed)
    is_load = one.kind == "load"
    size = one.loaded_bytes or one.stored_bytes
    stored = SINGLES + int(tokens[0][1:]) if not one.vector and tokens[0][0] == "s" else -1

    def run(machine: Any) -> None:
        where = address(machine)
        if is_load:
            value = machine.load(where, size, True)
            for single in singles:
                machine.state[single] = value if size == 4 else DATA
        else:
            machine.store(where, size, machine.state.get(stored, DATA))
        if after is not None:
            machine.state[stepped] = after(machine)
    return run
