"""Heat of one thermal resistance and one capacity, in closed form at a constant power."""

from __future__ import annotations

import math

from twin.studies.scenario.scenario import Thermal


def settle_c(thermal: Thermal, power_mw: float) -> float:
    """Return the temperature a power leads to in the end."""
    return thermal.ambient_c + thermal.resistance_c_per_w * power_mw * 1e-3


def warm_c(thermal: Thermal, start_c: float, power_mw: float, time_us: float) -> float:
    """Return the temperature after a time at a power.

    Parameters
    ----------
    thermal
        One resistance R and one capacity C.
    start_c, power_mw, time_us
        Temperature at first, power from then on, and how long.

    Notes
    -----
    T(t) = T_end + (T_0 - T_end) exp(-t / RC).
    """
    end = settle_c(thermal, power_mw)
    return end + (start_c - end) * math.exp(-time_us / thermal.constant_us)


def reach_us(thermal: Thermal, start_c: float, power_mw: float, goal_c: float) -> float:
    """Return how long a temperature takes to be reached at a power; infinity where it never is.

    Parameters
    ----------
    thermal
        One resistance and one capacity.
    start_c, power_mw, goal_c
        Temperature at first, power from then on, and the temperature asked for.
    """
    end = settle_c(thermal, power_mw)
    if start_c == goal_c:
        return 0.0
    if (goal_c - start_c) * (end - goal_c) <= 0:
        return math.inf
    return thermal.constant_us * math.log((end - start_c) / (end - goal_c))
