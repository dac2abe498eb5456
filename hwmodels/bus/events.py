"""Buses: masters, arbitrated slaves, and what waiting for each other costs.

    run = simulate_bus(interconnect, streams)     when every burst was issued, granted, finished

Rules, the same in the kernel and in the SimPy specification:

- A master presents one burst at a time at the arbiter of one slave bank, and the next one only
  when that was granted (address channels without queues: a busy slave keeps what follows back).
  Each bank has its own arbiter and serves one burst at a time, uninterrupted; different banks
  serve at once (an AHB matrix, an AXI crossbar). Slaves behind one port are one slave.
- Burst k of a master with N outstanding is issued on an edge of the master's clock, not before

      origin + think, finish(k - N), grant(k - 1) + one bus cycle

  where origin is finish(k - N) for pacing "finish" (a core that blocks) and 0 for "clock" (a
  peripheral). AHB is N = 1. With N > 1 replies
  come in order, and the port's own data lines carry one beat per bus cycle. A port with separate
  read and write channels is two masters.
- It arrives at the arbiter on the next bus edge. A free slave grants at once to one of those that
  arrived: "fixed": the first in the order of masters; "round_robin": the next after the last
  granted there (at first: the first).
- The slave is held for latency + beats x cycles of its clock, as whole bus cycles and at least one
  per beat. The reply takes the slave's pipeline cycles more, in which the slave may serve others,
  and finishes on an edge of the master's clock.

Every clock has an edge at time 0. The wait of a burst is the time from arrival to grant in which
others held its slave; a master's own earlier bursts are not contention.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwmodels.board.facts import Board, Memory
from hwmodels.bus.bursts import Bursts, merge_streams
from hwmodels.bus.interconnect import ARBITRATIONS, Interconnect, Master, Slave, Stream
from hwmodels.errors import BoardError
from hwmodels.frozen import entity

ISSUE, GRANT, FINISH, WAIT = range(4)
"""Columns of `BusRun.times`."""


@entity
class BusRun:
    """When every burst was issued, granted and finished.

    Parameters
    ----------
    times : ndarray of int64, (bursts, 4)
        Ticks of issue, grant, finish, and ticks waited for others.
    busy : ndarray of int64, (banks,)
        Ticks each bank was held.
    """

    bursts: Bursts
    times: np.ndarray
    busy: np.ndarray

    @property
    def end_ticks(self) -> int:
        """When the last burst finished."""
        return int(self.times[:, FINISH].max(initial=0))

    def wait_cycles(self, master: str) -> np.ndarray:
        """Return how long each burst of a master waited for others, in bus cycles."""
        return self.times[self.bursts.range_of(master), WAIT] // self.bursts.bus_period

    def period(self, master: str) -> int:
        """Return the ticks of a cycle of a master."""
        return int(self.bursts.ports[self.bursts.row_of(master), 0])


def simulate_bus(interconnect: Interconnect, streams: Sequence[Stream]) -> BusRun:
    """Run the streams of all masters against each other.

    Parameters
    ----------
    interconnect
        Masters, slaves, arbitration.
    streams
        At most one per master; the others ask nothing.

    Returns
    -------
    BusRun
        Times of every burst.

    Raises
    ------
    KernelError
        When a stream cannot be run on the interconnect.
    """
    return run_bursts(merge_streams(interconnect, streams))


def run_bursts(bursts: Bursts) -> BusRun:
    """Run merged bursts; see `simulate_bus`."""
    from hwmodels.kernels import bus_events

    times = np.empty((len(bursts.bursts), 4), np.int64)
    busy = np.zeros(bursts.banks, np.int64)
    bus_events.run_bursts(bursts.ports, bursts.bursts, bursts.transfer, bursts.bus_period,
                          ARBITRATIONS[bursts.interconnect.arbitration], times, busy)
    return BusRun(bursts=bursts, times=times, busy=busy)


def build_interconnect(board: Board, bus_name: str, **masters: Master) -> Interconnect:
    """Return the interconnect a board's bus is.

    Parameters
    ----------
    **masters
        In place of those of the same name, or after them.

    Returns
    -------
    Interconnect
        The bus's masters, blocking, at their clocks, and every memory on the bus.
    """
    bus = board.bus(bus_name)
    clocks = ({core.name: core.clock for core in board.cores}
              | {dma.name: dma.clock for dma in board.dma})
    known = {name: Master(name=name, clock_hz=board.clock(clocks.get(name, bus.clock)).frequency_hz)
             for name in bus.masters} | masters
    return Interconnect(
        clock_hz=board.clock(bus.clock).frequency_hz, masters=tuple(known.values()),
        slaves=tuple(make_slave(board, memory) for memory in board.memories
                     if memory.bus == bus_name),
        arbitration=bus.arbitration)


def make_slave(board: Board, memory: Memory) -> Slave:
    """Return a memory of a board as its bus meets it.

    Parameters
    ----------
    board
        For the bus and the clock.

    Returns
    -------
    Slave
        Alone and for whole read lines it takes `hwmodels.board.memory.burst_cycles`.

    Notes
    -----
    With W bytes of the bus, b bytes the memory moves in a cycle (W where it states none), a bytes
    of an array read and w wait states, a beat takes max(1, (1 + w) b / a) W / b cycles. What comes
    before the first beat is held by the burst: w, or a / b - 1 where the array sets the pace.
    The latency of memory outside the chip (command, address) is held too; that of memory inside
    is the way through the interconnect, which other bursts share (assumed).
    """
    if memory.bus is None:
        raise BoardError(f"{board.name}: memory {memory.name!r} is not on a bus")
    width = board.bus(memory.bus).width_bytes
    moved = memory.bytes_per_cycle or width
    pace = (1 + memory.wait_states) * moved / memory.read_bytes
    held = memory.wait_states if pace <= 1 else max(0.0, memory.read_bytes / moved - 1)
    outside = memory.role in ("external_ram", "external_flash")
    return Slave(
        name=memory.name, banks=memory.banks, clock_hz=board.clock(memory.clock).frequency_hz,
        latency_cycles=held + (memory.latency_cycles if outside else 0.0),
        pipeline_cycles=0.0 if outside else memory.latency_cycles,
        beat_cycles=max(1.0, pace) * width / moved)
