"""Configurations of a variation in groups of one timing: few boards are made for many clocks.

Rows are cut into spans (`twin.pricing.spans`), and those where ratios of clocks are the same to the
last bit. A supply voltage within a span changes nothing but what energies are in proportion to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, spread_clock, spread_supply
from hwmodels.errors import TwinError
from hwmodels.paths.timing import Floats
from hwmodels.prices import rail_mw_per_ma
from twin.deployment.deployment import Deployment
from twin.pricing.batch import Failure, Variation
from twin.pricing.spans import (
    SUPPLY,
    Span,
    Spans,
    is_varied_clock,
    is_varied_supply,
    split_alike,
)

Made = Deployment | TwinError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Rows of one structure and timing.

    Parameters
    ----------
    rows : ndarray of int, (n,)
        Of the batch.
    deployment : Deployment
        One of them.
    hertz : ndarray of float, (n,)
        Clock of the core.
    top : Deployment or None
        Another of them, where energies differ by supply voltage.
    toward : ndarray of float, (n,)
        How far energies of each row are from those of the first to those of `top`, 0 to 1.
    """

    rows: np.ndarray
    deployment: Deployment
    hertz: Floats
    top: Deployment | None = None
    toward: Floats | None = None


def list_groups(base: Deployment, variation: Variation) -> Iterator[Group | Failure]:
    """Yield configurations in groups, and those that cannot be.

    Parameters
    ----------
    base : Deployment
        What is varied.
    variation : Variation
        Of `read_variation`.

    Notes
    -----
    On an accelerator all are one group: `twin.pricing.spans` cuts them.
    """
    if base.target.offloads and "runtime" not in variation.paths:
        yield from _whole(base, np.arange(variation.rows))
        return
    clocks = [name for name in variation.paths if is_varied_clock(name, variation)]
    shared = base.loads or any(name.startswith("load.") for name in variation.paths)
    clock = clocks[0] if clocks and not shared else None  # others ask by time, not by cycle
    supply = SUPPLY if is_varied_supply(variation) else None

    others = {name: values for name, values in variation.paths.items()
              if name not in (clock, supply)}
    for settings, rows in split_alike(others, np.arange(variation.rows)):
        if clock is None and supply is None:
            yield from _whole(_make(base, settings), rows)
            continue
        spans = Spans(base, variation, settings, [] if clock is None else [clock])
        for span in spans.list(rows, supply):
            yield from [span] if isinstance(span, Failure) else _list_timings(spans, span)


def _list_timings(spans: Spans, span: Span) -> Iterator[Group]:
    """Yield groups of rows of a span in which the ratios of all clocks are the same."""
    whole, board = gather_rows(span.deployment, span.rows), span.deployment.board
    if not span.hertz:
        yield whole if span.volts is None else _supply(whole, span.volts)
        return
    (clock, values), = span.hertz.items()
    spread = spread_clock(board, clock, values)
    supply = {} if span.volts is None else {SUPPLY: board.power.voltage_v}
    for piece in _list_ratios(list(spread.values())):
        own = spans.change({f"clocks.{clock}.frequency_hz": float(values[piece[0]]), **supply})
        group = Group(rows=span.rows[piece], hertz=spread[board.core.clock][piece],
                      deployment=span.deployment.repriced(
                          board=own, runtime=span.deployment.runtime))
        yield group if span.volts is None else _supply(group, span.volts[piece])


def _supply(group: Group, volts: Floats) -> Group:
    """Return a group at one of its supply voltages with each row at its own."""
    board = group.deployment.board
    rails: Any = rail_mw_per_ma(spread_supply(board, np.array([board.power.voltage_v, *volts])))
    away = rails[1:] - rails[0] if np.ndim(rails) else np.zeros_like(volts)
    farthest = int(np.argmax(np.abs(away)))
    if not away[farthest]:  # not known, or the same at each
        return group
    top = change_board(board, {SUPPLY: float(volts[farthest])})
    return replace(group, toward=away / away[farthest], top=group.deployment.repriced(
        runtime=group.deployment.runtime, board=top))


def _make(base: Deployment, settings: dict[str, Any]) -> Made:
    try:
        return base.replace(settings) if settings else base
    except TwinError as error:
        return error


def _whole(made: Made, rows: np.ndarray) -> Iterator[Group | Failure]:
    if isinstance(made, TwinError):
        yield from (Failure(row=row, error=made) for row in rows.tolist())
        return
    yield gather_rows(made, rows)


def gather_rows(deployment: Deployment, rows: np.ndarray) -> Group:
    """Return rows that are all one deployment."""
    board = deployment.board
    return Group(rows=rows, deployment=deployment,
                 hertz=np.full(len(rows), board.clock(board.core.clock).frequency_hz))


def sign_board(board: Board) -> tuple[object, ...]:
    """Return all a clock may change of a board but frequencies; ratios to twelve digits."""
    core = board.clock(board.core.clock).frequency_hz
    return (board.power, tuple((memory.name, memory.wait_states, round(memory.latency_cycles, 9))
                               for memory in board.memories),
            tuple(float(f"{clock.frequency_hz / core:.12g}") for clock in board.clocks))


def _list_ratios(clocks: Sequence[Floats]) -> Iterator[np.ndarray]:
    """Yield places at which the ratios of all clocks are the same to the last bit."""
    ratios = [one / other for one in clocks for other in clocks if one is not other]
    moving = [ratio for ratio in ratios if np.ptp(ratio)]
    if not moving:
        yield np.arange(len(clocks[0]))
        return
    _, group = np.unique(np.stack(moving, axis=1), axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)
