"""What a library's code does in each layer: its blocks, and the operands its accesses touch.

    pass 1: words each layer touches, read or written first    -> what each word is to the layer
    pass 2: the same accesses again, by what their words are   -> how often each operand is read,
                                                                  and how often swept from its start

A word is an operand by its history: read first and written by an earlier layer, it is input;
written, and read by a later layer or by nobody, output; read and written by the layer alone,
scratch. What no layer wrote is constant, or was there before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy import ndarray

from hwmodels.board.facts import FLASH_ROLES, Board
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule
from hwmodels.files import JsonObject
from hwmodels.kernels.access_stream import WRITE
from hwmodels.paths.traffic import DataTraffic
from twin.errors import ProgramError
from twin.program.asking import Wanted
from twin.program.cores import open_machine
from twin.program.counters import BlockRun
from twin.program.counting import list_code, list_functions
from twin.program.elf import Elf
from twin.program.machine import Machine
from twin.program.recorder import Recorder, Region
from twin.program.session import OUTSIDE, Session

INPUT, OUTPUT, SCRATCH, STACK, CONSTANT, BEFORE, MARKED = range(7)
ROLES = ("input", "output", "scratch", "stack", "constants", "before", "marked")
_NUMBER = 1 << 8
"""Classes are role + _NUMBER x the layer an input comes from, or the mark."""


@dataclass(slots=True)
class Words:
    """Words a layer touched, sorted: first access a write, and which region they lie in."""

    places: ndarray
    written_first: ndarray
    written: ndarray
    regions: ndarray
    read: ndarray


@dataclass(slots=True)
class Stream:
    """Accesses of a layer to one operand."""

    words: int
    low: int
    high: int
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    last: int = -1
    sweeps: int = 0


class Watcher(Recorder):
    """Takes accesses as they come, without caches.

    Parameters
    ----------
    regions
        Pieces of memory.
    """

    def __init__(self, board: Board, regions: tuple[Region, ...]) -> None:
        self.board, self.regions = board, regions
        self.data, self.code = [None] * len(regions), [None] * len(regions)
        self.chunks: list[Words] = []
        self.classes: tuple[ndarray, ndarray] | None = None
        self.streams: dict[int, Stream] = {}

    def keeps(self, place: int) -> tuple[bool, bool]:
        """Every access is written down."""
        return True, True

    def meet(self, accesses: ndarray) -> None:
        """Take a chunk of accesses."""
        if self.classes is None:
            self.chunks.append(_take_words(accesses))
        else:
            self._stream(accesses, *self.classes)

    def take(self) -> Any:
        """Return what was met, and start again."""
        taken = self.chunks, self.streams
        self.chunks, self.streams = [], {}
        return taken

    def restore(self, taken: Any) -> None:
        """Go on where `take` left off."""
        self.chunks, self.streams = taken

    def empty(self) -> None:
        """There is no cache."""

    def traffic(self, function: int, accesses: ndarray) -> DataTraffic:
        """Nothing of this is asked for here."""
        raise NotImplementedError

    def _stream(self, accesses: ndarray, places: ndarray, classes: ndarray) -> None:
        """Count accesses by operand, and how often each is swept from its start."""
        if not len(places):
            return
        address, packed = accesses[:, 0], accesses[:, 1]
        at = np.searchsorted(places, address >> 2)
        at[at == len(places)] = 0
        found = np.where(places[at] == address >> 2, classes[at], -1)
        for number in np.unique(found[found >= 0]).tolist():
            stream = self.streams.get(number)
            if stream is None:  # Between layers.
                continue
            chosen = found == number
            write = packed[chosen] & 3 == WRITE
            size = packed[chosen] >> 2 & 0x3FF
            for kind, mask in enumerate((~write, write)):
                stream.counts[kind] += int(mask.sum())
                stream.counts[2 + kind] += int(size[mask].sum())
            reads = address[chosen][~write]
            if len(reads):
                steps = np.diff(reads, prepend=stream.last if stream.last >= 0 else reads[0])
                far = max(4, stream.high - stream.low) * 0.6
                stream.sweeps += int((steps < -far).sum())
                stream.last = int(reads[-1])


def _take_words(accesses: ndarray) -> Words:
    """Return what a chunk touches, by word."""
    address, packed = accesses[:, 0], accesses[:, 1]
    size = packed >> 2 & 0x3FF
    many = np.maximum(1, (address & 3) + size + 3 >> 2)
    words = np.repeat(address >> 2, many)
    first = np.repeat(np.cumsum(many) - many, many)
    words = words + np.arange(len(words)) - first
    write = np.repeat(packed & 3 == WRITE, many)
    region = np.repeat(packed >> 12 & 0xFF, many)
    places, firsts, inverse = np.unique(words, return_index=True, return_inverse=True)
    writes = np.bincount(inverse, weights=write, minlength=len(places))
    every = np.bincount(inverse, minlength=len(places))
    return Words(places=places, written_first=write[firsts], written=writes > 0,
                 regions=region[firsts], read=every > writes)


def _join(chunks: Sequence[Words]) -> Words:
    """Return the words of chunks that follow each other."""
    if not chunks:
        none = np.zeros(0, dtype=np.int64)
        return Words(none, none > 0, none > 0, none, none > 0)
    every = np.concatenate([one.places for one in chunks])
    places, firsts, inverse = np.unique(every, return_index=True, return_inverse=True)
    gathered = {}
    for name in ("written", "read"):
        one = np.concatenate([getattr(chunk, name) for chunk in chunks])
        gathered[name] = np.bincount(inverse, weights=one, minlength=len(places)) > 0
    return Words(places=places, regions=np.concatenate([one.regions for one in chunks])[firsts],
                 written_first=np.concatenate([one.written_first for one in chunks])[firsts],
                 **gathered)


def classify(layers: Sequence[Words], regions: Sequence[Region],
             marks: Sequence[tuple[int, int, int]]) -> list[ndarray]:
    """Return what each word is to the layer that touches it.

    Parameters
    ----------
    layers
        In order.
    marks : sequence of (int, int, int)
        Number, first address and end of what is known.

    Returns
    -------
    list of ndarray of int
        By layer: role + 256 x the number of a mark, or of the layer an input comes from.
    """
    stack = np.array([one.role == "stack" for one in regions])
    flash = np.array([one.memory.role in FLASH_ROLES for one in regions])
    writer: dict[int, int] = {}
    classes: list[ndarray] = []
    for number, layer in enumerate(layers):
        found = np.where(layer.read, SCRATCH, OUTPUT)
        coming = ~layer.written_first
        origin = np.array([writer.get(place, -1) for place in layer.places.tolist()], dtype=int)
        found[coming] = np.where(origin[coming] < 0, BEFORE, INPUT + _NUMBER * origin[coming])
        found[flash[layer.regions]] = CONSTANT
        for mark, low, high in marks:
            found[(layer.places >= low >> 2) & (layer.places < high + 3 >> 2)
                  & ~layer.written] = MARKED + _NUMBER * mark
        found[stack[layer.regions]] = STACK
        for place, source in zip(layer.places[coming].tolist(), origin[coming].tolist(),
                                 strict=True):
            if source >= 0:  # A later layer reads it, so it was no scratch.
                at = np.searchsorted(layers[source].places, place)
                if classes[source][at] == SCRATCH:
                    classes[source][at] = OUTPUT
        writer.update(dict.fromkeys(layer.places[layer.written].tolist(), number))
        classes.append(found)
    return classes


def observe_program(elf: Elf, board: Board, wanted: Wanted) -> JsonObject:
    """Run a program twice, and return what its layers are made of, as plain data.

    Parameters
    ----------
    elf, board, wanted
        As of `run_program`.

    Returns
    -------
    dict
        `layers`: of each its name, the function it is, blocks and operands.

    Raises
    ------
    ProgramError
        When it does not come to what was asked for, or has no layers.
    """
    machine = open_machine(elf, board, wanted.files, wanted.limit, Watcher)
    watcher = machine.recorder
    assert isinstance(watcher, Watcher)
    seen: list[Words] = []
    turn = iter(range(1 << 30))

    def collect(machine: Machine) -> tuple[Any, ...]:
        machine.counters.drain()
        if watcher.classes is None:
            seen.append(_join(watcher.chunks))
            return ("seen",)
        return (list(_list_blocks(machine)), list(_list_operands(watcher.streams)))

    session = Session(machine, wanted, collect)
    session.measure(empty=True)
    classes = classify(seen, watcher.regions, wanted.marks)
    _follow(session, watcher, seen, classes, turn)
    session.bring_back()
    found = session.measure(empty=True)
    layers = [{"name": name, "blocks": what[0], "operands": what[1]}
              for name, what in found if name != OUTSIDE]
    if session.patterns == "none" or not layers:
        raise ProgramError(f"{elf.path}: no function is a layer; accepted: --layers PATTERNS")
    return {"layers": layers, "patterns": session.patterns, "unknown": sorted(machine.unknown),
            "code_bytes": {one.name: one.end - one.start for one in elf.functions}}


def _follow(session: Session, watcher: Watcher, seen: Sequence[Words],
            classes: Sequence[ndarray], turn: Iterator[int]) -> None:
    """Have the second pass know of each layer it enters what its words are."""
    def begin(number: int) -> None:
        watcher.classes = seen[number].places, classes[number]
        watcher.streams = {}
        for one in np.unique(classes[number]).tolist():
            mine = seen[number].places[classes[number] == one]
            watcher.streams[one] = Stream(words=len(mine), low=int(mine[0]) * 4,
                                          high=int(mine[-1]) * 4 + 4)

    def on_layer(address: int) -> None:
        before = session.inside
        session.enter(address)
        if session.inside is not None and before is None:
            begin(next(turn))

    session.machine.on_layer = on_layer
    none = np.zeros(1, dtype=np.int64)
    watcher.classes = none, none - 1


def _list_blocks(machine: Machine) -> Iterator[JsonObject]:
    """Yield runs of code from where they were entered to their branch, and how often they ran."""
    timing = load_core(machine.board.core.model)
    for _, (function, runs) in list_functions(machine):
        for run in join_runs(machine, runs):
            content = machine.read(run.address, run.size_bytes)
            text, cause = list_code(machine, function, run, timing)
            target = _closes(machine, run) if schedule(text, timing).closes_loop else None
            yield {"function": function.name, "start": run.address - function.start,
                   "sizes": machine.code.measure_instructions(content), "cause": cause,
                   "code": _erase_targets(machine, text),
                   "target": None if target is None else target - function.start,
                   "counts": [run.count, run.again, run.taken]}


def join_runs(machine: Machine, runs: Sequence[BlockRun]) -> list[BlockRun]:
    """Return blocks up to their branches: an emulator cuts them at pages, wherever those lie."""
    found: dict[int, BlockRun] = {}
    for run in sorted(runs, key=lambda one: -one.address):
        after = found.get(run.address + run.size_bytes)
        if after is None or after.count < run.count or _closes(machine, run) is not None:
            found[run.address] = run
            continue
        share = run.count / after.count
        taken, again = round(after.taken * share), 0
        if _closes(machine, after) == run.address:
            taken, again = 0, taken
        found[run.address] = BlockRun(
            address=run.address, size_bytes=run.size_bytes + after.size_bytes, count=run.count,
            again=min(again, run.count), taken=taken)
        if after.count == run.count:
            del found[after.address]
        else:
            found[after.address] = replace(
                after, count=after.count - run.count, taken=after.taken - round(
                    after.taken * share), again=min(after.again, after.count - run.count))
    return list(found.values())


def _closes(machine: Machine, run: BlockRun) -> int | None:
    """Return where a block's closing branch goes, 0 where that is not known; None without one."""
    content = machine.read(run.address, run.size_bytes)
    *_, size = machine.code.measure_instructions(content)
    *_, line = machine.listing.text(run.address, content).splitlines()
    return machine.code.find_target(line, run.address + run.size_bytes - size)


def _erase_targets(machine: Machine, text: str) -> str:
    """Return a block whose jumps lead nowhere: where a library was linked to makes no odds."""
    code = machine.code
    return "\n".join(line if code.find_target(line, 0) is None else code.without_target(line)
                     for line in text.splitlines())


def _list_operands(streams: Mapping[int, Stream]) -> Iterator[JsonObject]:
    """Yield what was touched, by what it is to the layer."""
    for number, one in streams.items():
        reads, writes, read_bytes, write_bytes = one.counts
        yield {"role": ROLES[number % _NUMBER], "number": number // _NUMBER,
               "size_bytes": 4 * one.words, "reads": reads, "writes": writes,
               "read_bytes": read_bytes, "write_bytes": write_bytes, "sweeps": one.sweeps}
