"""Flatbuffers read without generated code: tables by field number, each offset within bounds.

References
----------
flatbuffers.dev, "FlatBuffer Internals": a table begins with the distance to its vtable, which
holds, from its fifth byte on, where each field lies in the table, 0 where it is absent.
"""

from __future__ import annotations

import struct

import numpy as np

from hwmodels.frozen import record

_TIMES_FILE = 8
"""How many elements vectors may hand out, as a multiple of the file's bytes: vectors may share
bytes, so a small damaged file could ask for unbounded work."""


class FlatbufferError(ValueError):
    """An offset that leads out of the file, or vectors that share too many bytes."""


class Flatbuffer:
    """The bytes of a file.

    Parameters
    ----------
    start
        Where the flatbuffer begins: 4 behind a size.
    """

    def __init__(self, content: bytes, start: int = 0) -> None:
        self.content = content
        self._left = _TIMES_FILE * len(content)
        self.root = Table(self, start + self.number("I", start))

    def number(self, form: str, place: int) -> int:
        """Return the number of a form of `struct` at a place."""
        if not 0 <= place <= len(self.content) - struct.calcsize(form):
            raise FlatbufferError(f"an offset leads to byte {place:,} of {len(self.content):,}")
        value: int = struct.unpack_from(f"<{form}", self.content, place)[0]
        return value

    def elements(self, form: str, place: int) -> np.ndarray:
        """Return the vector that begins with its length at a place."""
        count = self.number("I", place)
        if count * struct.calcsize(form) > len(self.content) - place - 4:
            raise FlatbufferError(f"{count:,} elements from byte {place:,} on of "
                                  f"{len(self.content):,}; is it cut short?")
        self._left -= count + 1
        if self._left < 0:
            raise FlatbufferError("its vectors share their bytes too often")
        return np.frombuffer(self.content, np.dtype(f"<{form}"), count, place + 4)


@record
class Table:
    """A table; fields by number, a union being its type and, one further, its value."""

    buffer: Flatbuffer
    place: int

    def number(self, field: int, form: str, default: int = 0) -> int:
        """Return a scalar field."""
        place = self._find(field)
        return self.buffer.number(form, place) if place else default

    def table(self, field: int) -> Table | None:
        """Return the table a field leads to, None where it is absent."""
        place = self._follow(field)
        return Table(self.buffer, place) if place else None

    def vector(self, field: int, form: str) -> np.ndarray:
        """Return the elements of a vector of scalars, none where it is absent."""
        place = self._follow(field)
        return self.buffer.elements(form, place) if place else np.zeros(0, form)

    def span(self, field: int) -> tuple[int, int]:
        """Return between which bytes of the file those of a vector lie; none where it is absent."""
        first = self._follow(field) + 4
        return first, first + len(self.vector(field, "B"))

    def tables(self, field: int) -> list[Table]:
        """Return the tables of a vector."""
        first = self._follow(field) + 4
        return [Table(self.buffer, first + 4 * number + int(offset))
                for number, offset in enumerate(self.vector(field, "I"))]

    def texts(self, field: int) -> list[str]:
        """Return the strings of a vector."""
        first = self._follow(field) + 4
        return [self.buffer.elements("B", first + 4 * number + int(offset)).tobytes().decode(
            errors="replace") for number, offset in enumerate(self.vector(field, "I"))]

    def text(self, field: int) -> str:
        """Return a string, empty where it is absent."""
        return self.vector(field, "B").tobytes().decode(errors="replace")

    def _follow(self, field: int) -> int:
        """Return where what a field leads to begins, 0 where it is absent."""
        place = self._find(field)
        return place + self.buffer.number("I", place) if place else 0

    def _find(self, field: int) -> int:
        vtable = self.place - self.buffer.number("i", self.place)
        slot = 4 + 2 * field
        if slot + 2 > self.buffer.number("H", vtable):
            return 0
        offset = self.buffer.number("H", vtable + slot)
        return self.place + offset if offset else 0
