"""Slow, obvious specification of the cache model: dictionaries and time stamps, one access a time.

Shares nothing with the production code but the nouns; tests demand equal counts and contents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hwmodels.board.facts import Cache
from hwmodels.kernel import Access, Nest, Operand


@dataclass(slots=True, kw_only=True)
class Line:
    """A line in the cache."""

    number: int
    way: int
    filled: int
    touched: int
    dirty: bool
    owner: tuple[str, str]


@dataclass(slots=True, kw_only=True)
class ReferenceCache:
    """A cache that remembers when each line was filled and touched.

    Parameters
    ----------
    cache : Cache
        Geometry and policies.
    seed : int
        Start of the LFSR.
    """

    cache: Cache
    seed: int
    time: int = 0
    lines: dict[int, Line] = field(default_factory=dict)
    points_right: dict[tuple[int, int, int], bool] = field(default_factory=dict)
    next_victim: Counter = field(default_factory=Counter)
    counts: Counter = field(default_factory=Counter)

    def run(self, nests: Sequence[Nest], operands: Sequence[Operand]) -> None:
        """Make every access of the nests; `counts` grows by (operand or owner, event)."""
        by_name = {operand.name: operand for operand in operands}
        for access, address in walk_addresses(nests, by_name):
            self.access(by_name[access.operand], address, access.width_bytes, access.write)

    def access(self, operand: Operand, address: int, width_bytes: int, write: bool) -> None:
        """Touch each line an access overlaps."""
        size = self.cache.line_bytes
        self.counts[operand.name, "writes" if write else "reads"] += 1
        for number in range(address // size, (address + width_bytes - 1) // size + 1):
            self.counts[operand.name, "write_touches" if write else "read_touches"] += 1
            self.touch(operand, number, write)

    def touch(self, operand: Operand, number: int, write: bool) -> None:
        """Look one line up and update the cache."""
        self.time += 1
        owner = (operand.memory, operand.role)
        dirty = write and self.cache.write == "back"
        line = self.lines.get(number)
        if line is None:
            if write and self.cache.allocate == "read":
                self.counts[operand.name, "write_bypasses"] += 1
                return
            self.counts[operand.name, "write_misses" if write else "read_misses"] += 1
            line = Line(number=number, way=self.make_room(number), filled=self.time,
                        touched=self.time, dirty=dirty, owner=owner)
            self.lines[number] = line
        elif write:
            line.dirty, line.owner = dirty, owner
        line.touched = self.time
        self.point_away(number % self.cache.sets, line.way)

    def make_room(self, number: int) -> int:
        """Way a new line goes to; evicts when the set is full."""
        mates = {line.way: line for line in self.lines.values()
                 if line.number % self.cache.sets == number % self.cache.sets}
        for way in range(self.cache.ways):
            if way not in mates:
                return way
        victim = self.choose(number % self.cache.sets, mates)
        self.counts[victim.owner, "evictions"] += 1
        self.counts[victim.owner, "write_backs"] += victim.dirty
        del self.lines[victim.number]
        return victim.way

    def choose(self, index: int, mates: dict[int, Line]) -> Line:
        """Line a full set gives up."""
        return CHOICES[self.cache.replacement](self, index, mates)

    def step(self, counter: int | str, mates: dict[int, Line]) -> Line:
        """Line at the way a counter is at, which goes on by one."""
        self.next_victim[counter] += 1
        return mates[(self.next_victim[counter] - 1) % self.cache.ways]

    def draw(self, mates: dict[int, Line]) -> Line:
        """Line at the way the shift register draws."""
        odd = self.seed % 2
        self.seed = self.seed // 2 ^ (0xB400 if odd else 0)
        return mates[self.seed % self.cache.ways]

    def descend(self, index: int, mates: dict[int, Line]) -> Line:
        """Line the tree points to."""
        low, high = 0, self.cache.ways
        while high - low > 1:
            middle = (low + high) // 2
            low, high = ((middle, high) if self.points_right.get((index, low, high))
                         else (low, middle))
        return mates[low]

    def point_away(self, index: int, way: int) -> None:
        """Make every node of the tree above a way point to its other half."""
        low, high = 0, self.cache.ways
        while high - low > 1:
            middle = (low + high) // 2
            self.points_right[index, low, high] = way < middle
            low, high = (low, middle) if way < middle else (middle, high)

    def contents(self) -> tuple[tuple[tuple[int, bool, tuple[str, str]], ...], ...]:
        """Per set (line, dirty, owner): by recency under LRU, by way otherwise."""
        def rank(line: Line) -> int:
            return -line.touched if self.cache.replacement == "lru" else line.way
        return tuple(
            tuple((line.number, line.dirty, line.owner)
                  for line in sorted(self.lines.values(), key=rank)
                  if line.number % self.cache.sets == index)
            for index in range(self.cache.sets))


CHOICES: dict[str, Callable[[ReferenceCache, int, dict[int, Line]], Line]] = {
    "lru": lambda cache, index, mates: min(mates.values(), key=lambda line: line.touched),
    "fifo": lambda cache, index, mates: min(mates.values(), key=lambda line: line.filled),
    "plru": ReferenceCache.descend,
    "round_robin": lambda cache, index, mates: cache.step(index, mates),
    "global_round_robin": lambda cache, index, mates: cache.step("all", mates),
    "lfsr": lambda cache, index, mates: cache.draw(mates),
}
"""What each replacement policy gives up of a full set."""


def walk_addresses(nests: Sequence[Nest],
                   operands: dict[str, Operand]) -> Iterator[tuple[Access, int]]:
    """Yield every access that its guards let happen, with its address, in program order."""
    for nest in nests:
        yield from _walk(nest, operands, ())


def _walk(nest: Nest, operands: dict[str, Operand],
          index: tuple[int, ...]) -> Iterator[tuple[Access, int]]:
    if isinstance(nest, Access):
        made = all(0 <= guard.offset + _dot(guard.steps, index) < guard.limit
                   for guard in nest.guards)
        if made:
            yield nest, (operands[nest.operand].address + nest.offset_bytes
                         + _dot(nest.steps_bytes, index))
        return
    for turn in range(nest.extent):
        for inner in nest.body:
            yield from _walk(inner, operands, (*index, turn))


def _dot(steps: tuple[int, ...], index: tuple[int, ...]) -> int:
    return sum(step * turn for step, turn in zip(steps, index, strict=True))
