"""What an instruction reads and writes, by the shape of its operands."""

from __future__ import annotations

from collections.abc import Callable

from hwmodels.isa.operands import Operand

FLAGS = "nzcv"
"""Condition flags, as a register."""

PREDICATE = "vpr"
"""Vector predicate, as a register."""

Reads = tuple[tuple[str, str], ...]
Form = Callable[[list[Operand]], tuple[Reads, tuple[str, ...]]]


def _values(operands: list[Operand]) -> Reads:
    return tuple(read for operand in operands for read in operand.reads())


def _accumulates(operand: Operand) -> Reads:
    return tuple((register, "accumulate") for register in operand.registers)


def _written(operands: list[Operand], count: int) -> tuple[str, ...]:
    return tuple(register for operand in operands[:count] for register in operand.registers)


def _form_binary(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    registers = [operand for operand in operands if not operand.is_shift]
    sources = operands if len(registers) == 2 else operands[1:]
    return _values(sources), _written(operands, 1)


def _form_mla(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    return (*_values(operands[1:3]), *_accumulates(operands[3])), _written(operands, 1)


def _form_accumulate(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    return (*_accumulates(operands[0]), *_values(operands[1:])), _written(operands, 1)


def _form_long_accumulate(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    reads = (*_accumulates(operands[0]), *_accumulates(operands[1]), *_values(operands[2:]))
    return reads, _written(operands, 2)


def _form_extend_add(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    added, extracted = operands[-2:]
    reads = (*_accumulates(added), *((name, "shift") for name in extracted.registers))
    return reads, _written(operands, 1)


def _form_pack(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    kept, moved = operands[-2:]
    reads = (*_values([kept]), *((name, "shift") for name in moved.registers))
    return reads, _written(operands, 1)


def _form_vmov(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    """Return moves between files: two registers at a time, or one lane kept beside the others."""
    first = operands[0]
    pair = len(operands) == 4 or (len(operands) == 3 and len(operands[2].registers) == 2)
    count = 2 if pair else 1
    reads = _values(operands[count:] if pair else operands[1:])
    if first.lane:
        return (*reads, *_values(operands[:1])), _written(operands, 1)
    return reads, _written(operands, count)


def _form_index(operands: list[Operand]) -> tuple[Reads, tuple[str, ...]]:
    return _values(operands[1:]), _written(operands, 2)


FORMS: dict[str, Form] = {
    "binary": _form_binary,
    "unary": lambda operands: (_values(operands[1:] or operands), _written(operands, 1)),
    "merge": lambda operands: (_values(operands), _written(operands, 1)),
    "compare": lambda operands: (_values(operands), ()),
    "read": lambda operands: (_values(operands), ()),
    "write": lambda operands: (_values(operands[1:]), _written(operands, 1)),
    "select": lambda operands: (_values(operands[1:]), _written(operands, 1)),
    "mla": _form_mla,
    "accumulate": _form_accumulate,
    "long": lambda operands: (_values(operands[2:]), _written(operands, 2)),
    "long_accumulate": _form_long_accumulate,
    "extend_add": _form_extend_add,
    "pack": _form_pack,
    "vmov": _form_vmov,
    "index": _form_index,
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
