"""What one transfer asks of its port and memory: bursts, bytes, lines of the cache before it.

A contiguous walk is one run of all its bytes, aligned to a burst; any other walk is a run of
`run_bytes` after another, each in beats of its own. A run becomes the longest bursts of 8, 4, 2
and 1 beats that fit. Alone, in NPU cycles, with r NPU cycles in one of the pool's clock:

    channel    beats + write gap x bursts; where the transfers of a task would have more bursts in
               flight on a port than it allows, at least bursts x r x latency / those allowed
    pool       r x max(beats, pool bytes / bytes per cycle), and r x latency for each access of
               its own where the pool is outside the chip: a run, or a line that does not follow
    fetch      max(channel, pool, and for reads, and writes that wait for answers, bursts x r x
               latency / outstanding)
    hand       unpacked bytes / rate of a channel, or of weights: between the channel and the units
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hwmodels.board.npu import BURST_BEATS, Interface, Npu, Pool
from hwmodels.frozen import entity, frozen
from hwmodels.schedule.machine import Flags, Floats, Ints, Machine, read_machine
from hwmodels.schedule.table import TransferColumns, read_transfers
from hwmodels.schedule.task import Task, Transfer

Bursts = tuple[int, int, int, int]


@frozen
class TransferRun:
    """The traffic of one transfer over a task.

    Parameters
    ----------
    pool, port
        What it is bound to.
    bursts
        By length, in the order of `BURST_BEATS`.
    pool_bytes
        Moved by the pool: whole beats, or whole lines where the cache misses.
    misses, hits
        Lines of the cache before the memory; both 0 where it is not in the way.
    channel_cycles, pool_cycles, fetch_cycles, hand_cycles, latency_cycles
        NPU cycles it takes alone, by the equations of the module.
    """

    transfer: Transfer
    pool: Pool
    port: Interface
    bursts: Bursts
    beats: int
    wanted_bytes: int
    pool_bytes: int
    misses: int
    hits: int
    channel_cycles: float
    pool_cycles: float
    fetch_cycles: float
    hand_cycles: float
    latency_cycles: float


@entity
class TrafficColumns:
    """The traffic of transfers of tasks, as a `TransferRun` has it of one.

    Parameters
    ----------
    bursts : ndarray of int, (4, transfers)
        By length.
    total, beats, wanted_bytes, pool_bytes, misses, hits : ndarray of int, (transfers,)
        Of bursts, and as of a `TransferRun`.
    channel_cycles, pool_cycles, fetch_cycles, hand_cycles, latency_cycles : ndarray of float
        NPU cycles it takes alone. Of many machines those of pool, fetch and latency are of shape
        (n, transfers).
    """

    bursts: Ints
    total: Ints
    beats: Ints
    wanted_bytes: Ints
    pool_bytes: Ints
    misses: Ints
    hits: Ints
    channel_cycles: Floats
    pool_cycles: Floats
    fetch_cycles: Floats
    hand_cycles: Floats
    latency_cycles: Floats


_SHOWN = ("beats", "wanted_bytes", "pool_bytes", "misses", "hits", "channel_cycles", "pool_cycles",
          "fetch_cycles", "hand_cycles", "latency_cycles")
"""Columns a `TransferRun` has one of each."""


def run_transfers(transfers: Iterable[Transfer], npu: Npu) -> tuple[TransferRun, ...]:
    """Return the traffic of the transfers of one task, the cache shared by all of them."""
    task, machine = Task(name="", transfers=tuple(transfers)), read_machine(npu)
    columns = count_traffic(read_transfers([task], machine), machine)
    return show_transfers(task.transfers, columns, range(len(task.transfers)), npu)


def show_transfers(transfers: Sequence[Transfer], columns: TrafficColumns, places: range,
                   npu: Npu) -> tuple[TransferRun, ...]:
    """Return the traffic of transfers, which stand at some places of columns."""
    values: dict[str, list[Any]] = {name: getattr(columns, name)[places.start:places.stop].tolist()
                                    for name in _SHOWN}
    return tuple(
        TransferRun(transfer=transfer, pool=npu.pool(transfer.pool),
                    port=npu.interface(transfer.port), bursts=bursts,
                    **{name: column[number] for name, column in values.items()})
        for number, (transfer, bursts) in enumerate(zip(
            transfers, map(tuple, columns.bursts[:, places].T.tolist()), strict=True)))


def count_traffic(transfers: TransferColumns, machine: Machine) -> TrafficColumns:
    """Return the traffic of the transfers of tasks.

    Parameters
    ----------
    transfers
        Of tasks that run one after another.

    Notes
    -----
    The cache starts every task without the lines it needs: weights differ from task to task.
    It writes back and allocates on writes (its driver cleans it by address). Where all cached
    bytes of the task fit, a line misses once; where only the windows its transfers walk do, once a
    pass. Else every visit of a line misses, as in a least-recently-used cache walked in a circle;
    runs that follow within a line are one visit. Runs whose stride is not known are lines apart.
    A contiguous walk shares its last line with what comes behind it and is charged its own bytes;
    a line written in parts is fetched before and written back after. Where transfers take turns on
    a `shared` memory outside the chip, one's accesses end the other's run: each pays the latency.
    """
    npu, pool, out = machine.npu, transfers.pool, transfers.out
    width, external = machine.width[transfers.port], machine.external[transfers.pool]
    run = np.where(transfers.contiguous, transfers.bytes, transfers.run_bytes)
    runs, rest = transfers.bytes // np.maximum(1, run), transfers.bytes % np.maximum(1, run)
    longest = machine.longest[pool]
    bursts = transfers.repeats * (runs * _split_runs(run, width, longest)
                                + _split_runs(rest, width, longest))
    beats, most = np.array(BURST_BEATS) @ bursts, longest * width
    total = np.where(machine.any_length[transfers.port], transfers.repeats * (
        runs * -(-run // most) + -(-rest // most)), bursts.sum(axis=0))
    runs = runs + (rest > 0)
    accesses = np.where(transfers.contiguous, 0, runs * transfers.repeats)
    pool_bytes, misses, hits, accesses = _look_up(
        transfers, machine, _Walk(run=run, runs=runs, moved=beats * width, accesses=accesses))
    ratio = machine.ratio[..., pool]
    latency = ratio * np.where(out, machine.write_latency[..., pool],
                               machine.read_latency[..., pool])
    accesses = np.where(_take_turns(transfers, machine),
                        np.maximum(accesses, np.where(misses != 0, misses, total)), accesses)
    channel = beats + np.where(out, machine.gap[transfers.port] * total, 0.0)
    taken = ratio * pool_bytes / np.minimum(width, machine.bytes_per_cycle[pool])
    own = transfers.outstanding
    taken = np.where(external & (own == 0), taken + latency * accesses, taken)
    first = np.where(transfers.ahead, 0, own)  # The latency of these is that of the first data.
    in_flight = np.where(out & (own == 0), 0, np.maximum(0, total - hits - first))
    together = transfers.port_outstanding
    lane = 2 * (transfers.task * len(machine.width) + transfers.port) + out
    crowded = np.bincount(lane, np.minimum(own, total), minlength=1)[lane] > together
    channel = np.maximum(channel, np.where(
        (together != 0) & crowded, in_flight * latency / np.maximum(1, together), 0.0))
    wanted = transfers.bytes * transfers.repeats
    return TrafficColumns(
        bursts=bursts, total=total, beats=beats, wanted_bytes=wanted, pool_bytes=pool_bytes,
        misses=misses, hits=hits, channel_cycles=channel, pool_cycles=taken,
        fetch_cycles=np.maximum(np.maximum(channel, taken),
                                in_flight * latency / np.where(own, own, npu.engine_outstanding)),
        hand_cycles=transfers.unpacked_bytes * transfers.repeats / _hand_rates(transfers, npu),
        latency_cycles=np.where(transfers.ahead, 0.0, latency))


def _split_runs(run_bytes: Ints, width: Ints, longest: Ints) -> Ints:
    """Bursts of runs by length: the longest that fit."""
    left = -(-run_bytes // width)
    counts = np.zeros((4, len(run_bytes)), np.int64)
    for position in (3, 2, 1, 0):
        length = BURST_BEATS[position]
        counts[position] = np.where(length <= longest, left // length, 0)
        left = left - counts[position] * length
    return counts


def _hand_rates(transfers: TransferColumns, npu: Npu) -> Floats:
    """Bytes each transfer passes between memory and units in a cycle."""
    rates = np.full(len(transfers.bytes), float(npu.engine_bytes_per_cycle))
    streamed = transfers.weights & (npu.staging is None)
    if npu.strided_read_bytes_per_cycle:
        rates[~transfers.out & transfers.strided] = npu.strided_read_bytes_per_cycle
    rates[streamed] = min(npu.engine_bytes_per_cycle, npu.weight_bytes_per_cycle)
    return rates


def _take_turns(transfers: TransferColumns, machine: Machine) -> Flags:
    """Whether another transfer of the task walks the same shared memory outside the chip."""
    apart = machine.external & machine.shared
    if not apart.any():
        return np.zeros(len(transfers.pool), np.bool_)
    place = transfers.task * len(apart) + transfers.pool
    users = np.bincount(place, minlength=1)
    taken: Flags = apart[transfers.pool] & (users[place] > 1)
    return taken


@entity
class _Walk:
    """How transfers walk: bytes of a run, runs of a pass, bytes of all beats, accesses."""

    run: Ints
    runs: Ints
    moved: Ints
    accesses: Ints


def _look_up(transfers: TransferColumns, machine: Machine,
             walk: _Walk) -> tuple[Ints, Ints, Ints, Ints]:
    """Bytes the pools move, lines missed and hit, and the misses that do not follow another."""
    cache, held = machine.npu.cache, machine.cached[transfers.pool]
    none = np.zeros_like(transfers.bytes)
    if cache is None or not held.any():
        return walk.moved, none, none, walk.accesses
    line = cache.line_bytes
    requests = walk.runs * -(-walk.run // line)
    near = ~transfers.contiguous & (transfers.stride_bytes > 0) & (transfers.stride_bytes <= line)
    visits = np.where(near, -(-walk.runs * transfers.stride_bytes // line), requests)
    once = np.where(transfers.strided, visits, np.minimum(visits, -(-transfers.bytes // line)))
    whole = _sum_tasks(transfers, np.where(held, transfers.bytes, 0))
    window = np.where(transfers.contiguous, line, np.where(
        transfers.window_bytes != 0, transfers.window_bytes, transfers.bytes))
    windows = _sum_tasks(transfers, np.where(held, window, 0))
    misses = np.where(whole <= cache.size_bytes, once, np.where(
        windows <= cache.size_bytes, once * transfers.repeats, visits * transfers.repeats))
    moved = misses * line
    moved = np.where(transfers.contiguous, np.minimum(moved, walk.moved),
                     np.where(transfers.out, 2 * moved, moved))
    accesses = np.where(transfers.contiguous | near, 0, misses)
    accesses = np.where(transfers.out & ~transfers.contiguous, 2 * accesses, accesses)
    return (np.where(held, moved, walk.moved), np.where(held, misses, 0),
            np.where(held, requests * transfers.repeats - misses, 0),
            np.where(held, accesses, walk.accesses))


def _sum_tasks(transfers: TransferColumns, values: Ints) -> Ints:
    """Sum over the transfers of a task, for each of them."""
    sums = np.zeros(len(transfers.first) - 1, np.int64)
    np.add.at(sums, transfers.task, values)
    found: Ints = sums[transfers.task]
    return found
