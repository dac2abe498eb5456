"""What T32 loads and stores, and what it makes of registers meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from twin.program.addresses import MASK, READ, WRITE, DoneError, LostError, Reader, Sum

REGISTERS = {**{f"r{place}": place for place in range(13)}, "sb": 9, "sl": 10, "fp": 11, "ip": 12,
             "sp": 13, "lr": 14}
ALWAYS = 15
"""Condition of an instruction without one, as capstone numbers them."""
_MEMORY = re.compile(r"\[(\w+)(?:, (?:#(-?\w+)|(\w+)(?:, lsl #(\w+))?))?\](!?)(?:, #(-?\w+))?$")
_SINGLE = re.compile(r"^(?:ldr|str|ldaex|lda|stl|ldrex)s?([bh]?)t?$")
_LIST = re.compile(r"^(?:ldm|stm|vldm|vstm)(ia|db|)$")
_SIZES = {"b": 1, "h": 2, "": 4}


class ThumbReader(Reader):
    """Reads T32; parameters as of `Reader`."""

    registers, ahead, machine = REGISTERS, 4, "arm"
    letter, detailed = "R", True

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
            if name == "ldr" and words[1].startswith("[pc, #"):
                self.state[words[0]] = Sum(0, self.word_at(accesses[1].constant))
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
            return (READ, self.get(base, place), self.get(index, place), size - 1, [size], [], None)
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
        plain = _SINGLE.match(name)
        if name in ("ldrd", "strd", "vldr", "vstr"):
            pieces = [8 if data[0].startswith("d") else 4] * (2 if name[0] != "v" else 1)
        else:
            pieces = [_SIZES[plain[1]] if plain else {"b": 1, "h": 2}.get(name[-1], 4)]
        loaded = () if store else data
        if index is None:
            return (WRITE if store else READ, at, None, -1, pieces, loaded, after)
        return (WRITE if store else READ, held, self.get(index, place), int(shift or "0", 0),
                pieces, loaded, after)

    def _many(self, store: bool, base: str, back: bool, listed: str, down: bool, place: int) -> Any:
        """Return accesses of registers listed, upwards from the lowest address."""
        names = listed.strip("{}").split(", ")
        size = 8 if names[0].startswith("d") else 4
        held = self.get(base, place)
        below = self.add(held, Sum(0, -size * len(names) & MASK))
        above = self.add(held, Sum(0, size * len(names)))
        after = (base, below if down else above) if back and (store or base not in names) else None
        return (WRITE if store else READ, below if down else held, None, -1, [size] * len(names),
                () if store else names, after)

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
        first, *rest = words if len(words) == 2 or _shifts(words[2]) else words[1:]
        second, shift = values.operand(rest, place)
        held = values.get(first, place)
        if first == "pc" and len(words) == 3:
            held = Sum(0, place + 4 & ~3)
        return values.add(held, second, shift, sign)
    return work


def _shifts(word: str) -> bool:
    return word.startswith(("lsl ", "lsr ", "asr ", "ror ", "rrx"))


def _move(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    return values.operand(words[1:], place)[0] if len(words) == 2 else None


def _shift(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    if not words[-1].startswith("#"):
        return None
    return values.add(Sum(0), values.get(words[-2], place), int(words[-1][1:], 0))


def _move_top(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    held = values.get(words[0], place)
    if held is None or held.value:
        return None
    return Sum(0, held.constant & 0xFFFF | int(words[1][1:], 0) << 16)


def _address(values: ThumbReader, words: list[str], place: int) -> Sum | None:
    return Sum(0, (place + 4 & ~3) + int(words[1][1:], 0) & MASK)


MAKERS: dict[str, Make] = {
    **dict.fromkeys(("add", "adds", "addw"), _sum(1)),
    **dict.fromkeys(("sub", "subs", "subw"), _sum(-1)),
    **dict.fromkeys(("mov", "movs", "movw"), _move), **dict.fromkeys(("lsl", "lsls"), _shift),
    "movt": _move_top, "adr": _address}
"""What leaves a register and a constant; a register written by anything else is not known."""
