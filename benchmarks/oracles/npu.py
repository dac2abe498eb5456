"""Specification of the stream-engine model in SimPy: every node a process, waits as events.

Shares nothing with the production kernel but the plan it reads (`hwmodels.schedule.timing`); tests
demand equal starts and ends, tick by tick.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from hwmodels.schedule.timing import Plan

AFTER_EVERYTHING = 9
"""Priority of an event that is handled when all others of its time have been."""


@dataclass(slots=True)
class Request:
    """A node that could start but for its channel and pool."""

    node: int
    step: int
    granted: Any


class Grants:
    """Channels and pools, given to the node served least recently among those that can start."""

    def __init__(self, env: Any, plan: Plan) -> None:
        self.env, self.plan = env, plan
        self.channel_free = [0] * len(plan.channels)
        self.pool_free = [0] * len(plan.pools)
        self.order = list(range(len(plan.names)))
        self.waiting: list[Request] = []

    def ask(self, node: int, step: int) -> Any:
        """Return the event of being granted."""
        request = Request(node, step, self.env.event())
        self.waiting.append(request)
        self._settle_after(0)
        return request.granted

    def _settle_after(self, ticks: int) -> None:
        event = self.env.event()
        event._ok, event._value = True, None
        event.callbacks.append(lambda _: self._settle())
        self.env.schedule(event, priority=AFTER_EVERYTHING, delay=ticks)

    def _settle(self) -> None:
        while True:
            able = [request for request in self.waiting if self._is_free(request.node)]
            if not able:
                return
            first = min(able, key=lambda request: self.order.index(request.node))
            self.waiting.remove(first)
            self.order.remove(first.node)
            self.order.append(first.node)
            self._hold(first)
            first.granted.succeed()

    def _is_free(self, node: int) -> bool:
        _, channel, pool = self.plan.nodes[node, :3]
        return ((channel < 0 or self.channel_free[channel] <= self.env.now)
                and (pool < 0 or self.pool_free[pool] <= self.env.now))

    def _hold(self, request: Request) -> None:
        _, channel, pool, channel_ticks, pool_ticks = self.plan.nodes[request.node, :5]
        for index, free, ticks in ((channel, self.channel_free, channel_ticks),
                                   (pool, self.pool_free, pool_ticks)):
            if index >= 0:
                held = share(ticks, self.plan, request.node, request.step)
                free[index] = self.env.now + held
                self._settle_after(held)


def share(total: int, plan: Plan, node: int, step: int) -> int:
    """Return what falls on one step, such that the steps add up to the total."""
    steps = int(plan.nodes[node, 0])
    return int(total) * (step + 1) // steps - int(total) * step // steps


class ReferenceEpoch:
    """An epoch as processes.

    Parameters
    ----------
    plan : Plan
        Nodes and links.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.env = plan, simpy.Environment()
        self.grants = Grants(self.env, plan)
        steps = [int(n) for n in plan.nodes[:, 0]]
        self.first = [[self.env.event() for _ in range(n)] for n in steps]
        self.ended = [[self.env.event() for _ in range(n)] for n in steps]
        self.data = [[self.env.event() for _ in range(n)] for n in steps]
        self.starts = [[-1] * n for n in steps]
        self.ends = [[-1] * n for n in steps]

    def run(self) -> int:
        """Run to the end and return ticks from beginning to last data."""
        for node in range(len(self.plan.names)):
            self.env.process(self._work(node))
        self.env.run()
        return max(ends[-1] + int(latency) for ends, latency
                   in zip(self.ends, self.plan.nodes[:, 6], strict=True))

    def _fire(self, event: Any, ticks: int) -> Generator[Any, Any, None]:
        """Let an event happen so many ticks from now, its value the time."""
        yield self.env.timeout(ticks)
        event.succeed(int(self.env.now))

    def _take(self, data: Any, trail: int) -> Generator[Any, Any, None]:
        """Wait until the last piece of a source's data has been worked on."""
        came: int = yield data
        yield self.env.timeout(max(0, came + trail - self.env.now))

    def _work(self, node: int) -> Generator[Any, Any, None]:
        plan, env = self.plan, self.env
        sources = [(int(source), int(ahead)) for source, sink, _, ahead in plan.links
                   if sink == node]
        sinks = [(int(sink), int(depth)) for source, sink, depth, _ in plan.links if source == node]
        steps, channel, pool, _, _, own, latency, lead, trail = map(int, plan.nodes[node])
        for step in range(steps):
            room = [self.ended[sink][step - depth] for sink, depth in sinks if step >= depth]
            needed = [(source, min(step + ahead, len(self.data[source]) - 1))
                      for source, ahead in sources]
            yield env.all_of([self.first[source][at] for source, at in needed] + room)
            if channel >= 0 or pool >= 0:
                yield self.grants.ask(node, step)
            self.starts[node][step] = int(env.now)
            env.process(self._fire(self.first[node][step], lead))
            taken = [env.process(self._take(self.data[source][at], trail)) for source, at in needed]
            yield env.all_of([env.timeout(max(1, share(own, plan, node, step))), *taken])
            self.ends[node][step] = int(env.now)
            self.ended[node][step].succeed()
            env.process(self._fire(self.data[node][step], latency))
