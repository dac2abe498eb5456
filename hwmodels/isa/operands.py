"""Operands of an instruction, and what is read and written by the shape they have together."""

from __future__ import annotations

import re
from collections.abc import Callable

from hwmodels.frozen import NamedTexts, frozen

_ALIASES = {"r13": "sp", "r14": "lr", "r15": "pc", "ip": "r12", "fp": "r11", "sl": "r10",
            "sb": "r9", "apsr_nzcv": "nzcv", "apsr": "nzcv", "p0": "vpr"}
RISCV_NAMES = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3",
          "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
          "t3", "t4", "t5", "t6")
_ALIASES.update({f"x{i}": name for i, name in enumerate(RISCV_NAMES)})

_REGISTER = re.compile(
    r"^(?:r\d{1,2}|x\d{1,2}|[asdt]\d{1,2}|ft\d{1,2}|fa\d|fs\d{1,2}|f\d{1,2}|q[0-7]|sp|lr|pc|ip|fp"
    r"|sl|sb|ra|gp|tp|zero|vpr|p0|apsr|apsr_nzcv|fpscr)$")
_LANE = re.compile(r"^(q[0-7]|d\d{1,2})\[\d+\]$")
_SHIFT = re.compile(r"^(lsl|lsr|asr|ror|rrx|uxtw)(?:\s++(.*))?$")
_NUMBER = re.compile(r"^#?(-?(?:0x[0-9a-f]+|\d+))(?:\.\d+(?:e[+-]?\d+)?)?$")
_INDIRECT = re.compile(r"^(-?(?:0x[0-9a-f]+|\d+)|%\w+\([^)]*\)|\w+)?\((\w+)(!?)\)$")

LOW_REGISTERS = frozenset(f"r{i}" for i in range(8)) | {"sp", "pc", "lr"}
"""Registers a 16-bit T32 encoding reaches; sp, pc and lr in the encodings that name them."""


@frozen
class Operand:
    """One operand.

    Parameters
    ----------
    text
        As written, lower case.
    registers
        Canonical names; a vector or double register as the single registers it overlays.
    count
        Registers as written.
    immediate
        A constant, or the constant offset of an address.
    shift
        "lsl", "asr" ...: how the register of this operand is shifted.
    """

    text: str
    registers: tuple[str, ...] = ()
    count: int = 0
    immediate: int | None = None
    shift: str | None = None
    is_shift: bool = False
    memory: bool = False
    writeback: bool = False
    is_list: bool = False
    vector: bool = False
    is_float: bool = False
    lane: bool = False

    def reads(self) -> NamedTexts:
        """Return the registers with the port they enter by."""
        port = "shift" if self.shift else "value"
        return tuple((name, port) for name in self.registers)


def read_operands(text: str) -> list[Operand]:
    """Read the operands of one instruction; a shift is folded into the operand it follows.

    Parameters
    ----------
    text
        Everything after the mnemonic.

    Returns
    -------
    list of Operand
        In order.

    Raises
    ------
    ValueError
        When brackets do not match.
    """
    operands: list[Operand] = []
    for part in _split(text.lower()):
        shift = _SHIFT.match(part)
        if shift and operands:
            amount = expand(shift[2]) if shift[2] else ()
            last = operands[-1]
            operands[-1] = Operand(
                text=last.text, registers=(*last.registers, *amount), count=last.count,
                immediate=last.immediate, shift=shift[1])
        else:
            operands.append(_read(part))
    return operands


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    if depth:
        raise ValueError(f"brackets do not match in {text!r}")
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def expand(name: str | None) -> tuple[str, ...]:
    """Canonical registers behind a written name: q1 is s4 to s7, d1 is s2 and s3, x0 is none."""
    if not name or not _REGISTER.match(name):
        return ()
    if name[0] == "q":
        first = 4 * int(name[1:])
        return tuple(f"s{first + i}" for i in range(4))
    if name[0] == "d":
        first = 2 * int(name[1:])
        return (f"s{first}", f"s{first + 1}")
    name = _ALIASES.get(name, name)
    return () if name == "zero" else (name,)


def _read(part: str) -> Operand:
    writeback = part.endswith("!")
    bare = part.rstrip("!").strip()
    if bare.startswith("["):
        return _read_address(part, bare, writeback)
    if bare.startswith("{"):
        return _read_list(part, bare)
    lane = _LANE.match(bare)
    if lane:
        return Operand(text=part, registers=expand(lane[1]), count=1,
                       vector=lane[1][0] == "q", lane=True, is_float=True)
    number = _NUMBER.match(bare)
    if number:
        return Operand(text=part, immediate=int(number[1], 0))
    indirect = _INDIRECT.match(bare)
    if indirect and _REGISTER.match(indirect[2]):
        number = _NUMBER.match(indirect[1] or "")
        return Operand(text=part, registers=(*expand(indirect[2]), *expand(indirect[1])), count=1,
                       immediate=int(number[1], 0) if number else 0, memory=True,
                       writeback=bool(indirect[3]))
    if _REGISTER.match(bare):
        return Operand(text=bare, registers=expand(bare), count=1, writeback=writeback,
                       vector=bare[0] == "q", is_float=bare[0] in "qd"
                       or (bare[0] == "s" and bare[1:].isdigit()))
    return Operand(text=part)


def _read_address(part: str, bare: str, writeback: bool) -> Operand:
    fields = [field.strip() for field in bare.strip("[]").split(",")]
    registers = tuple(name for field in fields for name in expand(field))
    number = next((match for match in map(_NUMBER.match, fields) if match), None)
    return Operand(text=part, registers=registers, count=1, memory=True, writeback=writeback,
                   immediate=int(number[1], 0) if number else 0,
                   vector=any(field[:1] == "q" for field in fields))


def _read_list(part: str, bare: str) -> Operand:
    names: list[str] = []
    for field in bare.strip("{}").split(","):
        first, _, last = field.strip().partition("-")
        first, last = first.strip(), last.strip()
        if last and first[0] == last[0] and last[1:].isdigit():
            names += [f"{first[0]}{i}" for i in range(int(first[1:]), int(last[1:]) + 1)]
        elif last:
            names += [first, last]
        elif first:
            names.append(first)
    registers = tuple(register for name in names for register in expand(name))
    return Operand(text=part, registers=registers, count=len(names), is_list=True,
                   vector=any(name[:1] == "q" for name in names),
                   is_float=any(name[:1] in ("s", "d", "q") and name != "sp" for name in names))


FLAGS = "nzcv"
"""Condition flags, as a register."""

PREDICATE = "vpr"
"""Vector predicate, as a register."""

Reads = NamedTexts
Effect = tuple[Reads, tuple[str, ...]]
"""Registers an instruction reads, each with the port it is read at, and those it writes."""

Form = Callable[[list[Operand]], Effect]


def _values(operands: list[Operand]) -> Reads:
    return tuple(read for operand in operands for read in operand.reads())


def _ported(operands: list[Operand], port: str) -> Reads:
    return tuple((register, port) for operand in operands for register in operand.registers)


def _accumulates(operands: list[Operand]) -> Reads:
    return _ported(operands, "accumulate")


def _written(operands: list[Operand], count: int) -> tuple[str, ...]:
    return tuple(register for operand in operands[:count] for register in operand.registers)


def _form_binary(operands: list[Operand]) -> Effect:
    registers = [operand for operand in operands if not operand.is_shift]
    sources = operands if len(registers) == 2 else operands[1:]
    return _values(sources), _written(operands, 1)


def _form_mla(operands: list[Operand]) -> Effect:
    return (*_values(operands[1:3]), *_accumulates([operands[3]])), _written(operands, 1)


def _plain(first: int, written: int) -> Form:
    """Return the form that reads operands from one on, and writes so many from the beginning."""
    return lambda operands: (_values(operands[first:]), _written(operands, written))


def _accumulate(count: int) -> Form:
    """Return the form that adds to the first operands what the others make."""
    return lambda operands: ((*_accumulates(operands[:count]), *_values(operands[count:])),
                             _written(operands, count))


def _shift_last(read: Callable[[list[Operand]], Reads]) -> Form:
    """Return the form that joins its last operand, shifted, to the one before, read as stated."""
    return lambda operands: ((*read(operands[-2:-1]), *_ported(operands[-1:], "shift")),
                             _written(operands, 1))


def _form_vmov(operands: list[Operand]) -> Effect:
    """Return moves between files: two registers at a time, or one lane kept beside the others."""
    first = operands[0]
    pair = len(operands) == 4 or (len(operands) == 3 and len(operands[2].registers) == 2)
    count = 2 if pair else 1
    reads = _values(operands[count:] if pair else operands[1:])
    if first.lane:
        return (*reads, *_values(operands[:1])), _written(operands, 1)
    return reads, _written(operands, count)


FORMS: dict[str, Form] = {
    "binary": _form_binary,
    "unary": lambda operands: (_values(operands[1:] or operands), _written(operands, 1)),
    "merge": _plain(0, 1), "compare": _plain(0, 0), "read": _plain(0, 0), "write": _plain(1, 1),
    "select": _plain(1, 1), "long": _plain(2, 2), "index": _plain(1, 2),
    "mla": _form_mla,
    "accumulate": _accumulate(1), "long_accumulate": _accumulate(2),
    "extend_add": _shift_last(_accumulates), "pack": _shift_last(_values),
    "vmov": _form_vmov,
    "f_compare": lambda operands: (_values(operands), ("fpscr",)),
    "v_compare": lambda operands: (_values(operands), (PREDICATE,)),
    "predicate": lambda operands: (
        _values(operands) if operands else ((PREDICATE, "value"),), (PREDICATE,)),
    "none": lambda operands: ((), ()),
}
"""Reads with their ports, and writes, by form (`hwmodels.isa.mnemonics`)."""

LEAST_OPERANDS = {
    "binary": 2, "unary": 2, "merge": 2, "compare": 2, "f_compare": 2, "v_compare": 2, "write": 2,
    "mla": 4, "accumulate": 2, "long": 3, "long_accumulate": 3, "extend_add": 2, "pack": 2,
    "vmov": 2, "index": 2, "select": 1, "load": 1, "store": 1,
}
"""Fewest operands a form makes sense with."""
