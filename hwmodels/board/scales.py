"""Voltage scales of a board: which are lowest, and which a changed clock allows."""

from __future__ import annotations

from hwmodels.board.rules import find_broken, frequency_of, main_core_clock
from hwmodels.board.schema import Section

CURRENTS = ("leakage_ma", "clock_tree_ma_per_mhz", "activity_ma_per_mhz")
"""Tables of `power` without which energy is not known."""


def follow_clocks(before: Section, after: Section) -> Section:
    """Return a board file at the lowest voltage scale its changed clocks may run at.

    Parameters
    ----------
    before, after
        Validated board files; `before` keeps every rule.

    Returns
    -------
    Section
        `after` where no clock with a limit by scale changed, or no scale would do; else at the
        lowest scale at which every rule is kept and currents are known where they were.
    """
    for scale in list_scales(after):
        supply = after.supply.model_copy(update={"voltage_scale": scale})
        lower = after.model_copy(update={"supply": supply})
        if find_broken(lower) is None and (_has_currents(lower) or not _has_currents(before)):
            return lower if _changes_clocks(before, lower) else after
    return after


def list_scales(section: Section) -> tuple[str, ...]:
    """Return voltage scales, lowest first: that which allows the core the lowest clock."""
    core = section.clocks.get(main_core_clock(section)) if section.cores else None
    limits = {} if core is None else core.max_hz_by_scale
    return tuple(sorted(limits, key=lambda scale: limits[scale].value))


def _changes_clocks(before: Section, after: Section) -> bool:
    return any(name not in before.clocks
               or frequency_of(before, name) != frequency_of(after, name)
               for name, clock in after.clocks.items() if clock.max_hz_by_scale)


def _has_currents(section: Section) -> bool:
    """Whether currents are known at the scale in force."""
    tables = [getattr(section.power, name) for name in CURRENTS]
    found = [table.get(section.supply.voltage_scale) for table in tables]
    return all(leaf is not None and leaf.value is not None for leaf in found)
