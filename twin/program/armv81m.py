"""Scalar instructions of Armv8.1-M, which Unicorn runs wrongly or not at all: loops, selections.

They are found in the program's listing, and answered one by one as the core comes to them: enough
for start-up, which is not billed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from hwmodels.program.emulator import HOOK_CODE, Emulator
from hwmodels.program.listing import Listed

_LOOPS = re.compile(r"^(dls|wls|le)$")
_PICKS = re.compile(r"^(csel|csinc|csinv|csneg|cset|csetm|cinc|cinv|cneg)$")
_SHIFTS = re.compile(r"^(lsll|lsrl|asrl)$")
_N, _Z, _C, _V = 31, 30, 29, 28
_MASK = 0xFFFFFFFF


class Newer:
    """Answers for instructions newer than the emulator.

    Parameters
    ----------
    emulator
        The emulated core.
    listing
        The program's instructions.
    """

    def __init__(self, emulator: Emulator, listing: Mapping[int, Listed]) -> None:
        self.emulator, self.listing = emulator, listing
        for address, one in listing.items():
            if any(kind.match(one.mnemonic) for kind in (_LOOPS, _PICKS, _SHIFTS)):
                emulator.core.hook_add(HOOK_CODE, self._answer, begin=address, end=address)

    def _get(self, name: str) -> int:
        if name == "zr":
            return 0
        return int(name[1:], 0) if name[0] == "#" else self.emulator.get(name.upper())

    def _set(self, name: str, value: int) -> None:
        self.emulator.set(name.upper(), value)

    def _answer(self, _: Any, address: int, size: int, data: Any) -> None:
        one = self.listing[address]
        words = [word.strip() for word in one.operands.split(",")]
        following = address + one.size_bytes
        if _LOOPS.match(one.mnemonic):
            following = self._loop(one.mnemonic, words, following)
        elif _PICKS.match(one.mnemonic):
            self._set(words[0], self._pick(one.mnemonic, words))
        else:
            self._shift(one.mnemonic, words)
        self._set("pc", following | 1)

    def _loop(self, name: str, words: list[str], following: int) -> int:
        """Return where the core goes on."""
        if name == "le":
            target = int(words[-1], 16)
            if len(words) == 1:
                return target
            count = self._get("lr")
            if count <= 1:
                return following
            self._set("lr", count - 1)
            return target
        count = self._get(words[1])
        if name == "wls" and not count:
            return int(words[2], 16)
        self._set("lr", count)
        return following

    def _pick(self, name: str, words: list[str]) -> int:
        """Return what a conditional selection gives (DDI 0553, C2.4: CSEL and similar)."""
        held = self._holds(words[-1])
        if name in ("cset", "csetm"):
            return (1 if name == "cset" else _MASK) * held
        changes: dict[str, Callable[[int], int]] = {
            "inc": lambda value: value + 1, "inv": lambda value: ~value,
            "neg": lambda value: -value, "el": lambda value: value}
        change = changes[name.removeprefix("c").removeprefix("s")]
        if len(words) == 3:  # CINC Rd, Rn: changed where the condition holds
            value = self._get(words[1])
            return change(value) if held else value
        return self._get(words[1]) if held else change(self._get(words[2]))

    def _holds(self, condition: str) -> bool:
        status = self._get("xpsr")
        n, z, c, v = (bool(status >> bit & 1) for bit in (_N, _Z, _C, _V))
        return {"eq": z, "ne": not z, "cs": c, "cc": not c, "mi": n, "pl": not n, "vs": v,
                "vc": not v, "hi": c and not z, "ls": not c or z, "ge": n == v, "lt": n != v,
                "gt": not z and n == v, "le": z or n != v}.get(condition, True)

    def _shift(self, name: str, words: list[str]) -> None:
        """Shift a pair of registers; by a register, negative amounts go the other way."""
        low, high, by = words
        amount = self._get(by)
        if by[0] != "#":
            amount = (amount & 0xFF) - (amount & 0x80) * 2
        value = self._get(high) << 32 | self._get(low)
        if name == "asrl" and value >> 63:
            value -= 1 << 64
        if name != "lsll":
            amount = -amount
        amount = max(-64, min(64, amount))
        value = value << amount if amount >= 0 else value >> -amount
        self._set(low, value)
        self._set(high, value >> 32)
