"""What each mnemonic is: kind of work, timing class, shape of its operands, MAC lanes.

The tables are in mnemonics.yaml, which says what forms are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hwmodels.errors import KernelError, did_you_mean
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen
from hwmodels.isa.operands import LOW_REGISTERS, Operand

CONDITIONS = ("eq", "ne", "cs", "hs", "cc", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt",
              "gt", "le", "al")
"""Arm condition suffixes."""


@frozen
class Mnemonic:
    """How to read one mnemonic.

    Parameters
    ----------
    kind
        "mac", "mul", "alu", "load", "store", "branch", "call" or "nop".
    timing
        Timing class, a key of a core table.
    form
        Shape of its operands; see mnemonics.yaml.
    lanes
        Multiply-accumulates of one execution.
    bits
        Of a vector register, where they are that over the data type's width.
    width_bytes
        Bytes of one transfer; 0 for arithmetic.
    """

    kind: str
    timing: str
    form: str
    lanes: int = 0
    bits: int = 0
    width_bytes: int = 0


def _read_table(rows: Iterable[dict[str, Any]]) -> dict[str, Mnemonic]:
    return {name: Mnemonic(**{"form": row["kind"], **row})
            for row in rows for name in row.pop("names").split()}


_DOCUMENT = read_yaml_once(Path(__file__).parents[1] / "mnemonics.yaml")

TABLES: Mapping[str, Mapping[str, Mnemonic]] = {
    table: _read_table(rows) for table, rows in _DOCUMENT["mnemonics"].items()}
"""Mnemonics by name: "scalar", "float", "memory", "vector" and "vector_memory"."""

PARENTS: Mapping[str, str] = {
    timing: parent for parent, classes in _DOCUMENT["timed_as"].items() for timing in classes}
"""Timing class a class is timed as where a core's table does not list it."""


@frozen
class Word:
    """A mnemonic taken apart."""

    base: str
    spec: Mnemonic
    flags: bool
    conditional: bool
    predicated: bool
    types: tuple[str, ...]
    width: str


_IT = re.compile(r"^it[te]{0,3}$")
_DATA_TYPE = re.compile(r"^[suifp]?(?:8|16|32|64)$")


def read_word(head: str, vector: bool, line: str) -> Word:
    """Take a mnemonic apart: base name, flags, condition, data types, width."""
    parts = head.split(".")
    width = ""
    if len(parts) > 1 and parts[-1] in ("w", "n") and not (
            head in TABLES["float"] or head in TABLES["memory"]):
        width = parts.pop()
    types = []
    while len(parts) > 1 and _DATA_TYPE.match(parts[-1]):
        types.append(parts.pop())
    name = ".".join(parts)
    if _IT.match(name):
        it = Mnemonic(kind="nop", timing="it", form="none")
        return Word(base="it", spec=it, flags=False, conditional=True, predicated=False,
                     types=(), width="n")
    tables = [TABLES[table] for table in (
        ("vector", "vector_memory") if vector else ("scalar", "float", "memory", "vector"))]
    for base, flags, conditional, predicated in _spellings(name, vector):
        for table in tables:
            if base in table:
                return Word(base=base, spec=table[base], flags=flags, conditional=conditional,
                             predicated=predicated, types=tuple(reversed(types)), width=width)
    known = [known for table in tables for known in table]
    raise KernelError(f"instruction {line!r}: mnemonic {head!r} is not known; "
                      + did_you_mean(name, known))


def _spellings(name: str, vector: bool) -> Iterator[tuple[str, bool, bool, bool]]:
    """Return readings of a name: base, sets flags, conditional, predicated; plainest first."""
    yield name, False, False, False
    if vector or name.startswith("v"):
        if name[-1:] in ("t", "e"):
            yield name[:-1], False, False, True
    elif name.endswith("s"):
        yield name[:-1], True, False, False
    for condition in CONDITIONS:
        if name.endswith(condition):
            stem = name[:-len(condition)]
            yield stem, False, True, False
            if stem.endswith("s"):
                yield stem[:-1], True, True, False


_NARROW_IMMEDIATES = {"add": 255, "sub": 255, "mov": 255, "cmp": 255, "lsl": 31, "lsr": 31,
                      "asr": 31, "rsb": 0}
_WIDE_ONLY = ("sxtb16", "uxtb16", "movw", "movt", "mla", "mls", "sbfx", "ubfx", "bfi", "bfc", "orn",
              "addw", "subw", "clz", "rbit", "ldrd", "strd", "pld", "teq", "le", "letp")


def is_narrow(word: Word, operands: list[Operand]) -> bool:
    """Judge whether a 16-bit encoding exists (Arm DDI 0403, A5.2), as an assembler would pick."""
    if word.width:
        return word.width == "n"
    spec = word.spec
    if spec.kind in ("nop", "branch"):
        return word.base not in ("le", "letp")
    if word.base in _WIDE_ONLY or spec.timing in (
            "simd", "pack", "saturate", "saturate_dual", "extend_add", "select", "mul_long", "div",
            "mac_half", "mac_dual", "mac_long", "mac_high", "mul_high", "mul_half", "mul_dual"):
        return False
    if any(operand.vector or operand.is_float or operand.writeback for operand in operands
           if not operand.is_list) or spec.timing.startswith(("f_", "v_")):
        return False
    names = {name for operand in operands for name in operand.registers}
    if word.base == "mov" and not any(operand.immediate is not None for operand in operands):
        return True
    if not names <= LOW_REGISTERS and spec.kind != "call":
        return False
    if any(operand.shift for operand in operands):
        return False
    return _is_short(word, operands)


def _is_short(word: Word, operands: list[Operand]) -> bool:
    """Judge whether a 16-bit encoding has room for the constant, and for the third register."""
    spec = word.spec
    immediate = next((o.immediate for o in operands if o.immediate is not None), None)
    same = len(operands) < 3 or operands[0].registers == operands[1].registers
    if spec.form in ("load", "store"):
        post = spec.kind in ("load", "store") and operands[-1].immediate is not None \
            and not operands[-1].memory
        return not post and (immediate is None or 0 <= immediate <= 31 * spec.width_bytes)
    if immediate is not None:
        limit = _NARROW_IMMEDIATES.get(word.base, -1)
        if word.base in ("add", "sub") and not same:
            limit = 7
        return 0 <= immediate <= limit
    return word.base in ("add", "sub") or same or spec.form == "unary"
