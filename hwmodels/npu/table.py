"""Epochs as columns: what their engines and units are asked, and how those are linked."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from hwmodels.errors import KernelError
from hwmodels.npu.epoch import PATTERNS, Epoch, Link, StreamEngine
from hwmodels.npu.machine import Flags, Floats, Ints, Machine
from hwmodels.npu.units import estimate_unit_cycles, multiplies

_NUMBERS = attrgetter("index", "bytes", "run_bytes", "stride_bytes", "window_bytes", "repeats")
_NAMES = attrgetter("direction", "pool", "interface", "pattern", "operand")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineColumns:
    """Stream engines of epochs, those of one behind those of the other.

    Parameters
    ----------
    first : ndarray of int, (epochs + 1,)
        First engine of each epoch, and how many there are.
    epoch, place : ndarray of int, (engines,)
        Whose it is, and which of its engines.
    index, bytes, run_bytes, stride_bytes, window_bytes, repeats : ndarray of int, (engines,)
        As of a `StreamEngine`.
    out, contiguous, strided, weights : ndarray of bool, (engines,)
        Direction, pattern and operand.
    pool, interface : ndarray of int, (engines,)
        Numbers of a `Machine`.
    operands : tuple of str
        Of each engine.
    """

    first: Ints
    epoch: Ints
    place: Ints
    index: Ints
    bytes: Ints
    run_bytes: Ints
    stride_bytes: Ints
    window_bytes: Ints
    repeats: Ints
    out: Flags
    contiguous: Flags
    strided: Flags
    weights: Flags
    pool: Ints
    interface: Ints
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitColumns:
    """Work of units of epochs, that of one behind that of the other.

    Parameters
    ----------
    first, epoch, place
        As of `EngineColumns`.
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
    epoch: Ints
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


def read_engines(groups: Sequence[Sequence[StreamEngine]], machine: Machine) -> EngineColumns:
    """Return the engines of epochs as columns.

    Parameters
    ----------
    groups : sequence of sequence of StreamEngine
        Those of each epoch.
    machine : Machine
        With the interfaces and pools they name.

    Raises
    ------
    BoardError
        For an interface or pool the machine has not.
    """
    engines = [engine for group in groups for engine in group]
    numbers = np.array([_NUMBERS(engine) for engine in engines], np.int64).reshape(-1, 6).T
    names = list(zip(*(_NAMES(engine) for engine in engines), strict=True)) or [()] * 5
    first, epoch, place = count_first([len(group) for group in groups])
    pattern = np.array([PATTERNS.index(one) for one in names[3]], np.int64)
    return EngineColumns(
        first=first, epoch=epoch, place=place, index=numbers[0], bytes=numbers[1],
        run_bytes=numbers[2], stride_bytes=numbers[3], window_bytes=numbers[4],
        repeats=numbers[5], out=np.array([one == "out" for one in names[0]], np.bool_),
        contiguous=pattern == 0, strided=pattern == 1,
        weights=np.array([one == "weights" for one in names[4]], np.bool_),
        pool=np.array([machine.pool(one) for one in names[1]], np.int64),
        interface=np.array([machine.interface(one) for one in names[2]], np.int64),
        operands=names[4])


def read_units(epochs: Sequence[Epoch], machine: Machine) -> UnitColumns:
    """Return the units of epochs as columns.

    Raises
    ------
    BoardError, KernelError
        For units the machine has not, or without a rate for the operands' widths.
    """
    works = [work for epoch in epochs for work in epoch.units]
    first, epoch, place = count_first([len(epoch.units) for epoch in epochs])
    npu = machine.npu
    able = np.array([multiplies(work, npu) for work in works], np.bool_)
    cycles = np.array([estimate_unit_cycles(work, npu) for work in works], np.int64)
    macs = np.array([work.macs for work in works], np.int64)
    counts = np.array([work.count for work in works], np.int64)
    rates = np.array([dict(npu.unit(work.kind).macs_per_cycle).get(
        f"{work.mac_bits[0]}x{work.mac_bits[1]}", 0.0) if one else 0.0
        for work, one in zip(works, able.tolist(), strict=True)], np.float64)
    peak = rates * counts * cycles
    known = (macs != 0) & (peak != 0)
    useful = np.where(known, np.minimum(1.0, macs / np.where(known, peak, 1.0)), 1.0)
    return UnitColumns(
        first=first, epoch=epoch, place=place, macs=macs, cycles=cycles, multiplies=able,
        kind=np.array([machine.unit(work.kind) for work in works], np.int64),
        ops=np.array([work.ops for work in works], np.int64), useful=useful,
        widths=tuple(work.mac_bits for work in works))


def list_links(epoch: Epoch) -> tuple[Link, ...]:
    """Return the dataflow of an epoch, the default one where it states none."""
    if epoch.links:
        return epoch.links
    ins = [f"E{engine.index}" for engine in epoch.engines if engine.direction == "in"]
    outs = [f"E{engine.index}" for engine in epoch.engines if engine.direction == "out"]
    if not epoch.units:
        return tuple(Link(a, b) for a, b in zip(ins, outs, strict=False))
    units = [f"U{position}" for position in range(len(epoch.units))]
    return (*(Link(name, units[0]) for name in ins),
            *(Link(a, b) for a, b in itertools.pairwise(units)),
            *(Link(units[-1], name) for name in outs))


def name_nodes(epoch: Epoch) -> tuple[str, ...]:
    """Return the nodes of an epoch: "E4" stream engine 4, "U0" the first unit work."""
    return tuple(_number_nodes(tuple(engine.index for engine in epoch.engines), len(epoch.units)))


@functools.lru_cache(maxsize=256)
def _number_nodes(engines: tuple[int, ...], units: int) -> dict[str, int]:
    """Return the nodes of an epoch by name, engines first."""
    names = [*(f"E{index}" for index in engines), *(f"U{place}" for place in range(units))]
    return {name: number for number, name in enumerate(names)}


def read_links(epochs: Sequence[Epoch]) -> tuple[Ints, Ints]:
    """Return where the links of each epoch begin, and their source and sink within the epoch.

    Raises
    ------
    KernelError
        When the dataflow names a node that does not exist, or runs in a circle.
    """
    pairs: list[tuple[int, int]] = []
    counts = []
    for epoch in epochs:
        where = _number_nodes(tuple([engine.index for engine in epoch.engines]), len(epoch.units))
        try:
            own = [(where[link.source], where[link.sink]) for link in list_links(epoch)]
        except KeyError:
            raise _name_stranger(epoch, where) from None
        if not _runs_forward(epoch, own):
            _refuse_circles(epoch, own)
        counts.append(len(own))
        pairs += own
    return count_first(counts)[0], np.array(pairs, np.int64).reshape(-1, 2)


def _name_stranger(epoch: Epoch, where: dict[str, int]) -> KernelError:
    bad = next(link for link in list_links(epoch)
               if link.source not in where or link.sink not in where)
    return KernelError(f"epoch {epoch.name}: link {bad.source} to {bad.sink} names a node that is "
                       "not there; accepted: " + ", ".join(where))


def _runs_forward(epoch: Epoch, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether every link goes from engines in to units, to later units, to engines out."""
    count, works = len(epoch.engines), len(epoch.units)
    order = [-1 if engine.direction == "in" else count + works for engine in epoch.engines]
    order += range(count, count + works)
    return all(order[source] < order[sink] for source, sink in pairs)


def _refuse_circles(epoch: Epoch, pairs: Sequence[tuple[int, int]]) -> None:
    left = list(pairs)
    while left:
        fed = {sink for _, sink in left}
        kept = [pair for pair in left if pair[0] in fed]
        if len(kept) == len(left):
            raise KernelError(f"epoch {epoch.name}: the dataflow runs in a circle")
        left = kept
