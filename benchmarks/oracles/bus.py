"""Specification of the bus model in SimPy: a process per master, per arbiter and per reply.

Shares nothing with the production code but the nouns; tests demand equal times. The environment
counts ticks; arbiters decide half a tick later, when all that arrives in a tick has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import simpy

from hwmodels.bus.interconnect import Interconnect, Master, Slave, Stream

HALF = 0.5

Process = Generator[Any, Any, None]


@dataclass(slots=True, kw_only=True, eq=False)
class Burst:
    """One burst on its way; times in ticks."""

    port: int
    row: int
    slave: Slave
    bank: int
    beats: int
    think_cycles: int
    issue: int = -1
    arrival: int = -1
    grant: int = -1
    finish: int = -1
    wait: int = 0
    granted: Any = None
    delivered: Any = None
    finished: Any = None


@dataclass(slots=True, kw_only=True)
class Arbiter:
    """One bank: who waits for it, who held it, and what it remembers.

    Parameters
    ----------
    bus : ReferenceBus
        It is part of.
    """

    bus: ReferenceBus
    waiting: list[Burst] = field(default_factory=list)
    held: list[tuple[int, int, int]] = field(default_factory=list)
    last: int = -1
    arrived: Any = None

    def serve(self) -> Process:
        """Grant one burst after the other."""
        bus, environment = self.bus, self.bus.environment
        while True:
            if not self.waiting:
                self.arrived = environment.event()
                yield self.arrived
            yield environment.timeout(HALF)
            burst = self.choose()
            self.waiting.remove(burst)
            burst.grant = int(environment.now)
            end = burst.grant + bus.held_cycles(burst) * bus.period
            burst.wait = sum(
                max(0, min(until, burst.grant) - max(since, burst.arrival))
                for port, since, until in self.held if port != burst.port)
            earliest = min((other.arrival for other in self.waiting), default=burst.grant)
            self.held = [part for part in self.held if part[2] > earliest]
            self.held.append((burst.port, burst.grant, end))
            burst.granted.succeed()
            yield environment.timeout(end - environment.now)
            environment.process(bus.reply(burst))

    def choose(self) -> Burst:
        """Pick one of those that wait."""
        in_order = sorted(self.waiting, key=lambda burst: burst.port)
        kind = self.bus.interconnect.arbitration
        chosen = in_order[0]
        if kind == "round_robin":
            count = len(self.bus.interconnect.masters)
            chosen = min(in_order, key=lambda burst: (burst.port - self.last - 1) % count)
        self.last = chosen.port
        return chosen


class ReferenceBus:
    """Masters, arbiters and replies in one SimPy environment.

    Parameters
    ----------
    interconnect : Interconnect
        Masters, slaves, arbitration.
    streams : sequence of Stream
        At most one per master.
    """

    def __init__(self, interconnect: Interconnect, streams: Sequence[Stream]) -> None:
        self.environment = simpy.Environment()
        self.interconnect = interconnect
        self.period, self.periods = interconnect.clock_periods()
        self.arbiters = {(slave.name, bank): Arbiter(bus=self)
                         for slave in interconnect.slaves for bank in range(slave.banks)}
        names = [master.name for master in interconnect.masters]
        self.ports: list[list[Burst]] = [[] for _ in names]
        for stream in streams:
            port = names.index(stream.master)
            self.ports[port] = [self._read(stream, port, row) for row in range(len(stream))]

    def run(self) -> list[tuple[int, int, int, int]]:
        """Return (issue, grant, finish, wait) in ticks of every burst, master by master."""
        for arbiter in self.arbiters.values():
            self.environment.process(arbiter.serve())
        for port, master in enumerate(self.interconnect.masters):
            self.environment.process(self.ask(port, master))
        self.environment.run()
        return [(burst.issue, burst.grant, burst.finish, burst.wait)
                for bursts in self.ports for burst in bursts]

    def ask(self, port: int, master: Master) -> Process:
        """Present a master's bursts one by one."""
        environment, bursts = self.environment, self.ports[port]
        for row, burst in enumerate(bursts):
            before = bursts[row - 1] if row else None
            credited = bursts[row - master.outstanding] if row >= master.outstanding else None
            origin = 0
            if credited is not None:
                yield credited.finished
                if master.pacing == "finish":
                    origin = credited.finish
            ready = origin + burst.think_cycles * self.periods[port]
            if before is not None:
                yield before.granted
                if master.outstanding > 1:
                    ready = max(ready, before.grant + self.period)
            if ready > environment.now:
                yield environment.timeout(ready - environment.now)
            yield self.edge(self.periods[port])
            burst.issue = int(environment.now)
            yield self.edge(self.period)
            burst.arrival = int(environment.now)
            arbiter = self.arbiters[burst.slave.name, burst.bank]
            arbiter.waiting.append(burst)
            if arbiter.arrived is not None and not arbiter.arrived.triggered:
                arbiter.arrived.succeed()

    def reply(self, burst: Burst) -> Process:
        """Carry a burst's reply back to its master."""
        environment, master = self.environment, self.interconnect.masters[burst.port]
        bursts = self.ports[burst.port]
        cycles = self.bus_cycles(burst.slave, burst.slave.pipeline_cycles)
        yield environment.timeout(cycles * self.period)
        if burst.row and master.outstanding > 1:
            before = bursts[burst.row - 1]
            yield before.delivered
            earliest = before.delivered.value + burst.beats * self.period
            if earliest > environment.now:
                yield environment.timeout(earliest - environment.now)
        burst.delivered.succeed(environment.now)
        yield self.edge(self.periods[burst.port])
        burst.finish = int(environment.now)
        burst.finished.succeed()

    def edge(self, period: int) -> Any:
        """Wait for the next edge of a clock, now if there is one; times are whole here."""
        return self.environment.timeout(-int(self.environment.now) % period)

    def held_cycles(self, burst: Burst) -> int:
        """Bus cycles a burst holds its slave."""
        slave = burst.slave
        exact = _exact(slave.latency_cycles) + burst.beats * _exact(slave.beat_cycles)
        return max(math.ceil(exact * self._ratio(slave)), burst.beats)

    def bus_cycles(self, slave: Slave, cycles: float) -> int:
        """Whole bus cycles of cycles of a slave."""
        return math.ceil(_exact(cycles) * self._ratio(slave))

    def _ratio(self, slave: Slave) -> Fraction:
        hz = slave.clock_hz or self.interconnect.clock_hz
        return Fraction(self.interconnect.clock_hz / hz).limit_denominator(1000)

    def _read(self, stream: Stream, port: int, row: int) -> Burst:
        by_name = {slave.name: slave for slave in self.interconnect.slaves}
        asked = _value(stream.slave, row)
        slave = (by_name[str(asked)] if isinstance(asked, str)
                 else self.interconnect.slaves[int(asked)])
        environment = self.environment
        return Burst(
            port=port, row=row, slave=slave, bank=int(_value(stream.bank, row)),
            beats=int(_value(stream.beats, row)),
            think_cycles=int(_value(stream.think_cycles, row)),
            granted=environment.event(), delivered=environment.event(),
            finished=environment.event())


def _exact(cycles: float) -> Fraction:
    return Fraction(cycles).limit_denominator(1000)


def _value(field_value: Any, row: int) -> Any:
    """Entry of an array, or the one value that holds for all."""
    return field_value if not getattr(field_value, "ndim", 0) else field_value[row]
