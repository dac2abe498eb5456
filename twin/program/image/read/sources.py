"""Operands as written: registers, numbers, lists, and the values they have in a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hwmodels.program.listing import Listed
from twin.errors import FirmwareError
from twin.program.image.read.values import DATA, Value, are_known, lost, times, wrap

Operation = Callable[[Any], None]
Source = Callable[[Any], Any]

SP, LR, PC = 13, 14, 15
STEP = PC
"""Place in the state of what the end of a loop over vectors takes off lr: the program counter is
held elsewhere."""
SINGLES = 16
"""Place of s0 in the state; general registers come first, words of the stack by their address."""

_NAMES = {"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": SP, "lr": LR, "pc": PC}
REGISTERS = {f"r{i}": i for i in range(16)} | _NAMES
SHIFTS = ("lsl", "lsr", "asr", "ror", "rrx")


def split_operands(text: str) -> list[str]:
    """Operands as written; what brackets hold together is one."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def number(text: str) -> int | None:
    """Return an immediate, as 32 bits hold it."""
    text = text.lstrip("#")
    try:
        return wrap(int(text, 0))
    except ValueError:
        return None


def register_list(text: str) -> list[int]:
    """Places in the state of {r4-r7, lr} or {s16-s19}; a double register is two singles."""
    places: list[int] = []
    for part in text.strip("{}").split(","):
        first, _, last = (piece.strip() for piece in part.partition("-"))
        ends = [first, last or first]
        if first in REGISTERS:
            places += range(REGISTERS[ends[0]], REGISTERS[ends[1]] + 1)
        else:
            wide = 2 if first[0] == "d" else 1
            low, high = (int(name[1:]) * wide for name in ends)
            places += range(SINGLES + low, SINGLES + high + wide)
    return places


def source_of(tokens: list[str], listed: Listed) -> Source:
    """Return the last operand: a constant, a register, or a register shifted."""
    value = number(tokens[0])
    if value is not None:
        return lambda machine: value
    if tokens[0] not in REGISTERS:
        raise FirmwareError(f"0x{listed.address:08x}: {listed.text!r} is not understood")
    register = REGISTERS[tokens[0]]
    if register == PC:
        here = listed.address + 4
        return lambda machine: here
    if len(tokens) == 1:
        return lambda machine: machine.state[register]
    kind, _, amount = tokens[1].partition(" ")
    by = source_of([amount or "#1"], listed)
    return lambda machine: shift(machine.scope, kind, machine.state[register], by(machine))


def shift(scope: Any, kind: str, value: Value, amount: Value) -> Value:
    """Return a value shifted; rotations and shifts that data decide give data."""
    if not are_known(amount, value):
        return 0 if value == 0 else lost(value, amount)
    bits = scope.pin(amount) & 0xFF
    if kind == "lsl":
        return times(value, 1 << bits) if bits < 32 else 0
    if kind == "lsr":
        return scope.halve_unsigned(value, bits) if bits < 32 else 0
    if kind == "asr":
        return scope.halve(value, min(bits, 31))
    turned = scope.pin(value) & 0xFFFFFFFF
    bits %= 32
    return wrap(turned >> bits | turned << (32 - bits)) if kind == "ror" else DATA
