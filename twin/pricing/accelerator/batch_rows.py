"""Rows of a batch on an accelerator: lines of cost, summed, with intervals."""

from __future__ import annotations

import numpy as np

from hwmodels.counts import CAUSES, EVENTS
from hwmodels.paths.timing import Floats
from twin.pricing.accelerator.batch import Ints, Lines, Tasks
from twin.pricing.accelerator.certainty import (
    PARTS,
    band_of,
    bound_energies,
    deviate,
    deviate_tasks,
)
from twin.pricing.accelerator.columns import POWERED
from twin.pricing.batch import Batch, Span, write_ends

BOARDS, ROWS = 1024, 2048
"""Worked out at a time, so that a hundred thousand take no more memory than their answers."""

MULTIPLIED = 1 << 18
"""Multiplications of a product that OpenBLAS does on one core, where others may be busy."""

_HARDWARE = PARTS.index("hardware")
_POWERED_CAUSES = tuple(CAUSES.index(EVENTS[event].cause) for event in POWERED)


def fill_tasks(batch: Batch, span: Span, *, unsure: bool) -> None:
    """Work out rows of a batch on an accelerator.

    Parameters
    ----------
    unsure
        Whether intervals are wanted.
    """
    item, rows = Tasks(span.deployment), span.rows
    batch.ram_bytes[rows] = span.deployment.ram_bytes
    batch.flash_bytes[rows] = span.deployment.flash_bytes
    names = sorted(span.hertz, key=lambda name: name != item.clock)  # neighbours run as SIMD lanes
    columns = [*(span.hertz[name] for name in names), *([] if span.volts is None else [span.volts])]
    found, board = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True) if columns \
        else (np.zeros((1, 0)), np.zeros(len(rows), np.int64))
    order = np.argsort(board.ravel(), kind="stable")
    for begin in range(0, len(found), BOARDS):
        piece = found[begin:begin + BOARDS].T
        lines = item.make_lines(dict(zip(names, piece, strict=False)),
                                None if span.volts is None else piece[-1])
        sums = _Sums(item, lines, unsure=unsure, layers=batch.layers is not None)
        first, last = np.searchsorted(board.ravel()[order], [begin, begin + BOARDS])
        for at in range(first, last, ROWS):
            own = order[at:min(at + ROWS, last)]
            sums.fill(batch, rows[own], board.ravel()[own] - begin)


class _Sums:
    """Lines of some boards, ready to be multiplied by factors and added up."""

    def __init__(self, item: Tasks, lines: Lines, *, unsure: bool, layers: bool) -> None:
        traits, self.lines = lines.traits, lines
        self.layers = item.layers if layers else 1
        layer = traits.layer if layers else np.zeros_like(traits.layer)
        self.spread = item.spread if unsure else None
        self.host = lines.clocks.index(item.deployment.board.core.clock)
        clocks = len(lines.clocks)
        self.clocks = clocks
        own = layers | (traits.part == _HARDWARE)  # only what is bounded by task is separate
        pairs, pair = np.unique(np.where(own, traits.task, 0) * len(PARTS) + traits.part,
                                return_inverse=True)
        self.task, self.part = np.divmod(pairs, len(PARTS))
        self.time = np.concatenate([
            _choose(traits.clock * self.layers + layer, clocks * self.layers),
            _choose(traits.clock * len(CAUSES) + traits.cause, clocks * len(CAUSES)),
            *([_choose(pair.ravel(), len(pairs))] if unsure else [])], axis=1)
        by_layer = _choose(layer, self.layers)
        self.energy = np.concatenate([
            by_layer, _choose(traits.cause, len(CAUSES)),
            *([by_layer * traits.unsure[:, None]] if unsure else [])], axis=1)
        self.tasks = [np.array([number for number, step in enumerate(item.steps)
                                 if layer in step.layers], int)
                       for layer in range(self.layers if layers else 0)]
        self.steps = len(item.steps)

    def fill(self, batch: Batch, at: Ints, board: Ints) -> None:
        """Write rows of a batch, of the board of each."""
        lines, layers, clocks = self.lines, self.layers, self.clocks
        times = _multiply(lines.time_us, board, self.time)
        passed, by_cause, parts = np.split(times, np.cumsum(
            [clocks * layers, clocks * len(CAUSES)]), axis=1)
        passed = passed.reshape(-1, clocks, layers)
        by_cause = by_cause.reshape(-1, clocks, len(CAUSES))
        whole, hertz = passed.sum(axis=2), lines.hertz[board]
        batch.time_us[at] = whole.sum(axis=1)
        main, which = _main_clock(whole, self.host), np.arange(len(at))
        batch.cycles[at] = whole[which, main] * hertz[which, main] * 1e-6
        batch.cause_us[at] = by_cause.sum(axis=1)
        batch.cause_cycles[at] = by_cause[which, main] * (hertz[which, main] * 1e-6)[:, None]
        pj = _multiply(lines.energy_pj, board, self.energy)
        energy, cause_pj, unsure = np.split(pj, [layers, layers + len(CAUSES)], axis=1)
        for number, spent in enumerate(self._spend(passed, hertz, board)):
            energy = energy + spent
            cause_pj[:, _POWERED_CAUSES[number]] += spent.sum(axis=1)
            if self.spread is not None:
                unsure = unsure + spent * lines.powered_unsure[number]
        batch.energy_uj[at], batch.cause_pj[at] = energy.sum(axis=1) * 1e-6, cause_pj
        if batch.layers is not None:
            batch.layers.time_us[at, :layers] = passed.sum(axis=1)
            batch.layers.energy_uj[at, :layers] = energy * 1e-6
        if self.spread is not None:
            self._bound(batch, at, parts, energy, unsure)

    def _spend(self, passed: Floats, hertz: Floats, board: Ints) -> list[Floats]:
        """Energy by layer of what is paid while time passes, in the order of `POWERED`."""
        host_mhz, npu_mhz = hertz[:, self.host, None] * 1e-6, hertz[:, 0, None] * 1e-6
        others = passed[:, 1:].sum(axis=1)
        passed_us = passed[:, 0] + others
        amounts = (passed[:, 0] * host_mhz, passed_us * host_mhz, passed_us * 1e3,
                   others * npu_mhz)
        return [np.where(amount != 0, amount * self.lines.powered_pj[board, number][:, None], 0.0)
                for number, amount in enumerate(amounts)]

    def _bound(self, batch: Batch, at: Ints, parts: Floats, energy_pj: Floats,
               unsure: Floats) -> None:
        """Write intervals: `twin.pricing.accelerator.certainty` says what they are."""
        spread = self.spread
        assert spread is not None
        band = band_of(spread)
        sd = deviate(parts, self.part, batch.time_us[at], spread)
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
