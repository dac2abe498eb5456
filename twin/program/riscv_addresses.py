"""What RV32IMC loads and stores, and what it makes of registers meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hwmodels.isa.operands import RISCV_NAMES
from twin.program.addresses import MASK, READ, WRITE, Reader, Sum

_SIZES = {"b": 1, "h": 2, "w": 4}
_ACCESS = re.compile(r"^(?:(l)([bhw])(u?)|(s)([bhw]))(?:sp)?$")
_PLACE = re.compile(r"^(-?\w+)?\((\w+)\)$")


class RiscvReader(Reader):
    """Reads RV32IMC; parameters as of `Reader`."""

    registers, machine = {name: place for place, name in enumerate(RISCV_NAMES) if place}, "riscv"
    letter = "X"

    def read(self, one: Any) -> None:
        """Take one instruction; none of them runs under a condition."""
        name = one.mnemonic.removeprefix("c.")
        words = one.op_str.split(", ")
        access = _ACCESS.match(name)
        place = _PLACE.match(words[-1])
        if access and place:
            self._take(access, place, words[0], one.address)
        elif place and not name.startswith(("j", "b")):
            self.odd.append(name)
            self.state[words[0]] = None
        elif name in _MAKERS:
            self.state[words[0]] = _MAKERS[name](self, words, one.address)
        elif not name.startswith("b"):
            self.state[words[0]] = None

    def _take(self, access: re.Match[str], place: re.Match[str], data: str, at: int) -> None:
        held = self.add(self.value(place[2], at), Sum(0, int(place[1] or "0", 0) & MASK))
        size = _SIZES[access[2] or access[5]]
        self.access(WRITE if access[4] else READ, held, None, -1, [size],
                    () if access[4] else (data,), None)

    def value(self, word: str, place: int) -> Sum | None:
        """Return what a register holds, or a number says."""
        if word == "zero":
            return Sum(0)
        if word in self.registers:
            return self.get(word, place)
        return Sum(0, int(word, 0) & MASK)


Make = Callable[[RiscvReader, list[str], int], Sum | None]


def _sum(sign: int) -> Make:
    return lambda reader, words, place: reader.add(
        reader.value(words[-2], place), reader.value(words[-1], place), 0, sign)


def _move(reader: RiscvReader, words: list[str], place: int) -> Sum | None:
    return reader.value(words[1], place)


def _shift(reader: RiscvReader, words: list[str], place: int) -> Sum | None:
    return reader.add(Sum(0), reader.value(words[-2], place), int(words[-1], 0))


def _upper(reader: RiscvReader, words: list[str], place: int) -> Sum | None:
    return Sum(0, int(words[1], 0) << 12 & MASK)


def _upper_here(reader: RiscvReader, words: list[str], place: int) -> Sum | None:
    return Sum(0, place + (int(words[1], 0) << 12) & MASK)


_MAKERS: dict[str, Make] = {
    **dict.fromkeys(("add", "addi", "addi16sp", "addi4spn"), _sum(1)), "sub": _sum(-1),
    **dict.fromkeys(("mv", "li"), _move), "lui": _upper, "auipc": _upper_here, "slli": _shift}
