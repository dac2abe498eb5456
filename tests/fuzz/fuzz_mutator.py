"""Damage: bytes flipped, cut, doubled, joined with others, and words readers stumble over."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

Change = Callable[[random.Random, bytearray, Sequence[bytes], Sequence[bytes]], None]
EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
MOST_CHANGES = 5


def mutate(dice: random.Random, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return one of the seeds with one to five changes.

    Parameters
    ----------
    dice : random.Random
        Seeded: the same number gives the same bytes.
    seeds, words : sequence of bytes
        Whole inputs, and what to put into them.
    """
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.randint(1, MOST_CHANGES)):
        dice.choice(CHANGES)(dice, data, seeds, words)
    return bytes(data)


def _span(dice: random.Random, data: bytearray) -> slice:
    begin = dice.randrange(len(data) + 1)
    return slice(begin, min(len(data), begin + dice.choice((1, 1, 2, 4, 16, 64, 1024))))


def _flip(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _set(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    if data:
        data[dice.randrange(len(data))] = dice.choice((0, 0x20, 0x2D, 0x30, 0x39, 0x7F, 0x80, 0xFF))


def _edge(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    if len(data) >= 4:
        place = dice.randrange(len(data) - 3) & (~3 if dice.random() < 0.7 else ~0)
        data[place:place + 4] = struct.pack("<I", dice.choice(EDGES))


def _drop(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    del data[_span(dice, data)]


def _double(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    span = _span(dice, data)
    data[span.start:span.start] = data[span] * dice.choice((1, 1, 2, 50))


def _cut(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    del data[dice.randrange(len(data) + 1):]


def _join(dice: random.Random, data: bytearray, seeds: Sequence[bytes],
          _words: Sequence[bytes]) -> None:
    other = dice.choice(seeds)
    data[dice.randrange(len(data) + 1):] = other[dice.randrange(len(other) + 1):]


def _word(dice: random.Random, data: bytearray, _seeds: Sequence[bytes],
          words: Sequence[bytes]) -> None:
    span = _span(dice, data)
    data[span if dice.random() < 0.5 else slice(span.start, span.start)] = dice.choice(words)


def _value(dice: random.Random, data: bytearray, _seeds: Sequence[bytes],
           words: Sequence[bytes]) -> None:
    """Put a word in place of what stands between a separator and the end of its line."""
    marks = [place for place, byte in enumerate(data) if byte in b":=,;"]
    if marks:
        begin = dice.choice(marks) + 1
        end = next((place for place in range(begin, len(data)) if data[place] in b",;\n]}"),
                   len(data))
        data[begin:end] = b" " + dice.choice(words)


def _line(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    """Move a line elsewhere."""
    lines = bytes(data).splitlines(keepends=True)
    if len(lines) > 1:
        one = lines.pop(dice.randrange(len(lines)))
        lines.insert(dice.randrange(len(lines) + 1), one)
        data[:] = b"".join(lines)


def pad(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    """Put a long run of one character beside a separator, or anywhere."""
    places = [place for place, byte in enumerate(data) if byte in PADDED]
    place = dice.choice(places) + dice.randrange(2) if places and dice.random() < 0.8 else \
        dice.randrange(len(data) + 1)
    one = data[place:place + 1] if dice.random() < 0.2 else dice.choice((b" ", b"\t", b" ", b"0",
                                                                        b'"', b",", b"x", b"("))
    data[place:place] = bytes(one) * dice.choice((40, 600, 6000, 30_000))


def cut_behind_line(dice: random.Random, data: bytearray, *_: Sequence[bytes]) -> None:
    """End behind a line, as a capture does that is stopped; it may have been a table's head."""
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    if ends:
        del data[dice.choice(ends):]


PADDED = b" \t\n:=,;()[]{}<>\"'#*/"
CHANGES: tuple[Change, ...] = (_flip, _set, _edge, _drop, _double, _cut, _join, _word, _value,
                               _value, _line, pad, cut_behind_line)
