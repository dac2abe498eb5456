"""Rows of a batch on an accelerator: clocks and supply voltages of it and its host, as columns.

A line is what one event of one task costs one layer, its time and its energy at stated prices on
one board. Boards that differ in clocks and supply are rows of both, and lines are added up by
layer, cause and part of a task by products of matrices. What being powered costs follows from the
time that passes on each clock. Intervals are those of `twin.pricing.accelerator.certainty`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.operating_points import spread_clocks, spread_supply
from hwmodels.columns import Floats, Ints, Keys
from hwmodels.counts import CAUSE_PLACES, CAUSES, Prices
from hwmodels.paths.timing import read_timing, stack_columns
from hwmodels.schedule.run import count_many
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.pricing.accelerator.certainty import (
    PARTS,
    band_of,
    bound_energies,
    deviate,
    deviate_tasks,
    find_reasons,
    knows_host,
    list_draws,
    name_part,
    share_parts,
    was_profiled,
)
from twin.pricing.accelerator.columns import (
    POWERED,
    Hosted,
    TaskLines,
    add_lines,
    divide,
    pass_time,
    price_tasks,
)
from twin.pricing.accelerator.costs import list_extra, list_host_groups, pick_layers, task_of
from twin.pricing.accelerator.energy import path_of
from twin.pricing.batch import Batch, Span, write_ends
from twin.pricing.lines import price_lines, runtime_prices
from twin.pricing.structure import Structure, find_structure
from twin.pricing.task_prices import read_deviations

BOARDS, ROWS = 1024, 2048
"""Worked out at a time, so that a hundred thousand take no more memory than their answers."""

MULTIPLIED = 1 << 18
"""Multiplications of a product that OpenBLAS does on one core, where others may be busy."""

_HARDWARE = PARTS.index("hardware")


def fill_tasks(batch: Batch, span: Span, *, unsure: bool) -> None:
    """Work out rows of a batch on an accelerator, without other masters or weights by DMA.

    Parameters
    ----------
    unsure
        Whether intervals are wanted.
    """
    item, rows, deployment = _Tasks(span.deployment), span.rows, span.deployment
    batch.ram_bytes[rows], batch.flash_bytes[rows] = deployment.ram_bytes, deployment.flash_bytes
    clock = deployment.board.accelerator.clock
    names = sorted(span.hertz, key=lambda name: name != clock)  # neighbours run as SIMD lanes
    columns = [*(span.hertz[name] for name in names), *([] if span.volts is None else [span.volts])]
    found, board = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True) if columns \
        else (np.zeros((1, 0)), np.zeros(len(rows), np.int64))
    order = np.argsort(board.ravel(), kind="stable")
    for begin in range(0, len(found), BOARDS):
        piece = found[begin:begin + BOARDS].T
        spread = spread_clocks(deployment.board, dict(zip(names, piece, strict=False)))
        if span.volts is not None:
            spread = replace(spread, power=spread_supply(spread, piece[-1]))
        sums = _Sums(item, spread, piece.shape[1], unsure=unsure, layers=batch.layers is not None)
        first, last = np.searchsorted(board.ravel()[order], [begin, begin + BOARDS])
        for at in range(first, last, ROWS):
            own = order[at:min(at + ROWS, last)]
            sums.fill(batch, rows[own], board.ravel()[own] - begin)


class _Tasks:
    """A deployment on an accelerator: what none of its clocks and voltages changes."""

    def __init__(self, deployment: Deployment) -> None:
        whole, self.deployment = plan_of(deployment).steps, deployment
        self.steps = [step for step in whole if step.kind != "alias"]
        self.shares = [step.shares for step in self.steps]
        first = np.cumsum([0, *map(len, self.shares)])
        lower, own = cache(partial(lower_network, deployment)), {
            step.layers[0]: part for part, step in zip(first.tolist(), self.steps, strict=False)
            if step.kind == "host"}
        self.groups = [(find_structure(deployment, partial(pick_layers, lower, group), cold=True,
                                       part=tuple(group)), np.array([own[i] for i in group]))
                       for group in list_host_groups(whole)]

    def price(self, board: Board) -> TaskLines:
        """Return what an inference costs on boards that differ in clocks and supply voltage."""
        prices = runtime_prices(self.deployment.repriced(board=board,
                                                         runtime=self.deployment.runtime))
        counts = add_lines(count_many([task_of(step) for step in self.steps], board.accelerator),
                           list_extra(self.deployment, self.steps))
        return price_tasks(divide(counts, self.shares), [
            self._price_host(structure, parts, counts.keys, board, prices)
            for structure, parts in self.groups], prices, board)

    def _price_host(self, structure: Structure, parts: Ints, keys: Keys, board: Board,
                    prices: Prices) -> Hosted:
        """Price the host's kernels, and calling them."""
        priced = price_lines(structure, self.deployment.runtime, prices, np.atleast_2d(
            read_timing(board, structure.arrays.places)))
        numbers = np.array([keys.number(event, place) for event, place, _ in priced.lines.keys],
                           np.int64)
        return Hosted(
            part=parts[priced.lines.layers], key=numbers[priced.lines.number],
            occurred=priced.occurred, exposed=priced.exposed, cycles=priced.cycles,
            energy_pj=priced.energy_pj)


class _Sums:
    """Lines of some boards, ready to be multiplied by factors and added up."""

    def __init__(self, item: _Tasks, board: Board, boards: int, *, unsure: bool,
                 layers: bool) -> None:
        deployment, lines, steps = item.deployment, item.price(board), item.steps
        npu, spread = deployment.board.accelerator, deployment.runtime.mapping.spread
        self.deployment = deployment
        self.spread, self.steps = spread if unsure else None, len(steps)
        self.layers = len(deployment.executed.layers) if layers else 1
        self.clocks = clocks = len(lines.clocks)
        self.host = lines.clocks.index(deployment.board.core.clock)
        self.hertz = np.broadcast_to(stack_columns([
            board.clock(name).frequency_hz for name in lines.clocks]), (boards, clocks))
        self.time_us = lines.cycles * (1e6 / self.hertz)[:, lines.clock]
        self.energy_pj, self.powered_pj = (np.broadcast_to(column, (boards, column.shape[-1]))
                                           for column in (lines.energy_pj, lines.powered_pj))

        task = np.repeat(np.arange(len(steps)), [len(own) for own in item.shares])[lines.part]
        layer = np.array([layer for step in steps for layer in step.layers], np.int64)[
            lines.part] if layers else np.zeros_like(lines.part)
        seen = [was_profiled(task_of(step), npu, spread) for step in steps]
        known = [knows_host(step, deployment.executed, spread) for step in steps]
        named = [lines.keys.known[key][:2] for key in lines.key.tolist()]
        cause = np.array([CAUSE_PLACES[event] for event, _ in named], np.int64)
        part = np.array([
            PARTS.index(name_part(event, place, lines.clocks[clock], npu, seen=seen[own],
                                  known=known[own]))
            for (event, place), clock, own in zip(named, lines.clock.tolist(), task.tolist(),
                                                  strict=True)], np.int64)
        deviations = read_deviations(deployment.board)
        sds = {(event, place): deviations.get(path_of(event, place, deployment.board), 0.0)
               for event, place in {*named, *((event, "") for event in POWERED)}}
        self.powered_unsure = [sds[event, ""] for event in POWERED]
        own = layers | (part == _HARDWARE)  # only what is bounded by task is separate
        pairs, pair = np.unique(np.where(own, task, 0) * len(PARTS) + part, return_inverse=True)
        self.task, self.part = np.divmod(pairs, len(PARTS))
        self.time = np.concatenate([
            _choose(lines.clock * self.layers + layer, clocks * self.layers),
            _choose(lines.clock * len(CAUSES) + cause, clocks * len(CAUSES)),
            *([_choose(pair.ravel(), len(pairs))] if unsure else [])], axis=1)
        by_layer = _choose(layer, self.layers)
        self.energy = np.concatenate([
            by_layer, _choose(cause, len(CAUSES)), *([by_layer * np.array(
                [sds[name] for name in named])[:, None]] if unsure else [])], axis=1)
        self.tasks = [np.array([number for number, step in enumerate(steps)
                                if layer in step.layers], int)
                      for layer in range(self.layers if layers else 0)]

    def fill(self, batch: Batch, at: Ints, board: Ints) -> None:
        """Write rows of a batch, of the board of each."""
        layers, clocks, hertz = self.layers, self.clocks, self.hertz[board]
        passed, by_cause, parts = np.split(
            _multiply(self.time_us, board, self.time),
            np.cumsum([clocks * layers, clocks * len(CAUSES)]), axis=1)
        passed = passed.reshape(-1, clocks, layers)
        by_cause = by_cause.reshape(-1, clocks, len(CAUSES))
        whole = passed.sum(axis=2)
        batch.time_us[at] = whole.sum(axis=1)
        main, which = _main_clock(whole, self.host), np.arange(len(at))
        batch.cycles[at] = whole[which, main] * hertz[which, main] * 1e-6
        batch.cause_us[at] = by_cause.sum(axis=1)
        batch.cause_cycles[at] = by_cause[which, main] * (hertz[which, main] * 1e-6)[:, None]
        pj = _multiply(self.energy_pj, board, self.energy)
        energy, cause_pj, unsure = np.split(pj, [layers, layers + len(CAUSES)], axis=1)
        amounts = pass_time([*passed.swapaxes(0, 1)], [*hertz.T[:, :, None]])
        for number, (event, amount) in enumerate(zip(POWERED, amounts, strict=True)):
            spent = np.where(amount != 0, amount * self.powered_pj[board, number][:, None], 0.0)
            energy = energy + spent
            cause_pj[:, CAUSE_PLACES[event]] += spent.sum(axis=1)
            if self.spread is not None:
                unsure = unsure + spent * self.powered_unsure[number]
        batch.energy_uj[at], batch.cause_pj[at] = energy.sum(axis=1) * 1e-6, cause_pj
        if batch.layers is not None:
            batch.layers.time_us[at, :layers] = passed.sum(axis=1)
            batch.layers.energy_uj[at, :layers] = energy * 1e-6
        if self.spread is not None:
            self._bound(batch, at, parts, energy, unsure)

    def _bound(self, batch: Batch, at: Ints, parts: Floats, energy_pj: Floats,
               unsure: Floats) -> None:
        """Write intervals: `twin.pricing.accelerator.certainty` says what they are."""
        spread = self.spread
        assert spread is not None
        band = band_of(spread)
        shares, own_sd = share_parts(parts, self.part, batch.time_us[at], spread)
        sd = deviate(shares, own_sd, spread)
        for holds, _ in find_reasons(self.deployment, shares):
            batch.extrapolates[at] |= holds
        if batch.draws is not None:
            batch.draws[at] = list_draws(self.deployment, shares, own_sd)
        write_ends(batch, at, sd, band, bound_energies(
            energy_pj.sum(axis=1), unsure.sum(axis=1), sd, band))
        if batch.layers is None:
            return
        alone = deviate_tasks(parts, self.task, self.part, self.steps, spread)
        sd = np.stack([alone[:, own].max(axis=1) if len(own) else np.zeros(len(at))
                       for own in self.tasks], axis=1)
        write_ends(batch.layers, (at[:, None], np.arange(self.layers)), sd, band,
                   bound_energies(energy_pj, unsure, sd, band))


def _multiply(values: Floats, board: Ints, columns: Floats) -> Floats:
    """Add lines up by columns for the board of each row; not known is a sum of what is not.

    In pieces for which BLAS wakes no other core to spin on.

    Parameters
    ----------
    values : ndarray of float, (boards, lines)
        At stated prices.
    board : ndarray of int, (rows,)
        Of each row.
    columns : ndarray of float, (lines, sums)
        What is added up.
    """
    first, of_row = np.unique(board, return_inverse=True)
    lost, filled = np.isnan(values[first]), np.flatnonzero(columns.any(axis=0))
    known, kept = np.where(lost, 0.0, values[first]), columns[:, filled]
    sums, rows = np.zeros((len(first), columns.shape[1])), max(MULTIPLIED // max(1, kept.size), 8)
    for begin in range(0, len(first), rows):
        sums[begin:begin + rows, filled] = known[begin:begin + rows] @ kept
    if lost.any():
        sums[(lost.astype(np.float64) @ columns) != 0] = np.nan
    found: Floats = sums[of_row.ravel()]
    return found


def _choose(number: Ints, count: int) -> Floats:
    """Return a matrix that adds lines up by their number."""
    chosen = np.zeros((len(number), count))
    chosen[np.arange(len(number)), number] = 1.0
    return chosen


def _main_clock(times_us: Floats, core: int) -> Ints:
    """Return the clock most time of each row passes in; the core's where none is longer."""
    longest = np.argmax(times_us, axis=1)
    best = np.take_along_axis(times_us, longest[:, None], axis=1)[:, 0]
    return np.where(best > times_us[:, core], longest, core)
