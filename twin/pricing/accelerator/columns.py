"""Parts of tasks priced as columns: what layers cost on an accelerator, all at once.

A part is what one layer is charged of one task. Its bill is counts times prices, and what being
powered costs while its time passes; lines are made of those that are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.columns import (
    BillColumns,
    ColumnBill,
    ColumnCounts,
    CountColumns,
    Floats,
    Ints,
    read_rates,
    sum_exactly,
)
from hwmodels.counts import EXACT, Bill, BillLine, CountLine, Counts, Prices
from hwmodels.schedule import Npu, TaskRun

POWERED = ("sleep", "clock_tree", "leakage", "npu_idle")
"""What is paid for time that passes, in the order of lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one layer is charged of one task."""

    bill: Bill
    counts: Counts


def price_parts(runs: Sequence[TaskRun], shares: Sequence[tuple[float, ...]],
                extra: Sequence[Sequence[CountLine]], hosted: Sequence[Sequence[BillLine]],
                prices: Prices, board: Board, npu: Npu) -> list[list[Part]]:
    """Price tasks, and what the host does for and between them.

    Parameters
    ----------
    runs : sequence of TaskRun
        What the accelerator did.
    shares : sequence of tuple of float
        What each layer of a task is charged of it; the amounts are whole 64ths, and the largest
        share takes what rounding leaves.
    extra : sequence of sequence of CountLine
        Of each task: what the host does besides setting it up and taking it down.
    hosted : sequence of sequence of BillLine
        Of each task: its kernels on the host, priced; of one with a single layer.
    prices : Prices
        From `twin.pricing.lines.runtime_prices`.
    board, npu : Board, Npu
        Whose clocks pass.

    Returns
    -------
    list of list of Part
        By task and layer; the counts are without those of kernels on the host.
    """
    counts = _split(gather_counts(runs, extra), shares)
    whose = np.repeat(np.arange(len(shares)), [len(own) for own in shares])
    bills = _price(counts, [hosted[task] for task in whose.tolist()], prices, board, npu)
    energies = sum_exactly(bills.energy_pj, bills.first)
    parts = iter([Part(bill=ColumnBill(bills, place, None if energy != energy else energy),
                       counts=ColumnCounts(counts, place))
                  for place, energy in enumerate(energies)])
    return [[next(parts) for _ in own] for own in shares]


def gather_counts(runs: Sequence[TaskRun],
                  extra: Sequence[Sequence[CountLine]]) -> CountColumns:
    """Return the events of tasks of one machine and of the host, one task behind the other."""
    pieces = []
    for run, lines in zip(runs, extra, strict=True):
        counts = run.counts
        assert isinstance(counts, ColumnCounts), "an accelerator's tasks are counted as columns"
        piece = keys, key, occurred, exposed = counts.slices()
        if lines:
            piece = (keys, np.append(key, np.array([keys.number(
                line.event, line.place, line.operand) for line in lines], np.int64)),
                np.append(occurred, [float(line.occurred) for line in lines]),
                np.append(exposed, [float(line.exposed) for line in lines]))
        pieces.append(piece)
    keys = pieces[0][0]
    assert all(piece[0] is keys for piece in pieces), "one machine has one list of keys"
    key, occurred, exposed = (np.concatenate([piece[column] for piece in pieces])
                              for column in (1, 2, 3))
    first = np.concatenate([[0], np.cumsum([len(piece[1]) for piece in pieces])])
    return CountColumns(keys=keys, first=first, key=key, occurred=occurred, exposed=exposed)


def _split(counts: CountColumns, shares: Sequence[tuple[float, ...]]) -> CountColumns:
    """Part counts by shares; lines of which nothing falls on a part are left out."""
    each = np.array([len(own) for own in shares])
    if (each == 1).all():
        return counts
    task = np.repeat(np.arange(len(each)), each)
    share = np.array([one for own in shares for one in own])
    heir = np.array([place == own.index(max(own)) for own in shares for place in range(len(own))])
    length = np.diff(counts.first)[task]
    part = np.repeat(np.arange(len(task)), length)
    line = (np.arange(len(part)) - (np.cumsum(length) - length)[part]
            + counts.first[task[part]])
    alone = each[task[part]] == 1
    occurred, exposed = (_divide(amounts, line, share[part], heir[part])
                         for amounts in (counts.occurred, counts.exposed))
    kept = alone | (occurred != 0) | (exposed != 0)
    first = np.searchsorted(part[kept], np.arange(len(task) + 1))
    return CountColumns(keys=counts.keys, first=first, key=counts.key[line[kept]],
                        occurred=occurred[kept], exposed=exposed[kept])


def _divide(amounts: Floats, line: Ints, share: Floats, heir: np.ndarray) -> Floats:
    """Parts of the amounts of lines, in 64ths."""
    whole = amounts[line]
    parts = np.where(heir, 0.0, np.floor(whole * share * EXACT) / EXACT)
    given = np.bincount(line, weights=parts, minlength=len(amounts))
    return np.where(heir, whole - given[line], parts)


def _price(counts: CountColumns, hosted: Sequence[Sequence[BillLine]], prices: Prices,
           board: Board, npu: Npu) -> BillColumns:
    """Return counts times prices, the host's kernels, and what being powered costs meanwhile."""
    keys, parts = counts.keys, len(counts.first) - 1
    powered = [keys.number(event) for event in POWERED]
    lines = [(place, line) for place, own in enumerate(hosted) for line in own]
    own_keys = [keys.number(line.event, line.place, line.operand) for _, line in lines]
    rates, clocks = read_rates(
        keys, {*np.unique(counts.key).tolist(), *powered}, prices,
        tuple(dict.fromkeys((npu.clock, board.core.clock, *(line.clock for _, line in lines)))))
    owner, key, clock = (np.append(column, np.array(more, np.int64)) for column, more in (
        (counts.owners(), [place for place, _ in lines]), (counts.key, own_keys),
        (rates.clock[counts.key], [clocks.index(line.clock) for _, line in lines])))
    occurred, exposed, cycles, energy_pj = (
        np.append(column, np.array([getattr(line, name) for _, line in lines], np.float64))
        for name, column in (
            ("occurred", counts.occurred), ("exposed", counts.exposed),
            ("cycles", counts.exposed * rates.cycles[counts.key]),
            ("energy_pj", counts.occurred * rates.energy_pj[counts.key])))
    order = np.argsort(owner, kind="stable")
    owner, key, clock = (column[order] for column in (owner, key, clock))
    occurred, exposed, cycles, energy_pj = (
        column[order] for column in (occurred, exposed, cycles, energy_pj))
    passed = np.stack([np.array(_sum_clock(cycles, owner, parts, clock == number))
                       for number in range(len(clocks))], axis=1)
    amounts = pass_time(passed, clocks, board)
    place, which = np.nonzero(amounts)
    more, own = amounts[place, which], np.array(powered)[which]
    nothing, whole = np.zeros(len(own)), np.concatenate([owner, place])
    order = np.argsort(whole, kind="stable")
    return BillColumns(
        keys=keys, clocks=clocks, key=np.append(key, own)[order],
        clock=np.append(clock, np.where(which == POWERED.index("npu_idle"), 0, 1))[order],
        passed=tuple([{name: count for name, count in zip(clocks, row, strict=True) if count}
                      for row in passed.tolist()]),
        first=np.searchsorted(whole[order], np.arange(parts + 1)),
        occurred=np.append(occurred, more)[order], exposed=np.append(exposed, nothing)[order],
        cycles=np.append(cycles, nothing)[order],
        energy_pj=np.append(energy_pj, more * rates.energy_pj[own])[order])


def _sum_clock(cycles: Floats, owner: Ints, parts: int, own: np.ndarray) -> list[float]:
    """Cycles of one clock of each part."""
    return sum_exactly(cycles[own], np.searchsorted(owner[own], np.arange(parts + 1)))


def pass_time(passed: Floats, clocks: Sequence[str], board: Board) -> Floats:
    """Return what is paid for while cycles pass, in the order of `POWERED`.

    Parameters
    ----------
    passed : ndarray of float, (n, clocks)
        Cycles of each clock.
    clocks : sequence of str
        The accelerator's, the host's, then any others.
    board : Board
        Whose clocks they are.

    Returns
    -------
    ndarray of float, (n, 4)
        Host cycles waited, host cycles, nanoseconds, idle cycles of the accelerator.
    """
    hertz = [board.clock(clock).frequency_hz for clock in clocks]
    times = [passed[:, place] / own * 1e6 for place, own in enumerate(hertz)]
    npu_hz, host_hz, passed_us = hertz[0], hertz[1], times[0] + times[1]
    if len(times) > 2:
        passed_us = np.array([math.fsum(row) for row in zip(*times, strict=True)])
    npu_us = times[0]
    return np.stack([npu_us * 1e-6 * host_hz, passed_us * 1e-6 * host_hz, passed_us * 1e3,
                     (passed_us - npu_us) * 1e-6 * npu_hz], axis=1)
