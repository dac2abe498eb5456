"""Listings of TI's C6000 compiler, read as blocks of operations: a test bed of `bundles`.

A listing is text of an answer, too: which operations share a cycle, and how many cycles idle. Only
the operations are read, in the order they stand in; what stands beside another and what idles is
omitted. Cycles of a block go from its first bundle to the end of the delay slots of its branch.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.accuracy.bundles import Edge, Operation, hold
from hwmodels.errors import KernelError
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen

_LINE = re.compile(r"^(\|\|)?\s*+(\[\s*!?\w+\])?\s*+([A-Z][A-Z0-9_]*)(?:\s++\.(\w+))?"
                   r"(?:\s++(.*))?$")
_CYCLES = re.compile(r"EXCLUSIVE CPU CYCLES:\s*(\d+)")
_REGISTER = re.compile(r"\b(?:[AB]\d{1,2}|SP|DP|RILC|ILC|FADCR|FMCR|FAUCR|CSR|IER|TSR|TSCL|TSCH)\b")
_LABEL = re.compile(r"^[$\w]+:")


@frozen
class PackedBlock:
    """A block of a listing.

    Parameters
    ----------
    line
        Where its cycles are printed.
    cycles
        Those the compiler prints.
    operations
        In the order of the listing.
    branches
        Places of those that branch.
    label
        By which others branch to it; "": none does.
    targets : tuple of (int, str)
        Of its branches: the place of each and where it goes.
    ends
        Whether it never goes on into the block behind it.
    """

    line: int
    cycles: int
    operations: tuple[Operation, ...]
    branches: tuple[int, ...] = ()
    label: str = ""
    targets: tuple[tuple[int, str], ...] = ()
    ends: bool = False


@dataclass(slots=True)
class _Open:
    """A block whose operations are still read."""

    line: int
    cycles: int
    label: str
    operations: list[Operation] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    targets: list[tuple[int, str]] = field(default_factory=list)
    ends: bool = False


@frozen
class _Facts:
    """c6000.yaml, as it is asked."""

    delay_slots: Mapping[str, int]
    unit_cycles: Mapping[str, int]
    branches: tuple[str, ...]
    branch_slots: int
    idle: str
    returns_to: str
    calls: str
    whole_calls: str
    ordered: str
    returns: tuple[str, ...]
    arguments: tuple[str, ...]
    changed: tuple[str, ...]


@cache
def _facts() -> _Facts:
    document: dict[str, Any] = dict(read_yaml_once(Path(__file__).with_name("c6000.yaml")))
    for key in ("delay_slots", "unit_cycles"):
        document[key] = {name: cycles for cycles, names in document[key].items()
                         for name in names.split()}
    for key in ("branches", "returns", "arguments", "changed"):
        document[key] = tuple(document[key].split())
    return _Facts(**document)


def read_listing(text: str) -> Iterator[PackedBlock]:
    """Yield the blocks of a listing, in order.

    Raises
    ------
    KernelError
        When a line within a block is no operation.
    """
    block: _Open | None = None
    label = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _CYCLES.search(line)
        if found:
            if block is not None:
                yield _close(block)
            block, label = _Open(number, int(found[1]), label), ""
            continue
        bare = line.split(";")[0].rstrip()
        if _LABEL.match(bare):
            if "CALL OCCURS" not in line:
                label = bare.partition(":")[0]
            elif block is not None:
                _return(block)
            continue
        if block is None or not bare.strip() or bare.strip().startswith((".", "*")):
            continue
        _read_operation(block, bare.strip(), number)
    if block is not None:
        yield _close(block)


def _close(block: _Open) -> PackedBlock:
    return PackedBlock(line=block.line, cycles=block.cycles, operations=tuple(block.operations),
                       branches=tuple(block.branches), label=block.label,
                       targets=tuple(block.targets), ends=block.ends)


def _read_operation(block: _Open, text: str, number: int) -> None:
    facts, found = _facts(), _LINE.match(text.rstrip())
    if found is None:
        raise KernelError(f"line {number}: {text!r} is no operation of a C6000 listing")
    _, condition, name, unit, rest = found.groups()
    if name == facts.idle:
        return
    operands = [part.strip() for part in re.split(r",(?![^()]*\))", rest or "")]
    branch, stores = name in facts.branches, name.startswith("ST")
    reads = _registers(" ".join([*(operands if branch or stores else operands[:-1]),
                                 condition or ""]))
    writes = () if branch or stores else _registers(operands[-1])
    if not (branch or stores) and condition:
        reads += writes
    steps = tuple(register for one in operands if "++" in one or "--" in one
                  for register in _registers(one.split("(")[0])[:1])
    latency = facts.delay_slots.get(name, 0) + 1
    if name == facts.whole_calls:
        reads, writes, latency = facts.arguments, facts.changed, facts.branch_slots + 1
    if branch:
        block.branches.append(len(block.operations))
        if name not in (facts.calls, facts.whole_calls):
            block.targets.append((len(block.operations), operands[0]))
            block.ends = block.ends or not condition
    block.operations.append(Operation(
        text=name, units=(unit[:2],) if unit and unit[0] in "LSMD" else (), writes=writes,
        paths=(f"{unit[1]}X",) if unit and unit.endswith("X") else (unit[2:],)
        if unit and len(unit) == 4 else (),
        steps=steps, reads=() if name == facts.returns_to else reads, latency_cycles=latency,
        busy_cycles=facts.unit_cycles.get(name, 1)))


def _return(block: _Open) -> None:
    """Put the call that returns here behind all that stands before: it happened before."""
    whole = block.branches and block.operations[block.branches[-1]].text == _facts().whole_calls
    if whole:
        block.operations.append(block.operations.pop(block.branches.pop()))
        block.branches.append(len(block.operations) - 1)


def _registers(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_REGISTER.findall(text)))


@frozen
class _Packed:
    """A block as packed: its length, what lands after it, when its branches and results land."""

    length: int
    pending: int = 0
    branches: tuple[int, ...] = ()
    results: Mapping[str, int] = field(default_factory=dict)

    def after(self, cycle: int) -> dict[str, int]:
        """Return what lands when, from a cycle of the block on."""
        return {name: late - cycle for name, late in self.results.items() if late > cycle}


def schedule_listing(blocks: Sequence[PackedBlock]) -> list[int]:
    """Return the cycles of each block of a function, packed from its operations alone.

    Notes
    -----
    A branch is placed so that its delay slots hold as much as they can; nothing moves across a
    call that idles until it returns. What is under way when a block is left is waited for in the
    one that follows, by falling into it or by a branch; where others join there, a block that
    falls into it waits as long as that one does not. Before a return all results land, and before
    a call those of its delay slots, which are its arguments.
    """
    entering: dict[str, dict[str, int]] = {}
    fallen: dict[str, int] = {}
    pending, called, under_way, found = 0, False, "", []
    for place, block in enumerate(blocks):
        after = blocks[place + 1] if place + 1 < len(blocks) else None
        ready = {name: max(fallen.get(name, 0), entering.get(block.label, {}).get(name, 0))
                 for name in {*fallen, *entering.get(block.label, {})}}
        joined = after is not None and after.label in entering
        packed = _schedule(block, ready, pending, called, after, joined)
        found.append(packed.length)
        lands = [(target, packed.branches[block.branches.index(branch)])
                 for branch, target in block.targets]
        for target, cycle in [*lands, *([(under_way, packed.length)] if pending else [])]:
            kept = entering.setdefault(target, {})
            for name, late in packed.after(cycle).items():
                kept[name] = max(kept.get(name, 0), late)
        pending = packed.pending
        called = bool(pending) and block.operations[block.branches[-1]].text == _facts().calls
        under_way = lands[-1][0] if lands and pending else ""
        fallen = {} if block.ends and not pending else packed.after(packed.length)
    return found


def _lands(one: Operation, register: str) -> int:
    """Return the cycles until a register an operation writes or moves on may be read."""
    return one.latency_cycles if register in one.writes else 1


def _schedule(block: PackedBlock, ready: Mapping[str, int], pending: int, called: bool,
              after: PackedBlock | None, joined: bool) -> _Packed:
    operations, facts = block.operations, _facts()
    if not operations:
        return _Packed(length=max(pending, 1, *ready.values()) if ready or pending else 1)
    issue = _pack(block, ready)
    length = max(issue) + 1
    lands = tuple(issue[place] + facts.branch_slots + 1 for place in block.branches)
    names = [operations[place].text for place in block.branches]
    results = {name: at + _lands(one, name) for one, at in zip(operations, issue, strict=True)
               if one.text != facts.whole_calls for name in (*one.writes, *one.steps)}
    split = names == [facts.calls] and after is not None and not any(
        one.text == facts.returns_to for one in operations) and any(
        one.text == facts.returns_to for one in after.operations)
    behind = max((at + one.latency_cycles for one, at in zip(
        after.operations, _pack(after, {}), strict=True)), default=0) if split and after else 0
    if pending:  # arguments of a call under way land before it
        length = max(length, pending, *(results.values() if called else ()))
    elif names[-1:] == [facts.whole_calls]:
        length = max(length, lands[-1])
    elif lands and not split:
        length = max(length, lands[0])
        if names[0] in facts.returns:
            length = max(length, *results.values(), 0)
    elif split and not joined:
        length = max(length, lands[0] - behind)
    elif not lands and after is not None:
        length = max(length, _wait_for(results, length, after))
    late = bool(lands) and facts.whole_calls not in names and not (pending or split)
    if late and lands[0] < length:  # the branch is placed as late as that
        lands = tuple(late + length - lands[0] for late in lands)
    if split and lands[0] < length:
        lands = (min(length + facts.branch_slots, length + behind),)
    return _Packed(
        length=length, branches=lands, results=results,
        pending=max(0, lands[-1] - length) if lands and (len(lands) > 1 or split) else 0)


def _pack(block: PackedBlock, ready: Mapping[str, int]) -> tuple[int, ...]:
    operations, facts = block.operations, _facts()
    edges = list_edges(operations)
    ordered = [place for place, one in enumerate(operations) if one.text == facts.ordered]
    edges += [Edge(first, second, 1) for kept in (block.branches, ordered)
              for first, second in itertools.pairwise(kept)]
    whole = [place for place in block.branches if operations[place].text == facts.whole_calls]
    if whole:
        edges = [edge for edge in edges if edge.sink not in whole and edge.source not in whole]
        for call in whole:
            edges += [Edge(place, call, max(0, one.latency_cycles - facts.branch_slots - 1))
                      for place, one in enumerate(operations[:call])]
            edges += [Edge(call, place, facts.branch_slots + 1)
                      for place in range(call + 1, len(operations))]
    heights = list_heights(operations, edges)
    for place in block.branches[:1]:
        heights[place] = max(heights[place], facts.branch_slots + 1)
    return pack_block(operations, ready, edges=edges,
                      heights=_raise_sources(operations, edges, heights))


def _wait_for(results: Mapping[str, int], length: int, after: PackedBlock) -> int:
    """Return the length with which what a block writes is there when the one behind reads it."""
    lands, needed = dict(results), length
    for one, at in zip(after.operations, _pack(after, {}), strict=True):
        for name in one.reads:
            needed = max(needed, lands.get(name, 0) - at)
        for name in one.writes:
            lands.pop(name, None)
    return needed


def _raise_sources(operations: Sequence[Operation], edges: Sequence[Edge],
                   heights: Sequence[int]) -> list[int]:
    """Return heights of operations, those before a branch raised as the branch was."""
    raised = list(heights)
    for edge in sorted(edges, key=lambda one: -one.source):
        raised[edge.source] = max(raised[edge.source],
                                  edge.latency_cycles + raised[edge.sink])
    return raised


def list_edges(operations: Sequence[Operation]) -> list[Edge]:
    """Return what operations of a block in program order wait for.

    Notes
    -----
    A read after a write waits for its latency; a write after a read may share its cycle, for what
    is read is the value before; of two writes the later lands later.
    """
    edges: list[Edge] = []
    for sink, one in enumerate(operations):
        changed = {*one.writes, *one.steps}
        for source, before in enumerate(operations[:sink]):
            waits = []
            for name in (*before.writes, *before.steps):
                if name in one.reads:
                    waits.append(_lands(before, name))
                if name in changed:
                    waits.append(max(0, _lands(before, name) - _lands(one, name) + 1))
            if not changed.isdisjoint(before.reads):
                waits.append(0)
            if waits:
                edges.append(Edge(source, sink, max(waits)))
    return edges


def list_heights(operations: Sequence[Operation], edges: Iterable[Edge]) -> list[int]:
    """Return the cycles from each operation's issue to the end of all that waits for it."""
    after: dict[int, list[Edge]] = {}
    for edge in edges:
        if not edge.distance:
            after.setdefault(edge.source, []).append(edge)
    heights = [0] * len(operations)
    for place in reversed(range(len(operations))):
        heights[place] = max((edge.latency_cycles + heights[edge.sink]
                              for edge in after.get(place, ())), default=0)
    return heights


def pack_block(operations: Sequence[Operation], ready: Mapping[str, int] | None = None,
               edges: Sequence[Edge] | None = None,
               heights: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the cycle each operation of a block is issued in.

    Parameters
    ----------
    operations
        In program order.
    ready
        Cycle from which a register written before may be read; others at once.
    edges
        What waits for what; None: as `list_edges` has it.
    heights
        Who goes first; None: as `list_heights` has it.

    Raises
    ------
    KernelError
        When edges run in a circle.
    """
    edges = list_edges(operations) if edges is None else edges
    heights = list_heights(operations, edges) if heights is None else heights
    before: dict[int, list[Edge]] = {}
    for edge in edges:
        before.setdefault(edge.sink, []).append(edge)
    ready = ready or {}
    order = sorted(range(len(operations)), key=lambda place: (-heights[place], place))
    issue: dict[int, int] = {}
    taken: dict[tuple[str, int], int] = {}
    cycle, limit = 0, sum(one.latency_cycles + one.busy_cycles for one in operations)
    limit += max(ready.values(), default=0) + len(operations) + sum(e.latency_cycles for e in edges)
    while len(issue) < len(operations):
        if cycle > limit:
            raise KernelError("operations of a block wait for each other in a circle")
        placed = True
        while placed:  # what is issued may let another into the same cycle
            placed = False
            for place in order:
                one = operations[place]
                if place in issue or sum(at == cycle for at in issue.values()) >= 8:
                    continue
                early = max((ready.get(name, 0) for name in one.reads), default=0)
                if early > cycle or any(
                        edge.source not in issue
                        or issue[edge.source] + edge.latency_cycles > cycle
                        for edge in before.get(place, ())):
                    continue
                if hold(one, cycle, taken, 0):
                    issue[place] = cycle
                    placed = True
        cycle += 1
    return tuple(issue[place] for place in range(len(operations)))
