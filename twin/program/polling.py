"""Loops that wait for a register: found by their reads, ended by the value their code tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hwmodels.frozen import frozen

PATIENCE = 32
"""Reads of a register at one place, nothing written meanwhile, before its loop is taken to wait."""
TRIES = 16
"""Reads a value is given to end the loop."""

_MASKS = re.compile(r"^(?:(?:tst|ands?)(?:\.w)?\s.*#|(?:c\.)?andi\s.*, )(0x[0-9a-f]+|\d+)$", re.M)
_SHIFTS = re.compile(r"^(?:lsls?(?:\.w)?\s.*#|(?:c\.)?slli\s.*, )(0x[0-9a-f]+|\d+)$", re.M)


@frozen
class Poll:
    """A loop that waited for a register.

    Parameters
    ----------
    block
        Of the code that reads it.
    billed
        Whether that was in the billed part: how long it waits is in no figure then.
    """

    register: int
    block: int
    value: int
    billed: bool


@dataclass(slots=True)
class _Wait:
    """Reads of one register at one place of the program since anything was last written.

    `since` is how much had been written when they began.
    """

    reads: int = 0
    since: int = 0
    tried: int = 0
    values: list[int] = field(default_factory=list)
    answer: int | None = None
    billed: bool = False


class Polling:
    """What loops that read a register again and again are answered.

    Parameters
    ----------
    text_of
        Address of a block -> its assembly text.
    """

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self.text_of = text_of
        self.waits: dict[tuple[int, int], _Wait] = {}
        self.stuck: tuple[int, int] | None = None
        self.writes = 0
        self.billed = False
        self.last: tuple[_Wait, int, int] | None = None

    def answer(self, word: int, block: int, held: int) -> int:
        """Return what a register answers that holds a value; another where a loop waits for it."""
        wait = self.waits.setdefault((block, word), _Wait())
        if wait.since != self.writes:
            wait.reads, wait.since = 0, self.writes
        wait.reads += 1
        self.last = wait, word, block
        if wait.reads >= PATIENCE and wait.reads % TRIES == 0:
            if not wait.values or wait.tried >= len(wait.values):
                if wait.values:
                    self.stuck = word, block
                wait.values, wait.tried = list(self._guesses(held, block)), 0
            wait.answer, wait.billed = wait.values[wait.tried], wait.billed or self.billed
            wait.tried += 1
        return held if wait.answer is None else wait.answer

    def _guesses(self, held: int, block: int) -> Iterator[int]:
        """Values that may end a loop: what its code tests, each bit, fields echoed, all, none."""
        text = self.text_of(block)
        masks = [int(one, 0) for one in _MASKS.findall(text)]
        masks += [1 << 31 - int(one, 0) for one in _SHIFTS.findall(text) if int(one, 0) < 32]
        for mask in masks:
            yield held | mask & 0xFFFFFFFF
            yield held & ~mask
        yield from (held ^ 1 << bit for bit in range(32))
        yield from ((held | held << by) & 0xFFFFFFFF for by in (2, 1, 3, 4, 8, 16))
        yield from (0xFFFFFFFF, 0)

    def waiting(self, here: int) -> int | None:
        """Register the block at an address reads again and again; None where it does not."""
        if self.last is None:
            return None
        wait, word, block = self.last
        waits = block == here and wait.reads >= PATIENCE and wait.since == self.writes
        return word if waits else None

    def polls(self) -> tuple[Poll, ...]:
        """Loops that waited, and what ended them."""
        return tuple(Poll(register=word, block=block, value=wait.answer, billed=wait.billed)
                     for (block, word), wait in self.waits.items() if wait.answer is not None)
