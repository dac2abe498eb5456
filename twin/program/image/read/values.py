"""What a register may hold while nothing runs: a number, a line in loop indices, or what data give.

A value is an int (32 bits, signed), a pair (base, ((index, coefficient), ...)) of a number that
grows with the turns of loops around it, `DATA` where it depends on what the network computes, or
`STALE` where it was left over from a turn nobody looked at. A line is taken to stay within 32 bits:
it is an address, a counter or a coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Terms = tuple[tuple[int, int], ...]
Line = tuple[int, Terms]
DATA = None
STALE = "stale"
Value = int | Line | str | None

ENDLESS = 1 << 40
"""Turns of a loop nothing ends."""


def wrap(number: int) -> int:
    """Return a number as 32 bits hold it, signed."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def lost(*values: Value) -> Value:
    """Return what comes of values at least one of which is not known."""
    return STALE if STALE in values else DATA


def add(left: Value, right: Value) -> Value:
    """Sum."""
    if type(left) is int:
        if type(right) is int:
            return wrap(left + right)
        if type(right) is tuple:
            return wrap(left + right[0]), right[1]
    elif type(left) is tuple:
        if type(right) is int:
            return wrap(left[0] + right), left[1]
        if type(right) is tuple:
            terms = dict(left[1])
            for index, coefficient in right[1]:
                terms[index] = terms.get(index, 0) + coefficient
            return line(left[0] + right[0], terms)
    return lost(left, right)


def line(base: int, terms: dict[int, int]) -> Value:
    """Return a value from a base and coefficients by index; a plain number when none is left."""
    kept = tuple(sorted((index, c) for index, c in terms.items() if c))
    return (wrap(base), kept) if kept else wrap(base)


def times(value: Value, factor: int) -> Value:
    """Product with a number."""
    if type(value) is int:
        return wrap(value * factor)
    if type(value) is tuple:
        if not factor:
            return 0
        return wrap(value[0] * factor), tuple((i, c * factor) for i, c in value[1])
    return value


def subtract(left: Value, right: Value) -> Value:
    """Difference."""
    if type(left) is int and type(right) is int:
        return wrap(left - right)
    return add(left, times(right, -1))


def at(value: Value, index: int, turn: int) -> Value:
    """Return a value in one turn of a loop."""
    if type(value) is not tuple or all(i != index for i, _ in value[1]):
        return value
    base, terms = value[0], {}
    for i, coefficient in value[1]:
        if i == index:
            base += coefficient * turn
        else:
            terms[i] = coefficient
    return line(base, terms)


def are_known(*values: object) -> bool:
    """Whether values are numbers, or change by known steps with turns of loops."""
    return all(type(value) in (int, tuple) for value in values)


def base_of(value: Value) -> int:
    """Return a known value in the first turn of every loop."""
    assert are_known(value), value
    return value if type(value) is int else value[0]  # type: ignore[return-value,index]


@dataclass(slots=True)
class Frame:
    """Turns of a loop looked at all at once.

    `limit` is how many of them decide alike, `source` the address of the branch that ends that,
    `others` the limit by all other branches; `open` are conditions that outer loops share in.
    """

    limit: int = ENDLESS
    source: int = 0
    others: int = ENDLESS
    open: list[tuple[Line, int]] = field(default_factory=list)


class Scope:
    """The loops being looked at, and for which of their turns what was decided holds."""

    def __init__(self) -> None:
        self.frames: dict[int, Frame] = {}
        self.place = 0
        self._next = 0

    def enter(self) -> int:
        """Open a loop; return its index."""
        self._next += 1
        self.frames[self._next] = Frame()
        return self._next

    def leave(self, index: int, turns: int, ending: int | None = None) -> None:
        """Close a loop of that many turns: what it asked of outer loops is asked of them.

        The last turn is ended by the branch at `ending`, which in all others goes on.
        """
        frame = self.frames.pop(index)
        for (base, terms), place in frame.open:
            coefficient, last = terms[-1][1], turns - 1 - (place == ending)
            worst = base + (coefficient * last if coefficient < 0 else 0)
            self._require(worst, terms[:-1], place)

    def mark(self) -> list[tuple[int, int, int, int, int]]:
        """Return what `reset` goes back to."""
        return [(index, frame.limit, frame.source, frame.others, len(frame.open))
                for index, frame in self.frames.items()]

    def reset(self, marks: list[tuple[int, int, int, int, int]]) -> None:
        """Forget everything asked, and every loop opened, since a mark."""
        kept = {}
        for index, limit, source, others, length in marks:
            frame = self.frames[index]
            frame.limit, frame.source, frame.others = limit, source, others
            del frame.open[length:]
            kept[index] = frame
        self.frames = kept

    def require(self, value: Value) -> None:
        """Keep to the turns in which a value, not negative now, is not negative."""
        if type(value) is tuple:
            self._require(value[0], value[1], self.place)

    def _require(self, base: int, terms: Terms, place: int) -> None:
        if not terms:
            return
        index, coefficient = terms[-1]
        frame = self.frames[index]
        if coefficient < 0:
            turns = base // -coefficient + 1
            if turns < frame.limit:
                if place != frame.source:
                    frame.others = min(frame.others, frame.limit)
                frame.limit, frame.source = turns, place
            elif place != frame.source:
                frame.others = min(frame.others, turns)
        if len(terms) > 1:
            frame.open.append(((base, terms), place))

    def pin(self, value: Value) -> int:
        """Keep to the turns in which a known value stays what it is now."""
        base = base_of(value)
        if type(value) is tuple:
            self.require(subtract(value, base))
            self.require(subtract(base, value))
        return base

    # ---- comparing ----

    def is_less(self, left: Value, right: Value) -> bool | None:
        """Whether left < right, as signed numbers; None when data decide."""
        gap = subtract(right, left)
        if type(gap) is int:
            # Two numbers may be further apart than 31 bits.
            return left < right if type(left) is int else gap > 0  # type: ignore[operator]
        if type(gap) is not tuple:
            return None
        if gap[0] > 0:
            self.require(add(gap, -1))
            return True
        self.require(times(gap, -1))
        return False

    def is_equal(self, left: Value, right: Value) -> bool | None:
        """Whether two values are equal; None when data decide."""
        gap = subtract(left, right)
        if type(gap) is int:
            return gap == 0
        if type(gap) is not tuple:
            return None
        if gap[0]:
            self.require(add(gap if gap[0] > 0 else times(gap, -1), -1))
            return False
        self.pin(gap)
        return True

    def is_lower(self, left: Value, right: Value) -> bool | None:
        """Whether left < right, as unsigned numbers; None when data decide."""
        if not are_known(left, right):
            return None
        signs = [self._is_negative(value) for value in (left, right)]
        return self.is_less(left, right) if signs[0] == signs[1] else signs[1]

    def _is_negative(self, value: Value) -> bool:
        if base_of(value) < 0:
            self.require(subtract(-1, value))
            return True
        self.require(value)
        return False

    # ---- arithmetic that is no line ----

    def multiply(self, left: Value, right: Value) -> Value:
        """Product; of two lines, one is held still."""
        if type(left) is int:
            return times(right, left)
        if type(right) is int:
            return times(left, right)
        if type(left) is tuple and type(right) is tuple:
            return times(left, self.pin(right))
        return lost(left, right)

    def multiply_long(self, left: Value, right: Value, signed: bool) -> tuple[Value, Value]:
        """Low and high word of a product, as division by a constant takes it."""
        if type(left) is not int:
            left, right = right, left
        if type(left) is not int or not are_known(right):
            return lost(left, right), lost(left, right)
        if not signed:
            if self._is_negative(right):
                right = self.pin(right)
            left &= 0xFFFFFFFF
        base = base_of(right) if signed else base_of(right) & 0xFFFFFFFF
        high = left * base >> 32
        if type(right) is tuple:
            # A product beyond 32 bits is compared as what it is: no value wraps here.
            terms = tuple((i, c * left) for i, c in right[1] if c * left)
            self.require((left * base - (high << 32), terms) if terms else 0)
            self.require((((high + 1) << 32) - 1 - left * base,
                          tuple((i, -c) for i, c in terms)) if terms else 0)
            return DATA, wrap(high)
        return wrap(left * base), wrap(high)

    def halve(self, value: Value, bits: int) -> Value:
        """Arithmetic shift to the right."""
        if type(value) is int:
            return value >> bits
        if type(value) is not tuple:
            return value
        step = 1 << bits
        if all(c % step == 0 for _, c in value[1]):
            return value[0] >> bits, tuple((i, c >> bits) for i, c in value[1])
        quotient = value[0] >> bits
        self._hold_between(value, quotient * step, quotient * step + step - 1)
        return quotient

    def halve_unsigned(self, value: Value, bits: int) -> Value:
        """Logical shift to the right."""
        if type(value) is int:
            return wrap((value & 0xFFFFFFFF) >> bits)
        if type(value) is not tuple or not bits:
            return value
        if self._is_negative(value):
            return (self.pin(value) & 0xFFFFFFFF) >> bits
        return self.halve(value, bits)

    def divide(self, value: Value, divisor: Value) -> Value:
        """Signed quotient, rounded to zero; 0 for a divisor of 0, as the cores have it."""
        if not are_known(value, divisor):
            return lost(value, divisor)
        by = self.pin(divisor)
        if by == 0:
            return 0
        if by < 0:
            value, by = times(value, -1), -by
        base = base_of(value)
        if type(value) is tuple and base >= 0 and all(c % by == 0 for _, c in value[1]):
            self.require(value)
            return base // by, tuple((i, c // by) for i, c in value[1])
        quotient = base // by if base >= 0 else -(-base // by)
        low = quotient * by - (by - 1 if quotient < 0 or base < 0 else 0)
        high = quotient * by + (by - 1 if quotient > 0 or base >= 0 else 0)
        self._hold_between(value, low, high)
        return quotient

    def mask(self, value: Value, mask: Value) -> Value:
        """Bits of a value; of a line, the low ones or all but the low ones."""
        if type(value) is int and type(mask) is int:
            return wrap(value & mask)
        if type(value) is int:
            value, mask = mask, value
        if type(value) is not tuple or not are_known(mask):
            return 0 if 0 in (value, mask) else lost(value, mask)
        bits = self.pin(mask)
        if bits >= 0 and bits & (bits + 1) == 0:
            return self._low(value, bits.bit_length())
        if bits < 0 and ~bits & (~bits + 1) == 0:
            return subtract(value, self._low(value, (~bits).bit_length()))
        return wrap(self.pin(value) & bits)

    def _low(self, value: Value, bits: int) -> Value:
        return subtract(value, times(self.halve(value, bits), 1 << bits))

    def narrow(self, value: Value, bits: int) -> Value:
        """Return the low bits of a value, sign extended."""
        if not are_known(value):
            return value
        half = 1 << (bits - 1)
        if type(value) is tuple and -half <= value[0] < half:
            self._hold_between(value, -half, half - 1)
            return value
        return ((self.pin(value) + half) & (2 * half - 1)) - half

    def _hold_between(self, value: Value, low: int, high: int) -> None:
        self.require(subtract(value, low))
        self.require(subtract(high, value))
