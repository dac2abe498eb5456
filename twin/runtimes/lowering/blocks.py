"""Blocks of instructions and how often they run, and the kernel made of them.

Four dialects: `dsp` (Armv7E-M, Armv8-M with DSP: packed 16-bit multiplies), `thumb2` (plain C
on Armv7-M and Armv8-M), `thumb1` (plain C on Armv6-M: no long multiply, no unaligned access) and
`rv32` (plain C on RV32IMC). A sequence states the mix and the dependencies of what a compiler
makes of a library's C (gcc 12.2 -O2); register numbers carry only the dependencies.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hwmodels.file_cache import read_yaml_once
from hwmodels.isa import load_isa
from hwmodels.kernel import Block, Blocks, Kernel, Nests
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.nests import count_blocks, resolve

_BYTES_PER_INSTRUCTION = {"dsp": 2.73, "thumb2": 2.66, "thumb1": 2.05, "rv32": 2.87}
"""Mean length of an instruction, measured on the compiled kernels (gcc 12.2 -O2)."""


def plain(dialect: str) -> str:
    """Return the dialect of plain C on the same core: `thumb2` for `dsp`."""
    return "thumb2" if dialect == "dsp" else dialect


BRANCH = {"dsp": "bne 0b", "thumb2": "bne 0b", "thumb1": "bne 0b", "rv32": "bne a2, a6, 0b"}
"""Closing branch of a loop."""

CALL = {"dsp": "bl 0f", "thumb2": "bl 0f", "thumb1": "bl 0f", "rv32": "call 0f"}
RETURN = {"dsp": "bx lr", "thumb2": "bx lr", "thumb1": "bx lr", "rv32": "ret"}

_SPILLS = {  # index arithmetic and spills: load, store, arithmetic
    "thumb2": (("ldr r3, [sp, #28]", "ldr r0, [sp, #44]"), ("str r1, [sp, #36]",),
               ("add r2, r3", "adds r1, #1", "mov r5, r2", "cmp r0, r1")),
    "thumb1": (("ldr r3, [sp, #28]", "ldr r0, [sp, #44]"), ("str r1, [sp, #36]",),
               ("adds r2, r2, r3", "adds r1, #1", "mov r8, r2", "cmp r0, r1")),
    "rv32": (("lw a3, 28(sp)", "lw a0, 44(sp)"), ("sw a1, 36(sp)",),
             ("add a2, a2, a3", "addi a1, a1, 1", "mv a5, a2", "add a4, a4, a0")),
}

_JUMP = {"thumb2": "b 1f", "thumb1": "b 1f", "rv32": "j 1f"}


@cache
def spills(dialect: str, loads: int, stores: int, arithmetic: int, jumps: int = 0) -> str:
    """Return index arithmetic and spills, evenly mixed.

    Parameters
    ----------
    loads, stores, arithmetic
        Stack loads, stack stores and register instructions.
    jumps
        Branches taken inside: a block's text is the path executed, so they are unconditional.
    """
    texts = (*_SPILLS[plain(dialect)], (_JUMP[plain(dialect)],))
    return spread(dict(enumerate(texts)), dict(enumerate((loads, stores, arithmetic, jumps))))


def read_code(module: str) -> Mapping[str, SimpleNamespace]:
    """Return the instructions of a library by module and name: `instructions.yaml` beside a module.

    Parts in a list follow each other; {times: n, of: x} is x so often; {each: [...]} is a tuple.
    """
    tables = read_yaml_once(Path(module).with_name("instructions.yaml"))
    return {name: SimpleNamespace(**_write(table)) for name, table in tables.items()}


def _write(code: Any) -> Any:
    match code:
        case list():
            return join(*map(_write, code))
        case {"times": times, "of": part}:
            return join(*[_write(part)] * times)
        case {"each": parts}:
            return tuple(map(_write, parts))
        case dict():
            return {name: _write(part) for name, part in code.items()}
    return code


def join(*parts: str) -> str:
    """Return block text of several sequences, empty ones omitted."""
    return "; ".join(part for part in parts if part)


def spread(texts: Mapping[Any, Sequence[str]], counts: Mapping[Any, int]) -> str:
    """Return so many instructions of each kind, evenly mixed: the one most behind its share next.

    Parameters
    ----------
    texts
        Instructions of each kind, taken in turn.
    counts
        How many of each kind.
    """
    total, lines = sum(counts.values()), []
    turns = {kind: itertools.cycle(texts[kind]) for kind, count in counts.items() if count}
    behind = dict.fromkeys(turns, 0)
    for _ in range(total):
        for kind in turns:
            behind[kind] += counts[kind]
        chosen = max(behind, key=behind.__getitem__)
        behind[chosen] -= total
        lines.append(next(turns[chosen]))
    return "; ".join(lines)


def block(name: str, code: str, trips: int, entries: int | None = None,
          cause: str | None = None) -> Block:
    """Return a block; straight (entries equal trips) unless entries are given.

    Parameters
    ----------
    name, code
        What it does, and its instructions.
    trips
        How often it runs in all.
    entries
        How often it is entered from elsewhere, of a loop body; at most its trips.
    cause
        Cause all its issue slots belong to; None: by instruction class.
    """
    return Block(name=name, code=code, trips=trips,
                 entries=trips if entries is None else min(entries, trips), cause=cause)


def straight(name: str, code: str, trips: int, taken: int = 0, cause: str | None = None) -> Block:
    """Return a straight block whose closing branch is taken `taken` times of its trips.

    Parameters
    ----------
    name, code
        What it does, and its instructions.
    trips, taken
        How often it runs, and how often its last branch is taken.
    cause
        Cause all its issue slots belong to.
    """
    return block(name, code, trips, trips - taken, cause)


def build_kernel(name: str, family: str, site: Site, blocks: Blocks,
                 nests: Nests, macs: int = 0, assumed: bool = False) -> Kernel:
    """Return a kernel with the operands its accesses name and its code's footprint.

    Parameters
    ----------
    name, family
        Function of the library, and operator family.
    site
        Where it runs, with the operands it may touch.
    macs
        Multiply-accumulates the result needs.
    assumed
        No source and no data stands behind the structure.

    Notes
    -----
    Footprint = distinct instructions of the blocks x mean instruction length; blocks never run
    are omitted. Everything is assumed on a host.
    """
    used = tuple(one for one in blocks if one.trips)
    instructions = sum(count_instructions(one.code) for one in used)
    length = _BYTES_PER_INSTRUCTION[site.dialect]
    names = _operand_names(nests)
    return Kernel(
        name=name, family=family, blocks=used, nests=nests,
        operands=tuple(operand for operand in site.operands if operand.name in names),
        useful_macs=macs, code_bytes=round(instructions * length),
        assumed=assumed or load_isa(site.isa).assumed)


def draft_kernel(name: str, family: str, site: Site, *drafts: Any, macs: int = 0,
                 assumed: bool = False) -> Kernel:
    """Return the kernel of loops in which instructions stand beside their accesses.

    Parameters
    ----------
    name, family
        Function of the library, and operator family.
    site
        Where it runs, with the operands it may touch.
    drafts : Repeat, Move, Step or Block
        In program order.
    macs
        Multiply-accumulates the result needs.
    assumed
        No source and no data stands behind the structure.
    """
    return build_kernel(name, family, site, count_blocks(*drafts), resolve(*drafts), macs, assumed)


@cache
def count_instructions(code: str) -> int:
    """Instructions of a block's text."""
    return sum(1 for part in code.replace("\n", ";").split(";") if part.strip())


def _operand_names(nests: Nests) -> set[str]:
    names: set[str] = set()
    for nest in nests:
        if hasattr(nest, "operand"):
            names.add(nest.operand)
        else:
            names |= _operand_names(nest.body)
    return names
