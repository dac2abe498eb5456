"""A device over time, event by event in SimPy: sensor, core, other masters, heat.

Between changes of power the temperature follows in closed form (`heat`). Leakage is

    P(T) = P(25 degC) 2^((T - 25) / d)

with the temperature at the last change, at most `STEP` time constants ago.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hwmodels.errors import need_extra
from hwmodels.frozen import frozen
from twin.errors import ScenarioError
from twin.studies.scenario.heat import reach_us, warm_c
from twin.studies.scenario.machine import Machine, Speed
from twin.studies.scenario.scenario import Load, Scenario, Thermal

RUN, FRONT_END, WAKING, RAMP, IDLE, ASLEEP = (
    "inference", "front end", "waking", "clock ramp", "idle", "asleep")
STATES = (RUN, FRONT_END, RAMP, WAKING, IDLE, ASLEEP)
"""States of the core, most awake first."""

BUSY, QUIET = 0.8, 0.3
"""Shares of a hop above and below which `ondemand` goes a step up and down (assumed)."""

RATED_C, STEP, MOST_STEPS = 25.0, 1 / 16, 20_000
"""Temperature of stated leakage; time constants leakage is taken as constant; steps of a run."""

SHOWN = 20_000
"""Spans that are kept for pictures."""

MOST_EVENTS = 1_000_000
"""Of a run; a hop has some twenty."""

Process = Generator[Any, Any, None]


@frozen
class Span:
    """Some time in one state."""

    start_us: float
    end_us: float
    state: str
    power_mw: float
    clock_hz: float
    temperature_c: float | None = None


@dataclass(slots=True, kw_only=True)
class Run:
    """What happened.

    Parameters
    ----------
    duration_us
        Time simulated: whole periods of an inference, at least what is asked for.
    time_us, energy_uj
        By state of the core; "sensor" and "other masters" have energy of their own.
    answers_us
        From a full buffer to its answer, each hop.
    late, lost
        Answers after their deadline, and hops the sensor had no buffer for.
    spans
        In order, at most `SHOWN`.
    hottest_c
        Highest temperature.
    throttled_us
        Time the clock was held down.
    clock_changes
        How often the clock was changed.
    """

    duration_us: float = 0.0
    time_us: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    energy_uj: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    answers_us: list[float] = field(default_factory=list)
    inferences: int = 0
    late: int = 0
    lost: int = 0
    spans: list[Span] = field(default_factory=list)
    hottest_c: float | None = None
    throttled_us: float = 0.0
    clock_changes: int = 0

    @property
    def mean_mw(self) -> float:
        """Mean power, everything in it."""
        return sum(self.energy_uj.values()) / self.duration_us * 1e3

    @property
    def duty(self) -> float:
        """Share of time the core is not asleep or idle."""
        quiet = self.time_us.get(IDLE, 0.0) + self.time_us.get(ASLEEP, 0.0)
        return 1 - quiet / self.duration_us


def simulate(scenario: Scenario, machine: Machine) -> Run:
    """Run a scenario.

    Returns
    -------
    Run
        The same for the same arguments: nothing is drawn at random.

    Raises
    ------
    ToolMissingError
        Without SimPy.
    """
    with need_extra("scenarios", "simpy", "study"):
        import simpy
    device = _Device(env=simpy.Environment(), scenario=scenario, machine=machine)
    return device.run()


def find_throttled(thermal: Thermal, speeds: Sequence[Speed]) -> int:
    """Return which clock is the fastest while the part is too hot."""
    allowed = [number for number, speed in enumerate(speeds)
               if thermal.throttled_hz is not None and speed.clock_hz <= thermal.throttled_hz]
    return allowed[-1] if allowed else 0


class _Device:
    """The processes of a device, and what they share."""

    def __init__(self, *, env: Any, scenario: Scenario, machine: Machine) -> None:
        import simpy

        self.env, self.scenario, self.machine = env, scenario, machine
        self.result, self.ended = Run(), False
        self.full: Any = simpy.Store(env)
        self.waiting = 0
        self.freed = env.event()
        self.changed = env.event()
        self.active = [False] * len(scenario.loads)
        self.throttled = False
        self.level = self._choose_level()
        self.state, self.since = IDLE, 0.0
        self.asleep_mw = machine.sleep_mw
        thermal = scenario.thermal
        self.temperature = None if thermal is None else thermal.ambient_c
        self.result.hottest_c = self.temperature

    def run(self) -> Run:
        """Start everything and let the time pass."""
        self.env.process(self.compute())  # First: asleep as the first buffer is full.
        self.env.process(self.sense())
        for number, load in enumerate(self.scenario.loads):
            self.env.process(self.disturb(number, load))
        if self.scenario.thermal is not None:
            self.env.process(self.heat())
        for _ in range(MOST_EVENTS):
            if self.ended:
                break
            self.env.step()
        else:
            raise ScenarioError(
                f"{self.scenario.name}:duration: more than {MOST_EVENTS:,} events by "
                f"{self.env.now / 1e6:.3g} s; accepted: a shorter time, fewer hops to an "
                "inference, longer periods of loads, or limit_c and resume_c further apart")
        self._account()
        self.result.duration_us = self.env.now
        self.result.energy_uj["sensor"] = self.scenario.sensor.power_mw * self.env.now * 1e-3
        return self.result

    @property
    def speed(self) -> Speed:
        """The clock in force."""
        return self.machine.speeds[self.level]

    def _choose_level(self) -> int:
        """Return the clock a governor begins with."""
        speeds, scenario = self.machine.speeds, self.scenario
        if scenario.governor != "slowest":
            return len(speeds) - 1
        for number, speed in enumerate(speeds):
            worst = speed.inference_us * math.prod(speed.slowdowns) + speed.front_end_us
            if worst + self.machine.wake_up_us + scenario.sleep.clock_ramp_us <= (
                    scenario.allowed_us):
                return number
        return len(speeds) - 1

    def power_mw(self) -> float:
        """Return what the core draws now, leakage at its temperature."""
        if self.state == ASLEEP and self.asleep_mw is not None:
            return self.asleep_mw + self.added_mw(self.asleep_mw)
        stated = self.speed.run_mw if self.state in (RUN, FRONT_END) else self.speed.idle_mw
        return stated + self.added_mw(self.speed.leakage_mw)

    def added_mw(self, leakage_mw: float) -> float:
        """Return what leakage draws beyond what is stated for `RATED_C`."""
        thermal = self.scenario.thermal
        if not self.leaks or thermal is None or self.temperature is None:
            return 0.0
        return float(leakage_mw * math.expm1(
            math.log(2) * (self.temperature - RATED_C) / (thermal.leakage_doubles_c or math.inf)))

    @property
    def leaks(self) -> bool:
        """Whether leakage follows the temperature."""
        thermal = self.scenario.thermal
        return thermal is not None and bool(thermal.leakage_doubles_c and self.speed.leakage_mw)

    def total_mw(self) -> float:
        """Return what everything draws now."""
        others = sum(load.power_mw for load, on in zip(self.scenario.loads, self.active,
                                                       strict=True) if on)
        return self.power_mw() + self.scenario.sensor.power_mw + others

    def _account(self) -> None:
        """Charge the time since the last change to the state that was."""
        passed = self.env.now - self.since
        if passed <= 0:
            return
        result, power = self.result, self.power_mw()
        result.time_us[self.state] += passed
        result.energy_uj[self.state] += power * passed * 1e-3
        for load, on in zip(self.scenario.loads, self.active, strict=True):
            if on:
                result.energy_uj["other masters"] += load.power_mw * passed * 1e-3
        if self.throttled:
            result.throttled_us += passed
        if self.temperature is not None and self.scenario.thermal is not None:
            self.temperature = warm_c(self.scenario.thermal, self.temperature, self.total_mw(),
                                      passed)
            result.hottest_c = max(result.hottest_c or -math.inf, self.temperature)
        if len(result.spans) < SHOWN:
            result.spans.append(Span(
                start_us=self.since, end_us=self.env.now, state=self.state,
                power_mw=self.total_mw(), clock_hz=self.speed.clock_hz,
                temperature_c=self.temperature))
        self.since = self.env.now

    def _tell(self) -> None:
        """Wake whoever waits for a change of speed or power."""
        self.changed.succeed()
        self.changed = self.env.event()

    def enter(self, state: str) -> None:
        """Go over to another state."""
        if state != self.state:
            self._account()
            self.state = state
            self._tell()

    def sense(self) -> Process:
        """Fill buffers, the first before the run; a hop without a free one is lost.

        The run ends as a buffer is full, after whole periods of an inference: its means hold for
        any time.
        """
        sensor, hops = self.scenario.sensor, 0
        while hops % self.scenario.every or (
                self.env.now < self.scenario.duration_us * (1 - 1e-9)):  # Time is rounded.
            hops += 1
            if sensor.buffers == 1:
                self.waiting += 1
                yield self.full.put(self.env.now)
                while self.waiting:
                    yield self.freed
            elif self.waiting < sensor.buffers - 1:
                self.waiting += 1
                yield self.full.put(self.env.now)
            else:
                self.result.lost += 1
            yield self.env.timeout(sensor.hop_us)
        self.ended = True

    def compute(self) -> Process:
        """Sleep until a buffer is full, wake, make features, infer now and then."""
        hops = 0
        while True:
            if not self.full.items:
                yield from self.sleep()
            filled = yield self.full.get()
            started = self.env.now
            if self.machine.speeds[self.level].front_end_us:
                self.enter(FRONT_END)
                yield from self.work(lambda speed: speed.front_end_us)
            hops += 1
            if hops % self.scenario.every == 0:
                self.enter(RUN)
                yield from self.work(lambda speed: speed.inference_us)
                self.result.inferences += 1
            taken = self.env.now - filled
            self.result.answers_us.append(taken)
            self.result.late += taken > self.scenario.allowed_us * (1 + 1e-12)
            self.waiting -= 1
            self.freed.succeed()
            self.freed = self.env.event()
            yield from self.govern((self.env.now - started) / self.scenario.sensor.hop_us)

    def sleep(self) -> Process:
        """Sleep until the next full buffer; wake up and raise the clock."""
        deep = self.machine.sleep_mw is not None
        self.enter(ASLEEP if deep else IDLE)
        woken = self.full.get()
        filled = yield woken
        self.full.items.insert(0, filled)
        if self.machine.wake_up_us:
            self.enter(WAKING)
            yield self.env.timeout(self.machine.wake_up_us)
        if deep:
            yield from self.ramp()

    def ramp(self) -> Process:
        """Wait until the clock is up."""
        if self.scenario.sleep.clock_ramp_us:
            self.enter(RAMP)
            yield self.env.timeout(self.scenario.sleep.clock_ramp_us)

    def work(self, time_us: Any) -> Process:
        """Do one job, at the speed that is possible at each moment."""
        left = 1.0
        while True:
            slow = math.prod(slowdown for slowdown, on in zip(
                self.speed.slowdowns, self.active, strict=True) if on)
            needed = time_us(self.speed) * slow
            start, done = self.env.now, self.env.timeout(left * needed)
            yield done | self.changed
            if done.processed:  # Not by what is left: time is rounded.
                return
            left -= (self.env.now - start) / needed

    def govern(self, busy: float) -> Process:
        """Choose the next clock."""
        wanted = self.level
        if self.scenario.governor == "ondemand":
            wanted += (busy > BUSY) - (busy < QUIET)
        elif self.scenario.governor in ("race_to_idle", "fixed"):
            wanted = len(self.machine.speeds) - 1
        wanted = min(max(0, wanted), self._cap())
        if wanted != self.level:
            yield from self.change_clock(wanted)

    def _cap(self) -> int:
        """Return the fastest clock that heat allows."""
        thermal, speeds = self.scenario.thermal, self.machine.speeds
        return find_throttled(thermal, speeds) if self.throttled and thermal else len(speeds) - 1

    def change_clock(self, level: int) -> Process:
        """Go to another clock, which takes the ramp."""
        self._account()
        self.level = level
        self.result.clock_changes += 1
        yield from self.ramp()

    def disturb(self, number: int, load: Load) -> Process:
        """Be busy at the start of each period."""
        while True:
            for busy, time_us in ((True, load.busy_us), (False, load.period_us - load.busy_us)):
                self._account()
                self.active[number] = busy
                self._tell()
                yield self.env.timeout(max(0.0, time_us))

    def heat(self) -> Process:
        """Hold the clock down while it is too hot."""
        thermal = self.scenario.thermal
        assert thermal is not None
        step_us = max(STEP * thermal.constant_us, self.scenario.duration_us / MOST_STEPS)
        while True:
            self._account()
            assert self.temperature is not None
            goal = thermal.resume_c if self.throttled else thermal.limit_c
            soon = reach_us(thermal, self.temperature, self.total_mw(), goal)
            if self.leaks and soon > step_us:
                yield self.env.timeout(step_us) | self.changed
                continue
            if math.isinf(soon):
                yield self.changed
                continue
            reached = self.env.timeout(soon)
            yield reached | self.changed
            if not reached.processed:
                continue
            self._account()
            self.throttled = not self.throttled
            if self.throttled and self.level > self._cap():
                self.level = self._cap()  # At once: the part protects itself.
                self.result.clock_changes += 1
            self._tell()
