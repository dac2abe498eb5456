"""Assembly text read as instructions: what each does, which registers it waits for and writes.

Arm T32 in unified syntax (Armv6-M to Armv8.1-M with DSP, floating point and MVE), RV32IMAFC and
XpulpV2.
Text may come from lowering or from a disassembler: width suffixes, condition codes, IT and VPT
blocks, addresses, encodings and comments are understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from hwmodels.errors import KernelError
from hwmodels.frozen import frozen
from hwmodels.isa.mnemonics import Mnemonic, Word, is_narrow, read_word
from hwmodels.isa.operands import (
    FLAGS,
    FORMS,
    LEAST_OPERANDS,
    PREDICATE,
    Operand,
    Reads,
    read_operands,
)


@frozen
class Instruction:
    """One instruction as a core model sees it.

    Parameters
    ----------
    mnemonic
        Base name: without condition, flag, width and data-type suffixes.
    kind
        "mac", "mul", "alu", "load", "store", "branch", "call" or "nop".
    timing
        Timing class, a key of a core table.
    reads : tuple of (str, str)
        Registers waited for and the port each enters by: "value", "address", "shift" (shifted or
        extracted operand), "accumulate", "data" (value stored) or "flags".
    writes
        Registers that hold its result.
    base_writes
        Address registers it steps.
    base
        Address register, where there is exactly one.
    offset_bytes
        Immediate offset from `base`; None when a register is added.
    transfers
        Registers loaded or stored, a double register as two.
    loaded_bytes, stored_bytes
        Bytes moved; of a predicated vector access, all lanes.
    mac_lanes
        Multiply-accumulates done.
    vector
        Whether it works on vector registers.
    narrow
        Whether it has a 16-bit encoding: stated by `.n`, otherwise judged from the operands.
    sets_flags
        Whether it writes the condition flags.
    flow
        Of a branch: "conditional", "jump", "call", "loop_end" or "loop_start"; "return"
        of a load of the program counter.
    """

    text: str
    mnemonic: str
    kind: str
    timing: str
    reads: Reads = ()
    writes: tuple[str, ...] = ()
    base_writes: tuple[str, ...] = ()
    base: str | None = None
    offset_bytes: int | None = None
    transfers: int = 0
    loaded_bytes: int = 0
    stored_bytes: int = 0
    mac_lanes: int = 0
    vector: bool = False
    narrow: bool = False
    sets_flags: bool = False
    flow: str | None = None


@lru_cache(maxsize=4096)
def parse_code(code: str) -> tuple[Instruction, ...]:
    """Read assembly text into instructions.

    Parameters
    ----------
    code
        Instructions separated by newlines or semicolons; labels, directives and comments are
        skipped.

    Returns
    -------
    tuple of Instruction
        In program order.

    Raises
    ------
    KernelError
        When a mnemonic is not known or an operand is missing; names the instruction.
    """
    return tuple(_parse_line(line) for line in _split_lines(code))


_COMMENT = re.compile(r"@.*|//.*|/\*(?:(?!\*/).)*+(?:\*/)?")
_LISTING = re.compile(r"^\s*(?:0x)?[0-9a-f]+:\s+(?:(?:[0-9a-f]{8}|[0-9a-f]{4}|[0-9a-f]{2})\s+)+",
                      re.IGNORECASE)
_ADDRESS = re.compile(r"^\s*0x[0-9a-f]+:\s*", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:[0-9a-f]+\s+<[^>]*>|[\w.$]+):\s*")


def _split_lines(code: str) -> Iterator[str]:
    for line in code.split("\n"):
        line = _LISTING.sub("", _COMMENT.sub("", line))
        for part in line.split(";"):
            part = _ADDRESS.sub("", part)
            part = _LABEL.sub("", part).strip()
            if part and (part[0].isalpha()):
                yield part


@lru_cache(maxsize=8192)  # the same few lines recur from block to block
def _parse_line(line: str) -> Instruction:
    head, _, rest = line.partition(" ")
    if "\t" in head:
        head, _, tail = head.partition("\t")
        rest = f"{tail} {rest}"
    try:
        operands = read_operands(rest.strip())
    except ValueError as problem:
        raise KernelError(f"instruction {line!r}: {problem}") from None
    word = read_word(head.lower(), any(operand.vector for operand in operands), line)
    least = LEAST_OPERANDS.get(word.spec.form, 0)
    if len(operands) < least:
        raise KernelError(f"instruction {line!r}: {len(operands)} operands, at least {least} "
                          "expected")
    return _build(line, word, operands)


def _build(line: str, word: Word, operands: list[Operand]) -> Instruction:
    spec = word.spec
    if spec.form in ("load", "store"):
        return _build_access(line, word, operands)
    if spec.form in ("branch", "loop", "loop_start"):
        return _build_branch(line, word, operands)
    reads, writes = FORMS[spec.form](operands)
    sets_flags = word.flags or spec.form == "compare"
    if sets_flags:
        writes = (*writes, FLAGS)
    if spec.timing == "carry" or spec.form == "select":
        reads = (*reads, (FLAGS, "value"))
    vector = any(operand.vector for operand in operands) or spec.timing.startswith("v_")
    return Instruction(
        text=line, mnemonic=word.base, kind=spec.kind, timing=_timing_class(word, operands),
        reads=_extra_reads(reads, writes, word), writes=writes,
        mac_lanes=_count_lanes(spec, word.types), vector=vector,
        narrow=is_narrow(word, operands), sets_flags=sets_flags,
    )


def _extra_reads(reads: Reads, writes: tuple[str, ...], word: Word) -> Reads:
    """Add what predication waits for: the condition, and the old value it may keep."""
    if word.conditional and word.base != "it":
        kept = tuple((register, "value") for register in writes if register != FLAGS)
        return (*reads, (FLAGS, "value"), *kept)
    if word.predicated:
        return (*reads, (PREDICATE, "value"), *((register, "value") for register in writes))
    return reads


def _count_lanes(spec: Mnemonic, types: tuple[str, ...]) -> int:
    if not spec.bits:
        return spec.lanes
    bits = int(re.sub(r"\D", "", types[-1])) if types else 8
    return spec.bits // bits


def _timing_class(word: Word, operands: list[Operand]) -> str:
    timing = word.spec.timing
    shifted = next((operand for operand in operands if operand.shift), None)
    if shifted is not None and timing in ("add", "logic", "carry", "compare"):
        return "alu_lsl" if shifted.shift == "lsl" else "alu_shift"
    if timing == "move" and shifted is not None:
        return "shift"
    if timing == "add" and operands and operands[-1].immediate is not None:
        return "add_immediate"
    if timing == "mul" and word.flags:
        return "mul_flags"
    return timing


@frozen
class _Place:
    """Where an access goes and what it moves."""

    address: tuple[str, ...] = ()
    base: str | None = None
    offset_bytes: int | None = None
    steps: bool = False
    data: list[Operand]


def _read_place(word: Word, operands: list[Operand]) -> _Place:
    if word.base in ("push", "pop", "vpush", "vpop") or word.base.startswith("cm."):
        return _Place(address=("sp",), base="sp", steps=True, data=operands)
    place = next((i for i, operand in enumerate(operands) if operand.memory), None)
    if place is None and word.spec.timing.endswith("_multi"):
        place = 0  # ldm r0!, {r4-r7}: the address register stands first
    if place is None:
        return _Place(base="pc", data=operands[:1])  # ldr r0, =constant
    memory = operands[place]
    after = operands[place + 1:] if place else []
    return _Place(
        address=(*memory.registers, *(name for extra in after for name in extra.registers)),
        base=memory.registers[0] if memory.registers else None,
        offset_bytes=memory.immediate if len(memory.registers) == 1 else None,
        steps=memory.writeback or bool(after), data=operands[:place] or operands[1:])


def _build_access(line: str, word: Word, operands: list[Operand]) -> Instruction:
    """Build a load or store: data registers, address registers, bytes."""
    spec = word.spec
    place = _read_place(word, operands)
    names = tuple(name for operand in place.data for name in operand.registers)
    if word.base.startswith("strex"):
        names = names[1:]
    double = spec.timing.startswith("f_")
    transfers = sum(len(operand.registers) if double else operand.count
                    for operand in place.data) or 1
    moved = _count_bytes(word, transfers)
    loads = spec.kind == "load"
    reads: Reads = tuple((name, "address") for name in place.address)
    if not loads:
        reads = (*reads, *((name, "data") for name in names))
    writes = names if loads else ()
    return Instruction(
        text=line, mnemonic=word.base, kind=spec.kind, timing=_access_class(spec, place, transfers),
        reads=_extra_reads(reads, writes, word), writes=writes,
        base_writes=(place.base,) if place.steps and place.base else (), base=place.base,
        offset_bytes=place.offset_bytes, transfers=transfers,
        vector=spec.timing.startswith("v_"),
        loaded_bytes=moved if loads else 0, stored_bytes=0 if loads else moved,
        narrow=is_narrow(word, operands), flow="return" if "pc" in writes else None,
    )


def _access_class(spec: Mnemonic, place: _Place, transfers: int) -> str:
    """Return the timing class of an access: gathers by their offsets, doubles as multiples."""
    if spec.timing in ("f_load", "f_store") and transfers > 1:
        return f"{spec.timing}_multi"
    if spec.timing.startswith("v_") and any(name[0] == "s" and name != "sp"
                                            for name in place.address):
        return "v_gather" if spec.kind == "load" else "v_scatter"
    if spec.timing == "store" and len(place.address) > 1:
        return "store_register"
    return spec.timing


def _count_bytes(word: Word, transfers: int) -> int:
    spec = word.spec
    if not spec.timing.startswith("v_"):
        return spec.width_bytes * transfers
    if spec.width_bytes == 16:
        return 16
    element_bits = int(re.sub(r"\D", "", word.types[-1])) if word.types else 8 * spec.width_bytes
    return 16 * 8 * spec.width_bytes // max(element_bits, 8 * spec.width_bytes)


def _build_branch(line: str, word: Word, operands: list[Operand]) -> Instruction:
    spec = word.spec
    names = tuple(name for operand in operands for name in operand.registers)
    reads: Reads = tuple((name, "value") for name in names)
    writes: tuple[str, ...] = ()
    timing = spec.timing
    flow = "conditional" if timing == "branch" else timing
    if spec.form == "loop":
        reads, writes = ((("lr", "value"),), ("lr",))
    elif spec.form == "loop_start":
        reads, writes = tuple((name, "value") for name in names if name != "lr"), ("lr",)
    elif flow == "call":
        writes = ("lr",)
        if word.base in ("jal", "jalr") and operands and operands[0].text in ("zero", "x0"):
            flow, timing, writes = "jump", "jump", ()
    elif word.base in ("b", "bal") and not word.conditional:
        reads, flow, timing = (), "jump", "jump"
    elif not names or (word.conditional and word.base == "b"):
        reads = ((FLAGS, "flags"),) if flow == "conditional" else ()
    elif word.conditional:
        reads = (*reads, (FLAGS, "flags"))
    return Instruction(text=line, mnemonic=word.base, kind=spec.kind, timing=timing, reads=reads,
                       writes=writes, flow=flow, narrow=is_narrow(word, operands))
