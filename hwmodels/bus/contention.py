"""Another master on the bus: what the core's fills, write-backs and direct accesses wait for it.

The bursts of a kernel are taken in the order its accesses make them, with the core's own cycles
spread evenly between the accesses, and run on the bus alone; what each would wait for another
master is the mean over when that one's bursts fall (`hwmodels.bus.waiting`). A master
on another memory, or another bank, costs nothing. Beyond `MOST_BURSTS` of a kernel the rest is
taken to wait like the first. Reads wait exposed; writes wait in a buffer, which is occurred only.

More load never costs less. Waiting saturates: arbiters take turns, so a burst of the core waits
for at most one of each other master, however much those ask for. A picture of the bus shows one
run with the others' bursts at even distances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from hwmodels.board.facts import Board, Cache
from hwmodels.board.memory import banks_of
from hwmodels.bus.bursts import HELD, merge_streams
from hwmodels.bus.events import BusRun, build_interconnect, make_slave, simulate_bus
from hwmodels.bus.interconnect import Interconnect, Master, Stream
from hwmodels.bus.waiting import Demand, expect_waits
from hwmodels.cache import AccessCounts
from hwmodels.cache.running import number_owners
from hwmodels.cache.set_associative import CacheState, new_state
from hwmodels.cache.touches import BYPASS, HIT, Touches, visit_touches
from hwmodels.counts import CountLine
from hwmodels.errors import BoardError
from hwmodels.frozen import entity, frozen
from hwmodels.kernel import Kernel
from hwmodels.paths.ways import data_cache

MOST_BURSTS = 1 << 17
"""Bursts of a kernel that are run; the rest is taken to wait like them."""

WORD = Cache(name="none", size_bytes=4, line_bytes=4, ways=1, enabled=False)
"""What accesses that no cache takes are cut into: words."""

Owner = tuple[str, str]
"""(memory, role)."""


@frozen
class Load:
    """What another master does to a memory all the time.

    Parameters
    ----------
    master
        Of the board: a DMA controller.
    memory
        It reads or writes; on a bus.
    bytes_per_second
        How fast.
    write
        Whether it writes, which takes its memory as long as reading.
    bank
        Bank it stays in; None: it walks through the whole memory.
    """

    master: str
    memory: str
    bytes_per_second: float
    write: bool = False
    burst_beats: int = 4
    bank: int | None = None


@entity
class CoreBursts:
    """Bursts of a kernel in order; arrays of int64, (bursts,).

    Parameters
    ----------
    owners : tuple of (str, str)
        Memory and role `owner` counts in.
    access
        Number of the access that makes it.
    address
        First byte.
    """

    owners: tuple[Owner, ...]
    access: np.ndarray
    address: np.ndarray
    size_bytes: np.ndarray
    owner: np.ndarray
    write: np.ndarray


def check_loads(board: Board, loads: Sequence[Load]) -> None:
    """Refuse loads the board cannot have.

    Raises
    ------
    BoardError
        Naming the path and what would be accepted.
    """
    for load in loads:
        path, memory = f"load.{load.master}", board.memory(load.memory)
        if memory.bus is None:
            on_buses = [one.name for one in board.memories if one.bus is not None]
            raise BoardError(f"{path}.memory: {load.memory} is not on a bus; accepted: "
                             + ", ".join(on_buses))
        if board.dma_controller(load.master).bus != memory.bus:
            raise BoardError(f"{path}.memory: {load.memory} is on {memory.bus}, {load.master} "
                             f"on {board.dma_controller(load.master).bus}; accepted: a memory of "
                             "its bus")
        if load.burst_beats < 1:
            raise BoardError(f"{path}.burst_beats: {load.burst_beats}; accepted: 1 or more")
        if load.bank is not None and not 0 <= load.bank < memory.banks:
            raise BoardError(f"{path}.bank: {load.bank}; accepted: 0 to {memory.banks - 1} of "
                             f"{load.memory}")
        most = _bytes_of_burst(board, load) / (_service_s(board, load))
        if not 0 < load.bytes_per_second < most:
            raise BoardError(f"{path}.bytes_per_second: {load.bytes_per_second:g}; accepted: above "
                             f"0 and below {most:.4g}, from where {load.memory} is saturated by "
                             f"bursts of {load.burst_beats} beats")


def list_bursts(board: Board, kernel: Kernel, states: dict[str, CacheState]) -> CoreBursts:
    """Return what a kernel asks of memories on a bus, in the order of its accesses.

    Parameters
    ----------
    states
        Contents of the caches before it; not changed.

    Returns
    -------
    CoreBursts
        Lines filled and written back, and accesses no cache takes; at most `MOST_BURSTS`, in
        order of access.
    """
    owners = tuple(dict.fromkeys((*(owner for state in states.values() for owner in state.owners),
                                  *((one.memory, one.role) for one in kernel.operands))))
    caches = [data_cache(board, board.memory(operand.memory)) for operand in kernel.operands]
    parts = [part for cache in dict.fromkeys(caches) for part in _pick_bursts(
        board, kernel, cache, [one is cache for one in caches], owners, states)]
    columns = [np.concatenate([np.zeros(0, np.int64), *(part[column] for part in parts)])
               for column in range(5)]
    order = np.argsort(columns[0], kind="stable")[:MOST_BURSTS]
    access, address, size, owner, write = (column[order] for column in columns)
    return CoreBursts(owners=owners, access=access, address=address, size_bytes=size,
                      owner=owner, write=write == 1)


def _pick_bursts(board: Board, kernel: Kernel, cache: Cache | None, chosen: Sequence[bool],
                 owners: tuple[Owner, ...],
                 states: dict[str, CacheState]) -> list[list[np.ndarray]]:
    """Return access, address, bytes, owner and write of bursts, up to `MOST_BURSTS`.

    Parameters
    ----------
    cache
        That operands look up; None: none.
    chosen
        Operands that do.
    """
    looked_up = cache or WORD
    state = states.get(looked_up.name) or new_state(looked_up)
    cached = [bool(cache) and mine for mine in chosen]
    before, _ = number_owners(state.owners, kernel.operands, cached)
    owners_left = np.array([owners.index(owner) for owner in before] or [0])
    on_bus = np.array([board.memory(memory).bus is not None for memory, _ in owners])
    of_operand = np.array([owners.index((one.memory, one.role)) for one in kernel.operands])
    asks = np.array(chosen) & on_bus[of_operand]
    parts: list[list[np.ndarray]] = []

    def visit(touches: Touches) -> None:
        """Keep the touches of a piece that reach a bus."""
        room = MOST_BURSTS - sum(len(part[0]) for part in parts)
        if room <= 0:
            return
        asked = asks[touches.operands] & ((touches.found != HIT) | (cache is None))
        gone = owners_left[np.minimum(touches.left_owners, len(owners_left) - 1)]
        back = (touches.left >= 0) & on_bus[gone]
        found, gone = touches.found[asked], gone[back]
        access = np.concatenate([touches.accesses[asked], touches.accesses[back]])
        order = np.argsort(access, kind="stable")[:room]
        parts.append([column[order] for column in (
            access,
            np.concatenate([touches.lines[asked], touches.left[back]]) * looked_up.line_bytes,
            np.concatenate([np.where(found == BYPASS, WORD.line_bytes, looked_up.line_bytes),
                            np.full(gone.size, looked_up.line_bytes)]),
            np.concatenate([of_operand[touches.operands[asked]], gone]),
            np.concatenate([touches.writes[asked] & np.isin(found, (HIT, BYPASS)),
                            np.ones(gone.size, dtype=bool)]).astype(np.int64))])

    visit_touches(looked_up, kernel.nests, kernel.operands, state, visit, cached)
    return parts


def run_shared(board: Board, loads: Sequence[Load], bursts: CoreBursts, core_cycles: float,
               accesses: int, buses: Sequence[str] = ()) -> dict[str, tuple[BusRun, np.ndarray]]:
    """Run a kernel's bursts against other masters, bus by bus.

    Parameters
    ----------
    board
        For buses, clocks and memories.
    loads
        Checked by `check_loads`.
    core_cycles
        The core's own, spread evenly over the accesses.
    buses
        Run, too, though nobody else uses them.

    Returns
    -------
    dict of str to (BusRun, ndarray of int64)
        By bus: what happened, and which bursts the core's were.
    """
    runs = {}
    for name, alone, mine, core in _run_alone(board, loads, bursts, core_cycles, accesses, buses):
        interconnect = alone.bursts.interconnect
        here = [load for load in loads if board.memory(load.memory).bus == name]
        most = alone.end_ticks / alone.bursts.bus_period + sum(
            len(mine) * _service_s(board, load) * interconnect.clock_hz for load in here)
        streams = [_load_stream(board, load, most / interconnect.clock_hz) for load in here]
        runs[name] = simulate_bus(interconnect, [core, *streams]), mine
    return runs


def _run_alone(board: Board, loads: Sequence[Load], bursts: CoreBursts, core_cycles: float,
               accesses: int, buses: Sequence[str] = (),
               ) -> Iterator[tuple[str, BusRun, np.ndarray, Stream]]:
    """Yield each bus, a run of the core alone on it, which bursts those are, and their stream."""
    loaded = [board.memory(load.memory).bus or "" for load in loads]
    for name in dict.fromkeys((*loaded, *buses)):
        on_bus = np.array([board.memory(memory).bus == name for memory, _ in bursts.owners])
        mine = np.flatnonzero(on_bus[bursts.owner])
        interconnect = build_interconnect(board, name, **{
            load.master: Master(name=load.master, pacing="clock", clock_hz=board.clock(
                board.dma_controller(load.master).clock).frequency_hz)
            for load in loads if board.memory(load.memory).bus == name})
        core = _core_stream(board, interconnect, bursts, mine, core_cycles / max(1, accesses))
        yield name, simulate_bus(interconnect, [core]), mine, core


def count_waits(board: Board, loads: Sequence[Load], bursts: CoreBursts, core_cycles: float,
                counts: AccessCounts) -> list[CountLine]:
    """Return what the core's bursts wait for other masters, by memory and role.

    Parameters
    ----------
    board, loads, bursts, core_cycles
        As for `run_shared`.
    counts
        Of the whole kernel, of whose bursts `bursts` are the first.

    Returns
    -------
    list of CountLine
        `bus_contention`, in core cycles.
    """
    lines = []
    accesses = counts.total("reads") + counts.total("writes")
    total = sum(
        one.read_misses + one.write_misses + one.write_bypasses if one.cached
        else one.reads + one.writes for one in counts.operands
        if board.memory(one.memory).bus is not None) + sum(
        owner.write_backs for owner in counts.owners
        if board.memory(owner.memory).bus is not None)
    scale = max(1.0, total / len(bursts.access)) if len(bursts.access) else 0.0
    for name, alone, mine, _ in _run_alone(board, loads, bursts, core_cycles, accesses):
        ratio = board.core_clock.frequency_hz / board.clock(board.bus(name).clock).frequency_hz
        demands = [_demand(board, load, alone.bursts.interconnect) for load in loads
                   if board.memory(load.memory).bus == name]
        waits = expect_waits(alone, board.core.name, demands) * ratio * scale
        reads = ~bursts.write[mine]
        for owner in np.unique(bursts.owner[mine]).tolist():
            own = bursts.owner[mine] == owner
            if occurred := float(waits[own].sum()):
                memory, role = bursts.owners[owner]
                lines.append(CountLine(
                    event="bus_contention", place=memory, operand=role,
                    occurred=math.floor(occurred * 64) / 64,
                    exposed=math.floor(float(waits[own & reads].sum()) * 64) / 64))
    return lines


def _demand(board: Board, load: Load, interconnect: Interconnect) -> Demand:
    """Return what a load asks of the banks of its memory, and who is granted first."""
    memory, bus = board.memory(load.memory), interconnect
    banks = [number for number, (slave, _) in enumerate(bus.banks) if slave == memory.name]
    one = merge_streams(bus, [Stream(master=load.master, slave=memory.name, bank=load.bank or 0,
                                     beats=load.burst_beats, count=1)])
    masters = [master.name for master in bus.masters]
    return Demand(
        bursts_per_cycle=load.bytes_per_second / _bytes_of_burst(board, load) / bus.clock_hz,
        held_cycles=int(one.bursts[0, HELD]) // one.bus_period,
        shares=tuple((number, 1.0 if load.bank is not None else 1 / len(banks))
                     for number in banks if load.bank in (None, number - banks[0])),
        first=None if bus.arbitration == "round_robin" else (
            masters.index(load.master) < masters.index(board.core.name)))


def _core_stream(board: Board, interconnect: Interconnect, bursts: CoreBursts, mine: np.ndarray,
                 pace: float) -> Stream:
    """Return the core's bursts on one bus: each after the cycles its accesses take."""
    names = [slave.name for slave in interconnect.slaves]
    slave = np.array([names.index(memory) if memory in names else 0
                      for memory, _ in bursts.owners], dtype=np.int64)[bursts.owner[mine]]
    width = board.bus(board.memory(names[0]).bus or "").width_bytes
    when = np.floor(bursts.access[mine] * pace).astype(np.int64)
    bank = np.zeros(len(mine), dtype=np.int64)
    for number, name in enumerate(names):
        here = slave == number
        bank[here] = banks_of(board.memory(name), bursts.address[mine][here])
    return Stream(master=board.core.name, slave=slave, bank=bank,
                  beats=-(-bursts.size_bytes[mine] // width), count=len(mine),
                  think_cycles=np.diff(when, prepend=0))


def _load_stream(board: Board, load: Load, seconds: float) -> Stream:
    clock_hz = board.clock(board.dma_controller(load.master).clock).frequency_hz
    size, memory = _bytes_of_burst(board, load), board.memory(load.memory)
    count = int(seconds * load.bytes_per_second / size) + 1
    number = np.arange(1, count + 1)
    due = np.floor(number * size / load.bytes_per_second * clock_hz).astype(np.int64)
    bank = (np.full(count, load.bank) if load.bank is not None else
            banks_of(memory, memory.address + number * size % memory.size_bytes))
    return Stream(master=load.master, slave=load.memory, bank=bank, beats=load.burst_beats,
                  think_cycles=due, count=count)


def _bytes_of_burst(board: Board, load: Load) -> int:
    return load.burst_beats * board.bus(board.memory(load.memory).bus or "").width_bytes


def _service_s(board: Board, load: Load) -> float:
    """Seconds a burst of a load holds its bank."""
    slave = make_slave(board, board.memory(load.memory))
    cycles = max(load.burst_beats, slave.latency_cycles + load.burst_beats * slave.beat_cycles)
    return cycles / (slave.clock_hz or 1.0)
