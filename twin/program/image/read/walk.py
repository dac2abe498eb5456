"""A function's control flow followed without its data: blocks, loops and accesses as a tree.

Registers hold numbers, lines in loop indices, or nothing known (`values`). A loop
is followed through one turn that stands for many: what its registers gain in a turn is guessed, the
turn is followed with registers as lines in the turn's index, and each decision on the way says up
to which turn it holds. When the turn ends with what was guessed, it is those turns, exactly; then
the next turn, which decides otherwise, is looked at in the same way. No count of a run is used.
"""

from __future__ import annotations

from hwmodels.frozen import record
from twin.errors import FirmwareError
from twin.program.elf import Elf
from twin.program.image.read.accesses import Near
from twin.program.image.read.flow import Code, CodeBlock, Region
from twin.program.image.read.sources import LR, PC, SP, STEP
from twin.program.image.read.values import (
    DATA,
    ENDLESS,
    STALE,
    Line,
    Scope,
    Value,
    add,
    are_known,
    at,
    base_of,
    subtract,
)

DONE = -1
"""Where a function goes that returns."""

WORDS = 64
"""From here on places of the state are addresses of words on the stack."""

ARRAY_BYTES = 64
"""A local array that a loop stores to has at most so many: what was known there is known no more.
Those of our kernels are vectors of 16."""

_OPAQUE = ".model_weights"
"""Constants that are data of the network: no branch may depend on them."""

_TRIES = 5
_LONGEST_WAIT = 64


class StaleError(Exception):
    """A turn needs what a register held before it: it does not stand for many."""


@record
class Step:
    """A block that ran; `taken`: its closing conditional branch was."""

    block: CodeBlock
    taken: bool


@record
class Touch:
    """An access; `address` None: nobody knows where; `scattered`: data decide how far behind."""

    write: bool
    size_bytes: int
    address: Value
    scattered: bool = False


@record
class Turns:
    """Turns of a loop that do the same; `last`: the step that goes the other way in the last."""

    index: int
    count: int
    body: tuple[Step | Touch | Turns, ...]
    last: Step | None = None


Event = Step | Touch | Turns
Flags = tuple[Value, Value, bool]
"""Two values compared; whether carry depends on them, too."""


class Walker:
    """Follows functions of an image.

    Parameters
    ----------
    image
        The file.
    """

    def __init__(self, image: Elf, stack_pointer: int) -> None:
        self.image, self.code = image, Code(image)
        self.scope = Scope()
        self.state: dict[int, Value] = {}
        self.flags: Flags = (DATA, DATA, False)
        self.log: list[Event] = []
        self._stack = stack_pointer
        self._floor = image.sections[".stack"][0]
        self._fixed = [span for span in image.constants if span != image.sections.get(_OPAQUE)]
        self._test: tuple[str, Flags] = ("", self.flags)
        self._gains: dict[Region, dict[int, Value]] = {}

    def follow(self, name: str, arguments: tuple[int, ...] = ()) -> tuple[Event, ...]:
        """Follow a call of a function.

        Parameters
        ----------
        name
            The function's.
        arguments
            In r0 to r3.

        Raises
        ------
        FirmwareError
            When data decide where it goes, or an instruction is not understood.
        """
        if name not in self.image.symbols:
            raise FirmwareError(f"{self.image.path}: no function {name!r} in the image; was it "
                                "stripped?")
        self.state = dict.fromkeys(range(PC), DATA)
        self.state.update(enumerate(arguments))
        self.state[SP], self.state[LR] = self._stack, DONE
        self.log = []
        try:
            self._call(self.image.symbols[name])
        except StaleError as error:
            raise FirmwareError(f"{self.image.path}: {name}: {error}") from error
        return tuple(self.log)

    # ---- what operations ask for ----

    def load(self, address: Value | Near, size_bytes: int, signed: bool) -> Value:
        """Load: what is known of it."""
        self._touch(False, size_bytes, address)
        if type(address) is not int:
            return DATA
        if self._floor <= address < self._stack:
            return self.state.get(address, DATA) if size_bytes == 4 else DATA
        return self._constant(address, size_bytes, signed) if size_bytes <= 4 else DATA

    def _constant(self, address: int, size_bytes: int, signed: bool) -> int | None:
        """Return a constant, or None where memory is written or holds the network's data."""
        end = address + size_bytes
        if any(low <= address and end <= high for low, high in self._fixed):
            for _, start, content in self.image.pieces:
                if start <= address and end <= start + len(content):
                    raw = content[address - start:end - start]
                    return int.from_bytes(raw, "little", signed=signed)
        return None

    def store(self, address: Value | Near, size_bytes: int, value: Value) -> None:
        """Store; on the stack what is stored is kept."""
        self._touch(True, size_bytes, address)
        if not are_known(address):
            return
        base = base_of(address)  # type: ignore[arg-type]
        if not self._floor <= base < self._stack:
            return
        if type(address) is int and size_bytes == 4:
            self.state[address] = value
            return
        span = size_bytes if type(address) is int else ARRAY_BYTES
        for place in range(base & ~3, base + span, 4):
            self.state[place] = DATA

    def _touch(self, write: bool, size_bytes: int, address: Value | Near) -> None:
        scattered = isinstance(address, Near)
        value = address.base if isinstance(address, Near) else address
        if value == STALE:
            raise StaleError("an address is not known")
        self.log.append(Touch(write, size_bytes, value, scattered))

    def decide(self, condition: str, flags: Flags) -> bool | None:
        """Whether a condition holds; None when data decide."""
        left, right, carries = flags
        if left == STALE or right == STALE:
            raise StaleError("a decision depends on a value that is not known")
        scope = self.scope
        if condition in ("eq", "ne"):
            result = scope.is_equal(left, right)
            return result if condition == "eq" or result is None else not result
        if condition in ("mi", "pl"):
            left, right = subtract(left, right), 0
        lower = condition in ("cc", "lo", "cs", "hs", "hi", "ls")
        if lower and not carries:
            return None
        less = scope.is_lower if lower else scope.is_less
        if condition in ("gt", "le", "hi", "ls"):
            left, right = right, left
        if condition in ("vs", "vc"):
            return None
        result = less(left, right)
        if result is None:
            return None
        return result if condition in ("lt", "gt", "mi", "cc", "lo", "hi") else not result

    # ---- blocks ----

    def _call(self, address: int) -> None:
        if self._walk(address, self.code.enter(address)) != DONE:
            raise FirmwareError(f"0x{address:08x}: the function does not return")
        stack = base_of(self.state[SP])
        for place in [place for place in self.state if WORDS <= place < stack]:
            del self.state[place]

    def _walk(self, start: int, region: Region) -> int:
        """Follow blocks; return where control leaves a function or a turn of a loop, or DONE."""
        fresh = True
        while fresh or (start in region.starts and start != region.header):
            inner = None if start == region.header else region.loop_at(start)
            start = self._step(region.blocks[start]) if inner is None else self._run_loop(inner)
            fresh = False
        return start

    def _step(self, block: CodeBlock) -> int:
        self.scope.place = block.start
        for operation in block.operations:
            operation(self)
        ending = block.ending
        if ending.kind in ("branch", "loop_end", "loop_start") or ending.condition:
            return self._branch(block)
        self.log.append(Step(block, False))
        if ending.kind == "call":
            self.state[LR] = block.end
            self._call(ending.target)
        elif ending.kind == "far_jump":
            self._call(ending.target)
            return DONE
        elif ending.kind == "return":
            return DONE
        return ending.target if ending.kind == "jump" else block.end

    def _branch(self, block: CodeBlock) -> int:
        ending = block.ending
        flags = self.flags
        step = self.state[STEP] if ending.by_vectors else int(ending.kind == "loop_end")
        if ending.register >= 0:
            flags = (self.state[ending.register], step, True)
        self._test = ending.condition, flags
        self.scope.place = -block.start  # what the branch asks, apart from what the block does
        taken = self.decide(ending.condition, flags)
        if taken is None:
            raise FirmwareError(f"{self.image.path}: at 0x{block.listing[-1].address:08x} data "
                                f"decide where {block.function.name} goes")
        if ending.kind == "loop_end" and taken:
            self.state[LR] = subtract(self.state[LR], step)
        elif ending.kind == "loop_start" and not taken:
            self.state[LR] = self.state[ending.register]
        self.log.append(Step(block, taken))
        if not taken:
            return block.end
        return DONE if ending.kind == "return" else ending.target

    # ---- loops ----

    def _run_loop(self, loop: Region) -> int:
        """Follow a loop to its end; return where control goes."""
        wait, longer = 0, 1
        while True:
            if wait:
                wait -= 1
            else:
                found = self._leap(loop)
                if found is not None:
                    start, turns = found
                    if start != loop.header:
                        return start
                    longer = 1 if turns > 1 else longer
                    continue
                wait = longer
                longer = min(2 * longer, _LONGEST_WAIT)
            start = self._walk(loop.header, loop)
            if start != loop.header:
                return start

    def _leap(self, loop: Region) -> tuple[int, int] | None:
        """Follow one turn for as many as it stands for; None where it stands for none."""
        gains = self._gains.setdefault(loop, {})
        before, log, flags = self.state, self.log, self.flags
        marks = self.scope.mark()
        for _ in range(_TRIES):
            index = self.scope.enter()
            entry = before | {place: self._guess(before[place], gain, index)
                              for place, gain in gains.items() if gain and place in before}
            self.state, self.log, self.flags = entry.copy(), [], (STALE, STALE, False)
            try:
                start = self._walk(loop.header, loop)
            except StaleError:
                gains.clear()
                break
            if start != loop.header:
                if any(self.state[place] == STALE for place in before if place in self.state):
                    break
                return self._leave_at_once(index, log, start)
            if self._confirm(entry, gains):
                return self._settle(loop, index, log)
            self.scope.reset(marks)
        self.scope.reset(marks)
        self.state, self.log, self.flags = before, log, flags
        return None

    @staticmethod
    def _guess(value: Value, gain: Value, index: int) -> Value:
        if gain == STALE:
            return STALE
        if not gain or not are_known(value):
            return value
        moving: Line = (0, ((index, gain),))  # type: ignore[assignment]
        return add(value, moving)

    def _confirm(self, entry: dict[int, Value], gains: dict[int, Value]) -> bool:
        """Whether a turn gained what was guessed; else guess again."""
        right, state = True, self.state
        for place, old in entry.items():
            new, gain = state.get(place, DATA), gains.get(place, 0)
            if new is old and gain == 0:
                continue
            if gain == STALE:
                if new == STALE:
                    del gains[place]
                    right = False
                continue
            gap = subtract(new, old) if are_known(new, old) else 0 if new is old else DATA
            if gap == gain or (new is DATA and old is DATA):
                continue
            right = False
            gains[place] = gap if type(gap) is int and gain == 0 else STALE
        return right

    def _leave_at_once(self, index: int, log: list[Event], start: int) -> tuple[int, int]:
        """Take a turn that leaves its loop for the only one."""
        log.append(Turns(index, 1, tuple(self.log)))
        self.log = log
        self._fix(index, 0)
        self.scope.leave(index, 1)
        return start, 1

    def _settle(self, loop: Region, index: int, log: list[Event]) -> tuple[int, int]:
        """Take the turns a turn stands for; the last of them, too, where its branch ends it."""
        frame = self.scope.frames[index]
        turns, start = frame.limit, loop.header
        if turns >= ENDLESS:
            raise FirmwareError(f"{self.image.path}: the loop at 0x{loop.header:08x} does not end")
        step = next((event for event in reversed(self.log) if isinstance(event, Step)), None)
        last = None
        if step is not None and step.block.start == -frame.source and frame.others > turns \
                and step.block.ending.kind in ("branch", "loop_end") \
                and self._closes(step, loop.header):
            last = step
            turns += 1
        body = tuple(self.log)
        self.log = log
        self._fix(index, turns - 1)
        self.scope.leave(index, turns, frame.source if last else None)
        if last is not None:
            self.scope.place = -last.block.start
            condition, flags = self._test
            taken = self.decide(condition, flags)
            if taken is not None and taken != last.taken:
                start = last.block.end if last.taken else last.block.ending.target
            else:
                last = None
        log.append(Turns(index, turns, body, last))
        return start, turns

    @staticmethod
    def _closes(step: Step, header: int) -> bool:
        goes = step.block.ending.target if step.taken else step.block.end
        return goes == header

    def _fix(self, index: int, turn: int) -> None:
        """Return the state in one turn of a loop."""
        self.state = {place: at(value, index, turn) if type(value) is tuple else value
                      for place, value in self.state.items()}
        left, right, carries = self.flags
        self.flags = at(left, index, turn), at(right, index, turn), carries
        condition, (left, right, carries) = self._test
        self._test = condition, (at(left, index, turn), at(right, index, turn), carries)
