"""Lines of tasks priced as columns: what layers cost on an accelerator, on any number of boards.

A part is what one layer is charged of one task. Its bill is counts times prices, and what being
powered costs while its time passes. `predict` is the case of one board, whose lines are made into
nouns when they are looked at; many boards have a row each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.columns import (
    BillColumns,
    ColumnBill,
    ColumnCounts,
    CountColumns,
    Floats,
    Ints,
    Keys,
    sum_exactly,
)
from hwmodels.counts import EXACT, Bill, CountLine, Counts, Prices
from hwmodels.frozen import entity, frozen
from hwmodels.paths.timing import stack_columns
from hwmodels.schedule.prices import CYCLE_EVENTS
from hwmodels.schedule.run import TaskCounts
from twin.pricing.lines import spend

POWERED = ("sleep", "clock_tree", "leakage", "npu_idle")
"""What is paid for time that passes, in the order of lines."""


@frozen
class Part:
    """What one layer is charged of one task."""

    bill: Bill
    counts: Counts


@entity
class Hosted:
    """Lines of kernels on the host, priced.

    Parameters
    ----------
    part, key : ndarray of int, (lines,)
        Whose, and which event at which place.
    occurred, exposed, cycles, energy_pj : ndarray of float, (boards, lines)
        As of a `BillLine`; an energy that is not known is NaN.
    """

    part: Ints
    key: Ints
    occurred: Floats
    exposed: Floats
    cycles: Floats
    energy_pj: Floats


@entity
class TaskLines:
    """What tasks cost, line by line: those of tasks, then those of kernels on the host.

    Parameters
    ----------
    keys
        What `key` numbers.
    clocks
        What `clock` numbers: the accelerator's, the host's, then any others.
    counted
        How many lines are of tasks.
    part, key, clock : ndarray of int, (lines,)
        Of each.
    occurred, exposed, cycles, energy_pj : ndarray of float, (boards, lines)
        As of a `BillLine`; an energy that is not known is NaN.
    powered_pj : ndarray of float, (powered,) or (boards, powered)
        Price of one of what is paid while time passes.
    """

    keys: Keys
    clocks: tuple[str, ...]
    counted: int
    part: Ints
    key: Ints
    clock: Ints
    occurred: Floats
    exposed: Floats
    cycles: Floats
    energy_pj: Floats
    powered_pj: Floats


def add_lines(counts: TaskCounts, extra: Sequence[Sequence[CountLine]]) -> TaskCounts:
    """Return counts with what the host does besides launching each task."""
    listed = [(task, line) for task, own in enumerate(extra) for line in own]
    amounts = np.array([line.occurred for _, line in listed], np.float64)
    return replace(
        counts, shown=np.append(counts.shown, np.ones(len(listed), np.bool_)),
        task=np.append(counts.task, np.array([task for task, _ in listed], np.int64)),
        key=np.append(counts.key, np.array([counts.keys.number(
            line.event, line.place, line.operand) for _, line in listed], np.int64)),
        occurred=np.concatenate([counts.occurred, np.broadcast_to(
            amounts, (len(counts.occurred), len(listed)))], axis=1))


def divide(counts: TaskCounts, shares: Sequence[tuple[float, ...]]) -> TaskCounts:
    """Return counts of parts instead of tasks, in the order of parts.

    Parameters
    ----------
    shares
        What each layer of a task is charged of it; the amounts are whole 64ths, and the largest
        share takes what rounding leaves. Lines of which nothing falls on a part are omitted.
    """
    each = np.array([len(own) for own in shares])
    first = np.cumsum(each) - each
    share = np.array([one for own in shares for one in own])
    heirs = np.array([place == own.index(max(own)) for own in shares for place in range(len(own))])
    times = each[counts.task]
    line = np.repeat(np.arange(len(counts.task)), times)
    starts = np.cumsum(times) - times
    part = first[counts.task][line] + np.arange(len(line)) - starts[line]
    whole, heir = np.take(counts.occurred, line, axis=1), heirs[part]
    if not heir.all():
        parts = np.where(heir, 0.0, np.floor(whole * share[part] * EXACT) / EXACT)
        whole = np.where(heir, whole - np.add.reduceat(parts, starts, axis=1)[:, line], parts)
    some = np.flatnonzero((times[line] == 1) | whole.any(axis=0))
    kept = some[np.argsort(part[some], kind="stable")]
    return replace(counts, task=part[kept], key=counts.key[line[kept]],
                   shown=counts.shown[line[kept]], occurred=whole[:, kept])


def price_tasks(counts: TaskCounts, hosted: Sequence[Hosted], prices: Prices,
                board: Board) -> TaskLines:
    """Return what parts of tasks cost.

    Parameters
    ----------
    counts
        Of parts, from `divide`.
    prices
        From `twin.pricing.lines.runtime_prices`; of many boards each may be an array.
    """
    keys, npu = counts.keys, board.accelerator
    powered = [prices.price(event, "") for event in POWERED]
    key = np.concatenate([counts.key, *(one.key for one in hosted)])
    used, number = np.unique(key, return_inverse=True)
    found = [prices.price(*keys.known[one][:2]) for one in used.tolist()]
    clocks = tuple(dict.fromkeys((npu.clock, board.core.clock, *(one.clock for one in found))))
    rates, pj = (stack_columns(column)[..., number[:len(counts.key)]] for column in (
        [one.cycles for one in found], [_known(one.pj) for one in found]))
    occurred = counts.occurred[counts.machines]
    exposed = np.where(counts.shown, occurred, 0.0)
    columns = [(occurred, exposed, exposed * rates, spend(
        occurred, pj) * _stretch_active(counts, exposed, rates)), *(
        (one.occurred, one.exposed, one.cycles, one.energy_pj) for one in hosted)]
    boards = max(len(column) for own in columns for column in own)
    occurred, exposed, cycles, energy_pj = (np.concatenate([np.broadcast_to(
        own[place], (boards, own[place].shape[-1])) for own in columns], axis=1)
        for place in range(4))
    return TaskLines(
        keys=keys, clocks=clocks, counted=len(counts.key), key=key,
        part=np.concatenate([counts.task, *(one.part for one in hosted)]),
        clock=np.array([clocks.index(one.clock) for one in found], np.int64)[number],
        occurred=occurred, exposed=exposed, cycles=cycles, energy_pj=energy_pj,
        powered_pj=stack_columns([_known(one.pj) for one in powered]))


def _stretch_active(counts: TaskCounts, exposed: Floats, rates: Floats) -> Floats | float:
    """Return by how much active cycles are more than counted, where learnt prices stretch tasks.

    Whatever a part's cycles are spent on, their number is that of `npu_active`; 1 for other lines.
    """
    events = np.array([counts.keys.known[key][0] for key in counts.key.tolist()], str)
    passes = np.isin(events, CYCLE_EVENTS)
    if (rates[..., passes] == 1).all():
        return 1.0
    _, first, part = np.unique(counts.task, return_index=True, return_inverse=True)
    stated, passed = (np.add.reduceat(np.where(passes, cycles, 0.0), first, axis=-1)[..., part]
                      for cycles in (exposed, exposed * rates))
    return np.where(events == "npu_active", passed / np.maximum(stated, 1 / EXACT), 1.0)


def _known(pj: float | None) -> float:
    return np.nan if pj is None else pj


def bill_parts(lines: TaskLines, parts: int, board: Board) -> list[Part]:
    """Return the parts of the one board of lines, with what being powered costs meanwhile."""
    keys = lines.keys
    counts = CountColumns(
        keys=keys, first=np.searchsorted(lines.part[:lines.counted], np.arange(parts + 1)),
        key=lines.key[:lines.counted], occurred=lines.occurred[0, :lines.counted],
        exposed=lines.exposed[0, :lines.counted])
    order = np.argsort(lines.part, kind="stable")
    owner, key, clock = (column[order] for column in (lines.part, lines.key, lines.clock))
    occurred, exposed, cycles, energy_pj = (column[0, order] for column in (
        lines.occurred, lines.exposed, lines.cycles, lines.energy_pj))
    passed = np.stack([np.array(_sum_clock(cycles, owner, parts, clock == number))
                       for number in range(len(lines.clocks))], axis=1)
    hertz = [board.clock(clock).frequency_hz for clock in lines.clocks]
    amounts = np.stack(pass_time([passed[:, place] / own * 1e6
                                  for place, own in enumerate(hertz)], hertz), axis=1)
    place, which = np.nonzero(amounts)
    more, own = amounts[place, which], np.array([keys.number(event) for event in POWERED])[which]
    nothing, whole = np.zeros(len(own)), np.concatenate([owner, place])
    order = np.argsort(whole, kind="stable")
    bills = BillColumns(
        keys=keys, clocks=lines.clocks, key=np.append(key, own)[order],
        clock=np.append(clock, np.where(which == POWERED.index("npu_idle"), 0, 1))[order],
        passed=tuple([{name: count for name, count in zip(lines.clocks, row, strict=True) if count}
                      for row in passed.tolist()]),
        first=np.searchsorted(whole[order], np.arange(parts + 1)),
        occurred=np.append(occurred, more)[order], exposed=np.append(exposed, nothing)[order],
        cycles=np.append(cycles, nothing)[order],
        energy_pj=np.append(energy_pj, more * lines.powered_pj[which])[order])
    return [Part(bill=ColumnBill(bills, place, None if energy != energy else energy),
                 counts=ColumnCounts(counts, place))
            for place, energy in enumerate(sum_exactly(bills.energy_pj, bills.first))]


def _sum_clock(cycles: Floats, owner: Ints, parts: int, own: np.ndarray) -> list[float]:
    """Cycles of one clock of each part."""
    return sum_exactly(cycles[own], np.searchsorted(owner[own], np.arange(parts + 1)))


def pass_time(times_us: Sequence[Floats], hertz: Sequence[Any]) -> list[Floats]:
    """Return what is paid for while time passes, in the order of `POWERED`.

    Parameters
    ----------
    times_us : sequence of ndarray of float, (...)
        Of each clock: the accelerator's, the host's, then any others.
    hertz
        Of the first two.

    Returns
    -------
    list of ndarray of float, (...)
        Host cycles waited, host cycles, nanoseconds, idle cycles of the accelerator.
    """
    npu_us, passed_us = times_us[0], sum(times_us[1:], times_us[0])
    return [npu_us * 1e-6 * hertz[1], passed_us * 1e-6 * hertz[1], passed_us * 1e3,
            (passed_us - npu_us) * 1e-6 * hertz[0]]
