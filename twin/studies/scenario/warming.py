"""Where the temperature of a device goes after a run too short to show it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from hwmodels.quantities import format_frequency, format_time
from twin.studies.scenario.heat import reach_us, settle_c
from twin.studies.scenario.machine import Machine
from twin.studies.scenario.scenario import Scenario, Thermal
from twin.studies.scenario.simulation import Run, find_throttled, simulate

SETTLED, MOST_C, CLOSE_C, HOPS, STEPS = 5, 300.0, 1.0, 16, 8
"""Time constants after which a temperature stays; beyond the second leakage runs away; a change
nobody need know; inferences of which a power at a given temperature is the mean; steps to a
limit, each at one power."""


def find_warming(scenario: Scenario, machine: Machine, run: Run) -> str:
    """Return where the temperature settles and what the clock does then; empty: as in the run.

    Notes
    -----
    T = T_ambient + R P(T), with P the mean power of a few periods with the die at T, by iteration.
    """
    thermal, hottest_c = scenario.thermal, run.hottest_c
    if thermal is None or hottest_c is None or run.duration_us >= SETTLED * thermal.constant_us:
        return ""
    constant, simulated = format_time(thermal.constant_us), format_time(run.duration_us)
    if run.throttled_us:
        return (f"its warm-up, of a time constant of {constant}, is in the means of these "
                f"{simulated} (--set duration=)")
    power_mw = partial(_mean_mw, scenario, machine, thermal)
    end_c, before_c, mean_mw = thermal.ambient_c, -math.inf, 0.0
    while end_c - before_c > 0.01 and end_c < MOST_C:
        before_c, mean_mw = end_c, power_mw(end_c)
        end_c = settle_c(thermal, mean_mw)
    if abs(end_c - hottest_c) < CLOSE_C:
        return ""
    clock = "no limit is reached"
    if end_c > thermal.limit_c:
        step_c = (thermal.limit_c - hottest_c) / STEPS
        after_us = sum(
            reach_us(thermal, from_c, power_mw(from_c + step_c / 2), from_c + step_c)
            for from_c in (hottest_c + number * step_c for number in range(STEPS)))
        when = "" if math.isinf(after_us) else (
            f" after about {format_time(run.duration_us + after_us)}")
        slowest_hz = machine.speeds[find_throttled(thermal, machine.speeds)].clock_hz
        clock = (f"{thermal.limit_c:g} degC is reached{when}, and the clock held at "
                 f"{format_frequency(slowest_hz)} until {thermal.resume_c:g} degC")
    goes = (f"leakage takes it above {MOST_C:g} degC" if end_c >= MOST_C else
            f"it settles at {end_c:.1f} degC, {mean_mw:.3g} mW")
    return (f"it still warms up after {simulated}: the time constant is {constant}, and "
            f"unthrottled {goes}; {clock}; power, deadlines and life are of the time simulated "
            "(--set duration=)")


def _mean_mw(scenario: Scenario, machine: Machine, thermal: Thermal, temperature_c: float) -> float:
    """Return the mean power of a few periods at a temperature that stays."""
    tiny = 1e-9
    held = replace(thermal, ambient_c=temperature_c, limit_c=math.inf, resistance_c_per_w=tiny,
                   capacity_j_per_c=thermal.resistance_c_per_w * thermal.capacity_j_per_c / tiny)
    return simulate(replace(scenario, thermal=held, duration_us=(
        HOPS * scenario.every * scenario.sensor.hop_us)), machine).mean_mw
