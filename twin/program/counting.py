"""What functions did, as the traffic of kernels: the noun every other bill is made of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hwmodels.cache import AccessCounts
from hwmodels.core.file import load_core
from hwmodels.core.schedule import BlockCounts, count_block, schedule
from hwmodels.core.timing import CoreTiming
from hwmodels.counts import COPYING, CountLine, Counts, merge_counts
from hwmodels.errors import KernelError
from hwmodels.frozen import frozen
from hwmodels.kernel import Block, Kernel, Operand, split_runs
from hwmodels.paths.code import CodePath
from hwmodels.paths.traffic import CodeTraffic, DataTraffic, KernelTraffic
from hwmodels.paths.ways import code_cache
from hwmodels.program.elf import lies_in
from twin.program.counters import BlockRun
from twin.program.elf import Function
from twin.program.machine import Machine
from twin.program.patterns import family_of, is_copy

EXCEPTIONS, ASLEEP = "entering and leaving handlers", "asleep"


@frozen
class FunctionRun:
    """What one function did in one layer.

    Parameters
    ----------
    name, family
        As its source names it, and its operator family.
    calls
        How often it was entered.
    code_memory
        What its code is fetched from.
    traffic
        Instructions, fetches and accesses.
    products
        Plain multiplications by what may be a datum: the products of code without instructions
        that add them up, such as an Armv6-M's.
    """

    name: str
    family: str
    calls: int
    code_memory: str
    traffic: KernelTraffic
    products: int = 0


Layers = tuple[tuple[str, tuple[FunctionRun, ...]], ...]
"""Layers in order: name, and what each function did in it."""


@frozen
class Found:
    """What was found of a program.

    Parameters
    ----------
    cold, warm
        Layers, with caches empty before and as one earlier pass left them.
    layers
        Set of patterns, or patterns, that named them.
    start_up_instructions, instructions
        Before the measured part, and in it.
    polls
        Loops that waited for a register: `register`, `place`, `value` that ended them.
    unknown
        Instructions the core's table does not know, taken as a move.
    printed
        What the program wrote to its console.
    exceptions
        Interrupts taken, by number.
    handed_over
        Whether QEMU ran the billed part.
    doubts
        What speaks against its being linked for the board, or why nothing could.
    untimed
        What of peripherals the billed part used that takes time on the chip and none here.
    """

    cold: Layers
    warm: Layers
    layers: str
    start_up_instructions: int
    instructions: int
    polls: tuple[Mapping[str, Any], ...]
    unknown: tuple[str, ...]
    printed: str
    exceptions: Mapping[str, int]
    handed_over: bool
    doubts: tuple[str, ...]
    untimed: tuple[str, ...]


def collect(machine: Machine) -> tuple[FunctionRun, ...]:
    """Return what every function did since counts were taken last, most instructions first.

    Notes
    -----
    Blocks are those the emulator met: a straight run up to a branch. One that follows itself is a
    loop, any other a run of its own; a conditional branch that was taken stands as a jump.
    """
    counters = machine.counters
    counters.drain()
    found = [_count(machine, number, *ran) for number, ran in list_functions(machine)]
    entries, returns, cycles = machine.exceptions.take(machine.traits)
    if found and (entries or returns):
        found.append(_count_time(EXCEPTIONS, "pipeline_stall", max(entries, returns), cycles,
                                 found[0].code_memory))
    sleeps, slept = machine.waiting.take()
    if found and sleeps:
        found.append(_count_time(ASLEEP, "sleep", sleeps, slept, found[0].code_memory))
    return tuple(sorted(found, key=lambda one: -one.traffic.instructions))


def list_functions(machine: Machine) -> Iterator[tuple[int, tuple[Function, Sequence[BlockRun]]]]:
    """Yield numbers of functions that ran, each with the function and its blocks."""
    names = {number: symbol for symbol, number in machine.counters.functions.items()}
    for number, runs in machine.counters.ran().items():
        yield number, (_name_function(machine, names[number], runs), runs)


def _name_function(machine: Machine, symbol: str, runs: Sequence[BlockRun]) -> Function:
    """Return the function blocks are of; one of their extent where the file has no symbol."""
    if machine.elf.stripped:  # a start that was found later may lie before one of its blocks
        named = next((one for one in machine.elf.functions if one.symbol == symbol), None)
        if named is not None:
            return named
    return machine.elf.function_at(runs[0].address) or Function(
        symbol=symbol, name=symbol, start=runs[0].address,
        end=max(run.address + run.size_bytes for run in runs))


def _count_time(name: str, event: str, count: int, cycles: float, memory: str) -> FunctionRun:
    """Return what takes time and no instruction, as if it were a function."""
    return FunctionRun(
        name=name, family="data_movement", calls=count, code_memory=memory,
        traffic=KernelTraffic(
            issued=Counts((CountLine(event=event, place="", occurred=cycles,
                                     exposed=cycles),)),
            core_cycles=cycles, instructions=0, loads=0, stores=0, vector_instructions=0,
            mac_lanes=0, code=CodeTraffic(), data=DataTraffic(counts=AccessCounts(operands=()))))


def _count(machine: Machine, number: int, function: Function,
           runs: Sequence[BlockRun]) -> FunctionRun:
    board, timing = machine.board, load_core(machine.board.core.model)
    plain = replace(timing, multiply_is_mac=True)
    memory = next((one for one in board.memories if lies_in(function.start, one.spans)), None)
    assert memory is not None, "code lies in a memory of the board"
    blocks = tuple(block for run in runs for block in _make_blocks(machine, function, run, timing))
    counted = [count_block(block, timing) for block in blocks]
    data = machine.recorder.traffic(number, machine.counters.accesses[number])
    further = _count_further(machine, number, timing)
    kernel = Kernel(
        name=function.name, family=family_of(function), blocks=blocks, nests=(),
        code_bytes=function.end - function.start, operands=tuple(
            Operand(name=one.operand, role=one.role, memory=one.memory, address=region.start,
                    size_bytes=region.end - region.start)
            for one in data.counts.operands for region in machine.recorder.regions
            if region.operand == one.operand))
    code = (CodeTraffic(misses=machine.recorder.fetched(number))
            if code_cache(board, memory) is not None
            else CodePath([kernel], board, function.start, memory.name, {}).run(
                [kernel], timing)[0])
    return FunctionRun(
        name=function.name, family=kernel.family, code_memory=memory.name,
        calls=sum(run.count for run in runs if run.address == function.start),
        traffic=KernelTraffic(
            issued=_merge(counted, further),
            core_cycles=math.fsum(one.cpu_cycles for one in counted) + further,
            instructions=sum(one.instructions for one in counted),
            loads=sum(one.loads for one in counted), stores=sum(one.stores for one in counted),
            vector_instructions=sum(one.vector_instructions for one in counted),
            mac_lanes=sum(one.mac_lanes for one in counted), code=code, data=data),
        products=sum(schedule(one.code, plain).mac_lanes * one.trips for one in blocks
                     if one.cause is None))


def _count_further(machine: Machine, function: int, timing: CoreTiming) -> int:
    """Return the cycles accesses that are not aligned take beyond aligned ones."""
    if timing.unaligned is None:
        return 0
    names, accesses = machine.names, machine.counters.accesses[function]
    return int(accesses[:, names.FURTHER_READS].sum() * timing.unaligned.load_cycles
               + accesses[:, names.FURTHER_WRITES].sum() * timing.unaligned.store_cycles)


def _merge(counted: Sequence[BlockCounts], further: int) -> Counts:
    return merge_counts([Counts((*(
        CountLine(event=event, place=COPYING if block.count("copy_issue") else "",
                  occurred=count, exposed=count)
        for block in counted for event, count in block.events), *(
        [CountLine(event="pipeline_stall", place="", occurred=further, exposed=further)]
        if further else [])))])


def _make_blocks(machine: Machine, function: Function, run: BlockRun,
                 timing: CoreTiming) -> Iterator[Block]:
    text, cause = list_code(machine, function, run, timing)
    name = f"{function.name}+0x{run.address - function.start:x}"
    taken = run.again or (run.taken if schedule(text, timing).closes_loop else 0)
    yield from split_runs(
        Block(name=name, code=text, trips=run.count, entries=run.count - taken, cause=cause),
        loops=bool(run.again), jump=machine.code.JUMP)


def list_code(machine: Machine, function: Function, run: BlockRun,
              timing: CoreTiming) -> tuple[str, str | None]:
    """Return a block's text as the core's table knows it, and the cause of all of it."""
    text, strange = _read_block(machine.listing.text(
        run.address, machine.read(run.address, run.size_bytes)), timing, machine.code.STAND_IN)
    machine.unknown.update(strange)
    return text, "data_copy" if is_copy(function) else None


@lru_cache(maxsize=16384)
def _read_block(text: str, timing: CoreTiming, stand_in: str) -> tuple[str, tuple[str, ...]]:
    """Return a block with what the core's table does not know replaced, and what that is."""
    try:
        schedule(text, timing)
        return text, ()
    except KernelError:
        pass
    lines, strange = [], []
    for line in text.splitlines() or [stand_in]:
        try:
            schedule(line, timing)
            lines.append(line)
        except KernelError:
            lines.append(stand_in)
            strange.append(line.split()[0])
    return "\n".join(lines), tuple(strange)
