"""Tasks as columns: what their transfers and units are asked, and how those are linked."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from hwmodels.errors import KernelError
from hwmodels.frozen import entity
from hwmodels.schedule.machine import Flags, Floats, Ints, Machine
from hwmodels.schedule.task import PATTERNS, Link, Task
from hwmodels.schedule.units import estimate_unit_cycles, multiplies, name_bits

_NUMBERS = ("bytes", "run_bytes", "stride_bytes", "window_bytes", "repeats", "unpacked_bytes",
            "outstanding", "port_outstanding", "ahead")
_read_numbers = attrgetter(*_NUMBERS)
_read_names = attrgetter("direction", "pool", "port", "pattern", "operand")


@entity
class TransferColumns:
    """TransferRun transfers of tasks, those of one behind those of the other.

    Parameters
    ----------
    first : ndarray of int, (tasks + 1,)
        First transfer of each task, and how many there are.
    task, place : ndarray of int, (transfers,)
        Whose it is, and which of its transfers.
    bytes, run_bytes, stride_bytes, window_bytes, repeats, unpacked_bytes, outstanding
    port_outstanding, ahead
        As of a `Transfer`, ndarray of int, (transfers,).
    out, contiguous, strided, weights : ndarray of bool, (transfers,)
        Direction, pattern and operand.
    pool, port : ndarray of int, (transfers,)
        Numbers of a `Machine`.
    """

    first: Ints
    task: Ints
    place: Ints
    bytes: Ints
    run_bytes: Ints
    stride_bytes: Ints
    window_bytes: Ints
    repeats: Ints
    unpacked_bytes: Ints
    outstanding: Ints
    port_outstanding: Ints
    ahead: Ints
    out: Flags
    contiguous: Flags
    strided: Flags
    weights: Flags
    pool: Ints
    port: Ints
    operands: tuple[str, ...]


@entity
class UnitColumns:
    """Work of units of tasks, that of one behind that of the other.

    Parameters
    ----------
    first, task, place
        As of `TransferColumns`.
    kind : ndarray of int, (works,)
        Number of a `Machine`.
    ops, macs, cycles : ndarray of int, (works,)
        As of a `UnitWork`; cycles with ideal memory.
    multiplies : ndarray of bool, (works,)
        Whether it is multiply-accumulates.
    useful : ndarray of float, (works,)
        Share of its lanes that compute; 1 where that is not known.
    widths : tuple of (int, int)
        Of activations and weights.
    """

    first: Ints
    task: Ints
    place: Ints
    kind: Ints
    ops: Ints
    macs: Ints
    cycles: Ints
    multiplies: Flags
    useful: Floats
    widths: tuple[tuple[int, int], ...]


def count_first(counts: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Return where the parts of each owner begin, the owner of each part, and its place there."""
    each = np.array([*counts], np.int64)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
    owner = np.repeat(np.arange(len(each)), each)
    return first, owner, np.arange(first[-1]) - first[owner]


def read_transfers(tasks: Sequence[Task], machine: Machine) -> TransferColumns:
    """Return the transfers of tasks as columns.

    Raises
    ------
    BoardError
        For a port or memory the machine has not.
    """
    transfers = [transfer for task in tasks for transfer in task.transfers]
    numbers = dict(zip(_NUMBERS, np.array(
        [_read_numbers(one) for one in transfers], np.int64).reshape(-1, 9).T, strict=True))
    unpacked = numbers.pop("unpacked_bytes")
    direction, pool, port, patterns, operands = list(
        zip(*map(_read_names, transfers), strict=True)) or [()] * 5
    first, task, place = count_first([len(task.transfers) for task in tasks])
    pattern = np.array([PATTERNS.index(one) for one in patterns], np.int64)
    return TransferColumns(
        first=first, task=task, place=place, **numbers,
        unpacked_bytes=np.where(unpacked != 0, unpacked, numbers["bytes"]),
        out=np.array([one == "out" for one in direction], np.bool_),
        contiguous=pattern == 0, strided=pattern == 1,
        weights=np.array([one == "weights" for one in operands], np.bool_),
        pool=np.array([machine.pool(one) for one in pool], np.int64),
        port=np.array([machine.port(one) for one in port], np.int64), operands=operands)


def read_units(tasks: Sequence[Task], machine: Machine) -> UnitColumns:
    """Return the units of tasks as columns.

    Raises
    ------
    BoardError, KernelError
        For units the machine has not, or without a rate for the operands' widths.
    """
    works = [work for task in tasks for work in task.units]
    first, task, place = count_first([len(task.units) for task in tasks])
    npu = machine.npu
    able = np.array([multiplies(work, npu) for work in works], np.bool_)
    cycles = np.array([estimate_unit_cycles(work, npu) for work in works], np.int64)
    macs = np.array([work.macs for work in works], np.int64)
    counts = np.array([work.count for work in works], np.int64)
    rates = np.array([dict(npu.unit(work.kind).macs_per_cycle).get(
        name_bits(work.mac_bits), 0.0) if one else 0.0
        for work, one in zip(works, able.tolist(), strict=True)], np.float64)
    peak = rates * counts * cycles
    known = (macs != 0) & (peak != 0)
    useful = np.where(known, np.minimum(1.0, macs / np.where(known, peak, 1.0)), 1.0)
    for number, work in enumerate(works):
        if work.useful is not None:
            useful[number] = work.useful
    return UnitColumns(
        first=first, task=task, place=place, macs=macs, cycles=cycles, multiplies=able,
        kind=np.array([machine.unit(work.kind) for work in works], np.int64),
        ops=np.array([work.ops for work in works], np.int64), useful=useful,
        widths=tuple(work.mac_bits for work in works))


def list_links(task: Task) -> tuple[Link, ...]:
    """Return the dataflow of a task, the default one where it states none."""
    if task.links:
        return task.links
    joined = [one for one in task.transfers if one.overlaps == "units"]
    ins, outs = ([f"E{one.channel}" for one in joined if one.direction == way]
                 for way in ("in", "out"))
    if not task.units:
        return tuple(Link(a, b) for a, b in zip(ins, outs, strict=False))
    units = [f"U{position}" for position in range(len(task.units))]
    return (*(Link(name, units[0]) for name in ins),
            *(Link(a, b) for a, b in itertools.pairwise(units)),
            *(Link(units[-1], name) for name in outs))


def name_nodes(task: Task) -> dict[str, int]:
    """Return the nodes of a task: "E4" the transfer of channel 4, "U0" the first unit work."""
    return _number_nodes(tuple([one.channel for one in task.transfers]), len(task.units))


@functools.lru_cache(maxsize=256)
def _number_nodes(channels: tuple[int, ...], units: int) -> dict[str, int]:
    names = [*(f"E{channel}" for channel in channels), *(f"U{place}" for place in range(units))]
    return {name: number for number, name in enumerate(names)}


def read_links(tasks: Sequence[Task]) -> tuple[Ints, Ints]:
    """Return where the links of each task begin, and their source and sink within the task.

    Raises
    ------
    KernelError
        When the dataflow names a node that does not exist, or runs in a circle.
    """
    pairs: list[tuple[int, int]] = []
    counts = []
    for task in tasks:
        where = name_nodes(task)
        try:
            own = [(where[link.source], where[link.sink]) for link in list_links(task)]
        except KeyError:
            raise _name_unknown(task, where) from None
        if not _runs_forward(task, own):
            _refuse_circles(task, own)
        counts.append(len(own))
        pairs += own
    return count_first(counts)[0], np.array(pairs, np.int64).reshape(-1, 2)


def _name_unknown(task: Task, where: dict[str, int]) -> KernelError:
    bad = next(link for link in list_links(task)
               if link.source not in where or link.sink not in where)
    return KernelError(f"task {task.name}: link {bad.source} to {bad.sink} names a node that is "
                       "not there; accepted: " + ", ".join(where))


def _runs_forward(task: Task, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether every link goes from transfers in to units, to later units, to transfers out."""
    count, works = len(task.transfers), len(task.units)
    order = [-1 if transfer.direction == "in" else count + works for transfer in task.transfers]
    order += range(count, count + works)
    return all(order[source] < order[sink] for source, sink in pairs)


def _refuse_circles(task: Task, pairs: Sequence[tuple[int, int]]) -> None:
    left = list(pairs)
    while left:
        fed = {sink for _, sink in left}
        kept = [pair for pair in left if pair[0] in fed]
        if len(kept) == len(left):
            raise KernelError(f"task {task.name}: the dataflow runs in a circle")
        left = kept
