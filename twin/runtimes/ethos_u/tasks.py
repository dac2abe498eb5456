"""A decoded command stream as tasks of the hardware model: one for each operation.

A copy of the DMA controller runs beside the operation that was started before it, or, where the
stream waits for that one first, beside the next; a copy the next operation waits for is a task of
its own. Commands are read ahead, beside the operation before.

An operation of the MAC array that waits for all of the one before it (`blockdep` 0) and is waited
for hands whole blocks from unit to unit, so that its first block is not overlapped, nor its last;
the accumulators of an Ethos-U85 then hold one block, which the output unit empties before the next
begins (inferred: operators without memory latency take the sum of both units).
Any other overlaps with its neighbours, and an element-wise one adds nothing up: their units are
taken to hand work on as it comes. Operations of an Ethos-U85 chained by a buffer inside are one
task: the blocks of one are the next one's, and the output unit works for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hwmodels.board.npu import Npu
from hwmodels.frozen import frozen
from hwmodels.schedule import THROUGH, Link, Task, Transfer, UnitWork
from twin.runtimes.ethos_u.commands import Stream
from twin.runtimes.ethos_u.cycles import Cycles, count_blocks, count_cycles
from twin.runtimes.ethos_u.operations import Copy, Operation, read_copy, read_operation
from twin.runtimes.ethos_u.traffic import Memories, read_copy_transfers, walk_input, walk_output

MAC, OUTPUT, DECODER = "MAC", "OUTPUT", "DECODER"
"""Units, as the boards name them."""

_COMMANDS, _INPUT, _WEIGHTS, _SCALES, _OUTPUT, _COPY = 0, 1, 3, 4, 5, 6
"""Channels of a task."""

_CHAIN = 1 << 16
"""Channels between those of two operations of a chain."""

COMMANDS = "commands"
"""Operand of the command stream."""


@frozen
class Slot:
    """One operation with the copies beside it, in the order the NPU starts them.

    Parameters
    ----------
    operation
        None: copies alone, which the next operation waits for.
    offset, command_bytes
        Where in the stream it starts, and bytes of the commands up to there.
    chained
        Those that take its output, one after another, without memory between.
    """

    operation: Operation | None
    copies: tuple[Copy, ...]
    offset: int
    command_bytes: int
    chained: tuple[Operation, ...] = ()


def order_slots(stream: Stream) -> tuple[Slot, ...]:
    """Return the operations of a stream, each with the copies that run beside it."""
    slots: list[Slot] = []
    waiting: list[Copy] = []
    running, needed, read = False, False, 0
    for command in stream.commands:
        if command.kind == "kernel_wait":
            running = running and command.mode > 0
        elif command.kind == "dma_wait":
            needed = bool(waiting)
        elif command.kind == "dma":
            copy = read_copy(command)
            if running:
                slots[-1] = replace(slots[-1], copies=(*slots[-1].copies, copy))
            else:
                waiting.append(copy)
        else:
            if needed:
                slots.append(Slot(operation=None, copies=tuple(waiting),
                                  offset=waiting[0].offset, command_bytes=0))
                waiting.clear()
            operation = read_operation(command, stream.config)
            if slots and not waiting and _hands_on(slots[-1], operation):
                slots[-1] = replace(
                    slots[-1], chained=(*slots[-1].chained, operation),
                    command_bytes=slots[-1].command_bytes + command.offset - read)
            else:
                slots.append(Slot(operation=operation, copies=tuple(waiting),
                                  offset=command.offset, command_bytes=command.offset - read))
            waiting.clear()
            running, needed, read = True, False, command.offset
    if waiting:
        slots.append(Slot(operation=None, copies=tuple(waiting), offset=waiting[0].offset,
                          command_bytes=0))
    return tuple(slots)


def _count_steps(operation: Operation) -> int:
    """Return the blocks of an operation, in units of the depth of the last, which ends it."""
    height, width, _ = count_blocks(operation)
    depth, block = operation.output.shape[2], operation.block[2]
    return round(height * width * depth / (depth % block or block))


def _hands_on(slot: Slot, operation: Operation) -> bool:
    """Whether an operation takes the output of a slot from inside the NPU."""
    last = (slot.operation, *slot.chained)[-1]
    return last is not None and not last.output.in_memory and any(
        operand.chained for operand in operation.inputs)


def make_tasks(stream: Stream, npu: Npu, mode: str) -> tuple[Task, ...]:
    """Return the tasks of a stream.

    Parameters
    ----------
    npu
        Of the configuration the stream is for.
    mode
        Memory mode: which region is in which memory.

    Returns
    -------
    tuple of Task
        In order, named by the operation and its offset; host cycles are left to the driver.
    """
    memories = Memories(npu=npu, mode=mode)
    slots = order_slots(stream)
    return tuple(_make_task(slot, slots[place + 1] if place + 1 < len(slots) else None, memories)
                 for place, slot in enumerate(slots))


def _make_task(slot: Slot, behind: Slot | None, memories: Memories) -> Task:
    transfers: list[Transfer] = []
    links: list[Link] = []
    units: list[UnitWork] = []
    operation = slot.operation
    start = steps = 0
    if operation is not None:
        cycles = count_cycles(operation, memories.npu)
        start = round(dict(memories.npu.rates)["start"])
        if operation.blockdep == 0 and cycles.mac and _is_waited_for(behind):
            steps = _count_steps(operation)
        units = list(_list_units(operation, cycles,
                                 steps > 0 and memories.npu.config.startswith("ethos-u85")))
        moved = [*_list_transfers(operation, memories)]
        for number, chained in enumerate(slot.chained, 1):
            units = _add_units(units, _list_units(chained, count_cycles(chained, memories.npu)))
            moved += [(replace(one, channel=one.channel + number * _CHAIN), sink)
                      for one, sink in _list_transfers(chained, memories)]
        for transfer, sink in moved:
            transfers.append(transfer)
            node = f"E{transfer.channel}"
            links.append(Link(node, f"U{_find(units, sink)}") if transfer.direction == "in"
                         else Link(f"U{len(units) - 1}", node))
        links += [Link(f"U{place}", f"U{place + 1}") for place in range(len(units) - 1)]
    beside = "task" if operation is not None else "units"
    for number, copy in enumerate(slot.copies):
        pair = list(read_copy_transfers(copy, memories, _COPY + 2 * number, beside))
        transfers += pair
        if len(pair) > 1:
            links.append(Link(f"E{pair[0].channel}", f"E{pair[1].channel}"))
    if slot.command_bytes:
        transfers.append(memories.transfer(
            _COMMANDS, "in", memories.outer, size=slot.command_bytes, run=0,
            limit="command_bytes", operand=COMMANDS, overlaps="task", ahead=True))
    if not units:
        units = [UnitWork(kind=THROUGH)]
        links = [link for link in links if link.sink != "U0"]
    name = operation.kind if operation is not None else "copy"
    return Task(name=f"{name}@{slot.offset}", kind=name, units=tuple(units),
                transfers=tuple(transfers), links=tuple(links), start_cycles=start, steps=steps,
                operations=((name, 1), *((("copy", len(slot.copies)),) if slot.copies and
                                         operation is not None else ())))


def _add_units(units: Sequence[UnitWork], more: Iterable[UnitWork]) -> list[UnitWork]:
    """Return units with the work of a chained operation: each kind there is once."""
    known = {unit.kind: unit for unit in more}
    added = [unit if own is None else replace(
        unit, macs=unit.macs + own.macs, ops=unit.ops + own.ops,
        compute_cycles=(unit.compute_cycles or 0) + (own.compute_cycles or 0))
        for unit in units for own in (known.pop(unit.kind, None),)]
    return [*known.values(), *added]


def _find(units: Sequence[UnitWork], kind: str) -> int:
    """Return the place of the first unit of a kind, of the first of all where there is none."""
    return next((place for place, unit in enumerate(units) if unit.kind == kind), 0)


def _list_units(operation: Operation, cycles: Cycles, single: bool = False) -> Iterator[UnitWork]:
    """Yield the units in dataflow order, which hand blocks on to each other."""
    height, width, depth = operation.output.shape
    if operation.multiplies:
        yield UnitWork(kind=DECODER, compute_cycles=cycles.decode, useful=1.0)
    if cycles.mac:
        width_bits = (operation.inputs[0].bits, 8)
        yield UnitWork(kind=MAC, macs=operation.macs, mac_bits=width_bits,
                       ops=0 if operation.macs else height * width * depth,
                       compute_cycles=cycles.mac, single=single)
    yield UnitWork(kind=OUTPUT, ops=height * width * depth, compute_cycles=cycles.output)


def _list_transfers(operation: Operation, memories: Memories) -> Iterator[tuple[Transfer, str]]:
    """Yield the transfers of an operation, each with the kind of unit it feeds."""
    npu = memories.npu
    first = OUTPUT if operation.kind in ("elementwise", "resize") else MAC
    for number, operand in enumerate(operation.inputs):
        if operand.in_memory:
            size, run = walk_input(operation, operand, npu)
            yield memories.transfer(_INPUT + number, "in", memories.pool(operand.region),
                                    size=size, run=run, limit="input_bytes_in_flight",
                                    operand="input"), first
    places = -(-operation.output.shape[0] // operation.block[0]) * -(
        -operation.output.shape[1] // operation.block[1])
    for channel, size, region, limit, unit in (
            (_WEIGHTS, operation.weight_bytes, operation.weight_region, "weight_bytes", DECODER),
            (_SCALES, operation.scale_bytes, operation.scale_region, "scale_bytes", OUTPUT)):
        if size:
            yield memories.transfer(channel, "in", memories.pool(region), size=size, run=0,
                                    limit=limit, repeats=places, ahead=unit == DECODER,
                                    operand="weights" if unit == DECODER else "scales"), unit
    if operation.output.in_memory:
        size, run = walk_output(operation)
        yield memories.transfer(_OUTPUT, "out", memories.pool(operation.output.region), size=size,
                                run=run, limit="", operand="output"), OUTPUT


def _is_waited_for(behind: Slot | None) -> bool:
    """Whether what comes next begins when all of an operation is done."""
    return behind is None or behind.operation is None or behind.operation.blockdep == 0
