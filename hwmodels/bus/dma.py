"""DMA: transfers as streams of bursts, and tile loads hidden behind compute.

A channel with one port reads a burst into its FIFO and writes it out; one with two ports (or an
AXI port's read and write channels) reads on while the FIFO has room. A peripheral paces its
bursts by its own clock.

Double buffering over n tiles, in cycles: the core programs the channel, then at the start of each
tile acknowledges it and starts the load of the next one:

    total = setup + start + load_0 + sum_{i<n-1} (start + max(compute_i, load_{i+1}))
            + start + compute_{n-1}

which is exact for a channel that loads one tile at a time, because the load of tile i + 1 and the
computation of tile i start together: when both tile i is loaded and tile i - 1 computed. With one
buffer nothing overlaps and max is a sum.

References: AN4031 (ports, FIFO and bursts of STM32 stream DMA).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.bus.bursts import merge_streams, separate_masters
from hwmodels.bus.events import FINISH, ISSUE, BusRun, run_bursts
from hwmodels.bus.interconnect import Interconnect, Stream
from hwmodels.errors import KernelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What one channel moves at a time.

    Parameters
    ----------
    source, target : str
        Slaves; target "" where the data leaves the bus (an NPU's or a TCM's own port).
    beat_bytes : int
        Of the bus.
    burst_beats : int
        Beats of a burst; the last of a transfer may be shorter.
    """

    source: str
    target: str = ""
    beat_bytes: int
    burst_beats: int

    def __post_init__(self) -> None:
        for key in ("beat_bytes", "burst_beats"):
            if getattr(self, key) < 1:
                raise KernelError(f"dma: {key} {getattr(self, key)}; accepted: 1 or more")

    def split_bytes(self, size_bytes: int) -> np.ndarray:
        """Return the beats of each burst of a transfer."""
        if size_bytes < 1:
            raise KernelError(f"dma: a transfer of {size_bytes} bytes; accepted: 1 or more")
        beats = -(-size_bytes // self.beat_bytes)
        split = np.full(-(-beats // self.burst_beats), self.burst_beats, np.int64)
        split[-1] = beats - (len(split) - 1) * self.burst_beats
        return split


def copy_stream(master: str, transfer: Transfer, size_bytes: int,
                setup_cycles: int = 0) -> Stream:
    """Return a transfer by a channel with one port: read a burst, write it, and so on.

    Parameters
    ----------
    master : str
        The channel.
    transfer : Transfer
        From where to where.
    size_bytes : int
        To move.
    setup_cycles : int
        Cycles of the channel's clock before the first burst: fetching its descriptor.

    Returns
    -------
    Stream
        Two bursts per burst of the transfer, one where it has no target.
    """
    beats = transfer.split_bytes(size_bytes)
    slave, write = _sides(transfer, len(beats))
    think = np.zeros(len(slave), np.int64)
    think[0] = setup_cycles
    return Stream(master=master, slave=slave, write=write, think_cycles=think,
                  beats=np.repeat(beats, len(slave) // len(beats)))


def copy_streams(reader: str, writer: str, transfer: Transfer, size_bytes: int, *,
                 fifo_bursts: int, setup_cycles: int = 0) -> tuple[Stream, Stream]:
    """Return a transfer by a channel with a port for reads and one for writes.

    Parameters
    ----------
    reader, writer : str
        The two ports as masters.
    transfer : Transfer
        From where to where.
    size_bytes : int
        To move.
    fifo_bursts : int
        Bursts the FIFO holds: burst i is read once burst i - fifo_bursts is written.
    setup_cycles : int
        Cycles of the reader's clock before the first burst.

    Returns
    -------
    tuple of Stream
        Of the reader and of the writer.
    """
    if fifo_bursts < 1 or not transfer.target:
        raise KernelError(f"dma: a FIFO of {fifo_bursts} bursts towards {transfer.target!r}; "
                          "accepted: 1 or more, and a target")
    beats = transfer.split_bytes(size_bytes)
    number = np.arange(len(beats))
    read = Stream(master=reader, slave=transfer.source, beats=beats,
                  think_cycles=np.where(number == 0, setup_cycles, 0),
                  after=np.maximum(number - fifo_bursts, -1), after_master=writer)
    return read, Stream(master=writer, slave=transfer.target, beats=beats, write=True,
                        after=number, after_master=reader)


def paced_stream(master: str, slave: str, *, count: int, period_cycles: int, beats: int = 1,
                 write: bool = True) -> Stream:
    """Return a channel served by a peripheral: one burst a period, the first after one.

    Parameters
    ----------
    master : str
        The channel, of pacing "clock".
    slave : str
        Memory side; the peripheral's own register is on the channel's other port.
    count : int
        Bursts.
    period_cycles : int
        Cycles of the channel's clock between two requests of the peripheral.
    beats : int
        Of each burst.
    write : bool
        Whether the memory is written.

    Returns
    -------
    Stream
        Due at whole periods; a burst that is late does not move the next.
    """
    return Stream(master=master, slave=slave, beats=beats, write=write,
                  think_cycles=period_cycles * np.arange(1, count + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A tile loop in closed form; cycles of one clock.

    Parameters
    ----------
    total_cycles : int
        From programming the channel to the last result.
    setup_cycles : int
        Programming, acknowledging and starting.
    compute_cycles, load_cycles : int
        Sums over the tiles.
    """

    total_cycles: int
    setup_cycles: int
    compute_cycles: int
    load_cycles: int

    @property
    def exposed_cycles(self) -> int:
        """Loading that nothing hid."""
        return self.total_cycles - self.setup_cycles - self.compute_cycles

    @property
    def utilisation(self) -> float:
        """Share of the time the channel loads."""
        return self.load_cycles / self.total_cycles if self.total_cycles else 0.0


def overlap_tiles(load_cycles: Sequence[int], compute_cycles: Sequence[int], *,
                  setup_cycles: int = 0, start_cycles: int = 0, buffers: int = 2) -> Overlap:
    """Return the time of a loop over tiles.

    Parameters
    ----------
    load_cycles, compute_cycles : sequence of int, (tiles,)
        Of each tile, on its own.
    setup_cycles : int
        Programming the channel, once.
    start_cycles : int
        Acknowledging a tile and starting the next load, per tile and once before.
    buffers : int
        2: double buffering; 1: one after the other.

    Returns
    -------
    Overlap
        By the equation of the module.

    Raises
    ------
    KernelError
        When the two do not have one entry per tile, or for other numbers of buffers.
    """
    tiles = len(load_cycles)
    if not tiles or tiles != len(compute_cycles) or buffers not in (1, 2):
        raise KernelError(f"dma: {tiles} loads and {len(compute_cycles)} computations in {buffers} "
                          "buffers; accepted: one of each per tile, 1 or 2 buffers")
    overhead = setup_cycles + (tiles + 1) * start_cycles
    if buffers == 1:
        body = sum(load_cycles) + sum(compute_cycles)
    else:
        body = (load_cycles[0] + compute_cycles[-1]
                + sum(map(max, compute_cycles[:-1], load_cycles[1:])))
    return Overlap(total_cycles=overhead + body, setup_cycles=overhead,
                   compute_cycles=sum(compute_cycles), load_cycles=sum(load_cycles))


@dataclass(frozen=True, slots=True, kw_only=True)
class TileLoop:
    """A double-buffered loop over tiles on a bus.

    Parameters
    ----------
    core, channel : str
        Masters: who computes and who loads; the core's pacing is "finish".
    registers : str
        Slave through which the core starts the channel, one beat a time.
    transfer : Transfer
        Of a tile.
    tile_bytes : tuple of int, (tiles,)
        To load for each.
    compute_cycles : tuple of int, (tiles,)
        Of the core's clock, its own bursts apart.
    setup_cycles : int
        Of the core's clock: programming the channel.
    accesses : int
        Bursts the core itself makes per tile, evenly spread over its computation.
    accessed : str
        Slave they go to.
    access_beats : int
        Beats of each.
    """

    core: str
    channel: str
    registers: str
    transfer: Transfer
    tile_bytes: tuple[int, ...]
    compute_cycles: tuple[int, ...]
    setup_cycles: int = 0
    accesses: int = 0
    accessed: str = ""
    access_beats: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TileRun:
    """Where the time of a tile loop went; cycles of the core's clock, and they sum to the total.

    Parameters
    ----------
    setup_cycles : int
        Programming, acknowledging and starting the channel.
    compute_cycles, access_cycles : int
        Computing, and the core's own bursts without others in the way.
    dma_wait_cycles : int
        Loads not hidden, without others in the way.
    contention_cycles : int
        What core and channel lost to each other.
    load_cycles : tuple of int, (tiles,)
        Of each tile alone, from its start to its last beat.
    busy_cycles : int
        With a burst of the channel on its way.
    run : BusRun
        All bursts, for a picture.
    """

    setup_cycles: int
    compute_cycles: int
    access_cycles: int
    dma_wait_cycles: int
    contention_cycles: int
    load_cycles: tuple[int, ...]
    busy_cycles: int
    run: BusRun

    @property
    def total_cycles(self) -> int:
        """From programming the channel to the last result."""
        return (self.setup_cycles + self.compute_cycles + self.access_cycles
                + self.dma_wait_cycles + self.contention_cycles)

    @property
    def utilisation(self) -> float:
        """Share of the time the channel has a burst on its way."""
        return self.busy_cycles / self.total_cycles if self.total_cycles else 0.0


def simulate_tiles(interconnect: Interconnect, loop: TileLoop) -> TileRun:
    """Run a double-buffered loop over tiles, burst by burst.

    Parameters
    ----------
    interconnect : Interconnect
        With the loop's masters and slaves.
    loop : TileLoop
        What is loaded and computed.

    Returns
    -------
    TileRun
        Where the time went.

    Raises
    ------
    KernelError
        When the loop does not fit the interconnect or has no tile.
    """
    tiles = len(loop.tile_bytes)
    if not tiles or tiles != len(loop.compute_cycles):
        raise KernelError(f"dma: {tiles} tiles and {len(loop.compute_cycles)} computations; "
                          "accepted: one computation per tile")
    for master in interconnect.masters:
        if master.name == loop.core and (master.outstanding > 1 or master.pacing != "finish"):
            raise KernelError(f"dma: core {loop.core!r} with {master.outstanding} outstanding and "
                              f"pacing {master.pacing!r}; accepted: 1 and 'finish', it waits")
    last = np.cumsum([_bursts_of(loop.transfer, size) for size in loop.tile_bytes]) - 1
    core, marks = _core_stream(loop, last)
    bursts = merge_streams(interconnect, [core, _channel_stream(loop, last, marks)])
    run, alone = run_bursts(bursts), run_bursts(separate_masters(bursts))
    part, period = bursts.range_of(loop.core), run.period(loop.core)
    total, unhindered = (int(result.times[part, ISSUE][-1]) // period for result in (run, alone))
    taken = (alone.times[part, FINISH] - alone.times[part, ISSUE]) // period
    started = alone.finish_cycles(loop.core)[marks[:-1]]
    loaded = alone.times[bursts.range_of(loop.channel), FINISH][last] // period
    channel = run.times[bursts.range_of(loop.channel)]
    setup = loop.setup_cycles + int(taken[marks[:-1]].sum())
    compute, access = sum(loop.compute_cycles), int(np.delete(taken, marks).sum())
    return TileRun(
        setup_cycles=setup, compute_cycles=compute, access_cycles=access,
        dma_wait_cycles=unhindered - setup - compute - access,
        contention_cycles=total - unhindered,
        load_cycles=tuple((loaded - started[:-1]).tolist()),
        busy_cycles=int((channel[:, FINISH] - channel[:, ISSUE]).sum()) // period, run=run)


def _sides(transfer: Transfer, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slave and direction of the bursts a port makes for `count` bursts."""
    names = [transfer.source] + [transfer.target] * bool(transfer.target)
    return np.tile(names, count), np.tile([False, True][:len(names)], count)


def _bursts_of(transfer: Transfer, size_bytes: int) -> int:
    return len(transfer.split_bytes(size_bytes)) * (2 if transfer.target else 1)


def _core_stream(loop: TileLoop, last: np.ndarray) -> tuple[Stream, np.ndarray]:
    """Return the core's bursts, and which of them write the channel's registers.

    One starts the first load; one at the start of each tile waits for its load and starts the
    next; one more, at the end, is issued when all is computed.
    """
    per_tile = 1 + loop.accesses
    marks = np.concatenate(([0], 1 + per_tile * np.arange(len(last)), [1 + per_tile * len(last)]))
    count = int(marks[-1]) + 1
    compute = np.array(loop.compute_cycles)
    think = np.zeros(count, np.int64)
    think[1:-1] = np.repeat(compute // per_tile, per_tile)
    think[marks[2:]] = compute - (per_tile - 1) * (compute // per_tile)
    think[marks[:2]] = loop.setup_cycles, 0
    slave = np.full(count, loop.accessed or loop.registers, dtype=object)
    slave[marks] = loop.registers
    beats, after = np.full(count, loop.access_beats), np.full(count, -1)
    beats[marks], after[marks[1:-1]] = 1, last
    return Stream(master=loop.core, slave=slave.astype(str), beats=beats, think_cycles=think,
                  write=np.isin(np.arange(count), marks), after=after,
                  after_master=loop.channel), marks


def _channel_stream(loop: TileLoop, last: np.ndarray, marks: np.ndarray) -> Stream:
    """Return the channel's bursts: the first of each tile waits until the core has started it."""
    beats = np.concatenate([loop.transfer.split_bytes(size) for size in loop.tile_bytes])
    slave, write = _sides(loop.transfer, len(beats))
    after = np.full(len(slave), -1)
    after[np.concatenate(([0], last[:-1] + 1))] = marks[:-2]
    return Stream(master=loop.channel, slave=slave, write=write, after=after,
                  after_master=loop.core, beats=np.repeat(beats, len(slave) // len(beats)))
