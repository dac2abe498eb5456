"""What T32 loads and stores, and what it makes of registers meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from twin.program.symbolic import DoneError, Reader
from twin.program.values import (
    AND,
    MASK,
    MULTIPLY,
    OR,
    READ,
    SHIFT_RIGHT,
    SHIFT_SIGNED,
    SIGN,
    WRITE,
    LostError,
    Sum,
)

REGISTERS = {**{f"r{place}": place for place in range(13)}, "sb": 9, "sl": 10, "fp": 11, "ip": 12,
             "sp": 13, "lr": 14}
ALWAYS = 15
"""Condition of an instruction without one, as capstone numbers them."""
_MEMORY = re.compile(r"\[(\w+)(?:, (?:#(-?\w+)|(\w+)(?:, lsl #(\w+))?))?\](!?)(?:, #(-?\w+))?$")
_SINGLE = re.compile(r"^(?:ldr|str|ldaex|lda|stl|ldrex)(s?)([bh]?)t?$")
_LIST = re.compile(r"^(?:ldm|stm|vldm|vstm)(ia|db|)$")
_SIZES = {"b": 1, "h": 2, "": 4}


class ThumbReader(Reader):
    """Reads T32; parameters as of `Reader`."""

    registers, ahead, machine = REGISTERS, 4, "arm"

    def read(self, one: Any) -> None:
        """Take one instruction; raises `LostError` where it begins a stretch of its own."""
        name = one.mnemonic.split(".")[0]
        conditional = one.cc != ALWAYS and not name.startswith(("it", "b", "cb"))
        if conditional:
            name = name[:-2]
        words = _split(one.op_str)
        accesses = self._find_accesses(name, words, one.address)
        if accesses is not None:
            if conditional and (self.accesses or one.address != self.start):
                raise LostError
            self.access(*accesses)
        elif name in MAKERS and not conditional and words[0] in REGISTERS:
            self.state[words[0]] = MAKERS[name](self, words, one.address)
        else:
            self._forget(one, name, words)
        if accesses is not None and conditional:
            raise DoneError

    def _forget(self, one: Any, name: str, words: list[str]) -> None:
        """Take what an instruction writes as not known; those that only compare write nothing."""
        for register in one.regs_access()[1]:
            self.state[one.reg_name(register)] = None
        if name not in ("cmp", "cmn", "tst", "teq"):
            for register in words[:2 if "l" in name else 1]:
                self.state[register] = None
        if name in ("msr", "cps"):
            self.state["sp"] = None

    def _find_accesses(self, name: str, words: list[str], place: int) -> Any:
        """Return what `access` takes; None for an instruction that accesses nothing."""
        if name in ("push", "pop", "vpush", "vpop"):
            return self._many(name.endswith("push"), "sp", True, words[0], name.endswith("push"),
                              place)
        found = _LIST.match(name)
        if found:
            return self._many("st" in name[:3], words[0].rstrip("!"), "!" in words[0], words[1],
                              found[1] == "db", place)
        if name in ("tbb", "tbh"):
            size = 1 if name == "tbb" else 2
            base, index = re.findall(r"\w+", words[0])[:2]
            return (READ, self.get(base, place), self.get(index, place), size - 1, [size], [],
                    None)
        store = name.startswith(("str", "stl", "vstr"))
        target = next((one for one in words if one.startswith("[")), None)
        if target is None or name in ("pld", "pli", "pldw"):
            return None
        memory = _MEMORY.search(", ".join(words[words.index(target):]))
        if memory is None:
            self.odd.append(name)
            return None
        data = words
        if name.startswith(("strex", "stlex")):
            self.state[words[0]], data = None, words[1:]
        data = data[:data.index(target)]
        return self._one(name, store, data, memory, place)

    def _one(self, name: str, store: bool, data: list[str], memory: re.Match[str],
             place: int) -> Any:
        """Return an access by one address."""
        base, offset, index, shift, early, late = memory.groups()
        held = self.get(base, place)
        if base == "pc":
            held = Sum(0, place + 4 & ~3)
        step = Sum(0, int(offset or late or "0", 0) & MASK)
        at = held if late else self.add(held, step)
        after = (base, self.add(held, step)) if early or late else None
        loaded: list[tuple[str, int, bool]] = []
        plain = _SINGLE.match(name)
        if name in ("ldrd", "strd", "vldr", "vstr"):
            pieces = [8 if data[0].startswith("d") else 4] * (2 if name[0] != "v" else 1)
            loaded = [] if store or name[0] == "v" else [(one, 4, False) for one in data]
        else:
            size = _SIZES[plain[2]] if plain else {"b": 1, "h": 2}.get(name[-1], 4)
            pieces = [size]
            loaded = [] if store else [(data[0], size, bool(plain and plain[1]))]
        if index is None:
            return (WRITE if store else READ, at, None, -1, pieces, loaded, after)
        return (WRITE if store else READ, held, self.get(index, place), int(shift or "0", 0),
                pieces, loaded, after)

    def _many(self, store: bool, base: str, back: bool, listed: str, down: bool,
              place: int) -> Any:
        """Return accesses of registers listed, upwards from the lowest address."""
        names = listed.strip("{}").split(", ")
        size = 8 if names[0].startswith("d") else 4
        held = self.get(base, place)
        below = self.add(held, Sum(0, -size * len(names) & MASK))
        above = self.add(held, Sum(0, size * len(names)))
        loaded = [] if store or names[0] not in (*REGISTERS, "pc") else [
            (one, size, False) for one in names]
        after = (base, below if down else above) if back and (store or base not in names) else None
        return (WRITE if store else READ, below if down else held, None, -1, [size] * len(names),
                loaded, after)

    def operand(self, words: list[str], place: int) -> tuple[Sum | None, int]:
        """Return the last operand and how far it is shifted left; None where not known."""
        if words[0].startswith("#"):
            return Sum(0, int(words[0][1:], 0) & MASK), 0
        if len(words) > 1:
            kind, _, by = words[1].partition(" #")
            return (self.get(words[0], place), int(by, 0)) if kind == "lsl" and by else (None, 0)
        return self.get(words[0], place), 0


def _split(text: str) -> list[str]:
    """Operands, what stands in brackets whole."""
    return re.split(r", ?(?![^\[{]*[\]}])", text)


Make = Callable[[ThumbReader, list[str], int], Sum | None]


def _sum(sign: int) -> Make:
    def work(values: ThumbReader, words: list[str], place: int) -> Sum | None:
        rest = words[1:] if len(words) == 2 or _shifts(words[2]) else words[2:]
        first = words[0] if len(words) == 2 or _shifts(words[2]) else words[1]
        second, shift = values.operand(rest, place)
        held = values.get(first, place)
        if first == "pc" and len(words) == 3:
            held = Sum(0, place + 4 & ~3)
        return values.add(held, second, shift, sign)
    return work


def _shifts(word: str) -> bool:
    return word.startswith(("lsl ", "lsr ", "asr ", "ror ", "rrx"))


def _reverse(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    second, shift = values.operand(words[2:], place)
    held = values.get(words[1], place)
    if second is None or shift:
        return None
    return values.add(second, held, 0, -1)


def _move(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    return values.operand(words[1:], place)[0] if len(words) == 2 else None


def _move_top(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    held = values.get(words[0], place)
    if held is None or held.value:
        return None
    return Sum(0, held.constant & 0xFFFF | int(words[1][1:], 0) << 16)


def _address(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    return Sum(0, (place + 4 & ~3) + int(words[1][1:], 0) & MASK)


def _left(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    if not words[-1].startswith("#"):
        return None
    return values.add(Sum(0), values.get(words[-2], place), int(words[-1][1:], 0))


def _right(kind: int) -> Make:
    def work(values: ThumbReader, words: list[str], place: int) -> Sum | None:
        by = int(words[-1][1:], 0) if words[-1].startswith("#") else 32
        return values.change(kind, values.get(words[-2], place), by, 0) if by < 32 else None
    return work


def _with(kind: int, turn: int) -> Make:
    def work(values: ThumbReader, words: list[str], place: int) -> Sum | None:
        if not words[-1].startswith("#"):
            return None
        return values.change(kind, values.get(words[-2], place), 0,
                              (int(words[-1][1:], 0) ^ turn) & MASK)
    return work


def _extend(kind: int, size: int) -> Make:
    def work(values: ThumbReader, words: list[str], place: int) -> Sum | None:
        if len(words) > 2 and _shifts(words[2]):
            return None
        return values.change(kind, values.get(words[-1], place), 32 - size, (1 << size) - 1)
    return work


def _field(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    low, width = (int(one[1:], 0) for one in words[2:])
    moved = values.change(SHIFT_RIGHT, values.get(words[1], place), low, 0)
    return values.change(AND, moved, 0, (1 << width) - 1)


def _product(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    first, second = (values.get(one, place) for one in (words[-2:] if len(words) < 4
                                                        else words[1:3]))
    if first is None or second is None:
        return None
    return values.make(MULTIPLY, values.plain(first), values.plain(second))


def _accumulate(sign: int) -> Make:
    def work(values: ThumbReader, words: list[str], place: int) -> Sum | None:
        return values.add(values.get(words[3], place), _product(values, words, place), 0, sign)
    return work


MAKERS: dict[str, Make] = {
    "add": _sum(1), "adds": _sum(1), "addw": _sum(1), "sub": _sum(-1), "subs": _sum(-1),
    "subw": _sum(-1), "rsb": _reverse, "rsbs": _reverse, "mov": _move, "movs": _move,
    "movw": _move, "movt": _move_top, "adr": _address, "lsl": _left, "lsls": _left,
    "lsr": _right(SHIFT_RIGHT), "lsrs": _right(SHIFT_RIGHT), "asr": _right(SHIFT_SIGNED),
    "asrs": _right(SHIFT_SIGNED), "and": _with(AND, 0), "ands": _with(AND, 0),
    "bic": _with(AND, MASK), "bics": _with(AND, MASK), "orr": _with(OR, 0), "orrs": _with(OR, 0),
    "uxtb": _extend(AND, 8), "uxth": _extend(AND, 16), "sxtb": _extend(SIGN, 8),
    "sxth": _extend(SIGN, 16), "ubfx": _field, "mul": _product, "muls": _product,
    "mla": _accumulate(1), "mls": _accumulate(-1)}
