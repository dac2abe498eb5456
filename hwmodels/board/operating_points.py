"""Operating points of a board: many clocks and supply voltages as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hwmodels.board.assembly import follow_hertz, supplied
from hwmodels.board.facts import Board
from hwmodels.board.file import read_section
from hwmodels.board.power import Power
from hwmodels.board.rules import frequencies_of


def spread_clock(board: Board, name: str, hertz: np.ndarray) -> dict[str, np.ndarray]:
    """Return the frequencies of all clocks at many frequencies of one, in Hz.

    Parameters
    ----------
    board
        Whose clocks are derived from one another.
    name
        Clock with a frequency of its own.
    hertz : ndarray of float, (n,)
        Of it; nothing is checked.

    Returns
    -------
    dict of str to ndarray of float, (n,)
        By clock, what a board changed to each frequency has.
    """
    section = read_section(board.document, board.name)
    return {clock.name: np.broadcast_to(frequencies_of(section, clock.name, {name: hertz}),
                                        np.shape(hertz))
            for clock in board.clocks}


def spread_clocks(board: Board, hertz: Mapping[str, np.ndarray]) -> Board:
    """Return many boards in one that differ in clocks: what follows those are arrays.

    Parameters
    ----------
    board
        One of them, whose wait states and voltage scale are those of all.
    hertz : mapping of str to ndarray of float, (n,)
        Frequency by clock with one of its own; nothing is checked.

    Returns
    -------
    Board
        Whose clocks, latencies and ratios are numbers, or of shape (n,). It is only fit for what
        says that it takes such; it has no hash.
    """
    section = read_section(board.document, board.name)
    return replace(board, **follow_hertz(
        section, lambda name: frequencies_of(section, name, hertz)))


def spread_supply(board: Board, voltage_v: np.ndarray) -> Power:
    """Return a board's power at many supply voltages: what follows them are arrays.

    Parameters
    ----------
    board
        Whose currents are drawn from the supply.
    voltage_v : ndarray of float, (n,)
        Of the supply; nothing is checked.
    """
    section = read_section(board.document, board.name)
    return replace(board.power, **supplied(section, voltage_v))


def bounds_of_supply(board: Board) -> tuple[float, ...]:
    """Return supply voltages between which a rule of the board is kept, or broken, throughout."""
    section = read_section(board.document, board.name)
    span = section.supply.voltage_range_v
    lowest = (memory.wait_states_min_supply_v for memory in section.memories.values())
    return (*(() if span is None else span.value),
            *(one.value for one in lowest if one is not None))


def range_of_supply(board: Board) -> tuple[float, float, str] | None:
    """Return the lowest and highest supply voltage of the part, and where that is stated."""
    section = read_section(board.document, board.name)
    span = section.supply.voltage_range_v
    return None if span is None else (
        *span.value, f"{span.kind}: {section.sources.get(span.source, span.source)}")
