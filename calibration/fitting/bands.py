"""Which band an interval takes: of what was measured, by past errors; of a stranger, by its kin."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from calibration.fitting.cell import Cell, Estimate
from calibration.fitting.intervals import (
    CONFORMAL_ROWS,
    Band,
    make_band,
    scale_band,
    student_band,
    widest,
)
from calibration.fitting.prices import Fit, log_total
from calibration.fitting.validation import (
    HeldOut,
    leave_out_closely,
    level_keys,
    scale_of,
    total_error,
)

ASSUMED_BOARDS = 2
"""Boards the deviations are worth that powers are assumed to have; assumed."""

UNTOLD = (0.0, 0.1)
"""Deviations of what no row tells of, which both share, between which what is lent reaches."""


def choose_band(fit: Fit, left_out: HeldOut | None, cell: Cell, boards: int,
                without: Hashable | None = None) -> Band:
    """Return how far intervals of a cell reach.

    Parameters
    ----------
    fit : Fit
        To the rows of `left_out`.
    left_out : HeldOut or None
        Rows predicted without their network, if they were.
    cell : Cell
        Whose interval it is.
    boards : int
        Boards the spreads were learnt from, where too few can be left out in turn. Rows, where
        they are all of one board.
    without : hashable, optional
        Rows left out under this key are not looked at.

    Returns
    -------
    Band
        Of a measured cell: quantiles of errors, as `_measured_band`. Of another: Student t, scaled
        by how wrong boards, cores, libraries or releases left out are beside what was stated,
        whichever of these the cell is a stranger by.

    Notes
    -----
    What was not measured borrows rows, and with them the errors networks have there: over the
    networks measured, its interval is never narrower than that of what it borrows from.
    """
    cells = fit.evidence.cells
    libraries = [other.library for other in cells]
    if cell.library not in libraries:
        between = _stranger_band(fit, cell, len(set(libraries)))
        return widest(between, *(
            _lend(fit, lender, between, cell, range(len(cells))) for lender in dict.fromkeys(
                replace(cell, board=other.board, core=other.core) for other in cells
                if other.core == cell.core and not cell.board)))
    usable = [] if left_out is None else [
        row for row, key in enumerate(left_out.keys)
        if key != without and np.isfinite(left_out.scores[row])]
    measured = dict.fromkeys(cells[row] for row in usable)
    if left_out is not None and cell in measured:
        return _measured_band(left_out, cells, usable, cell) or student_band(boards)
    between = _stranger_band(fit, cell, boards)
    if left_out is None:
        return between
    lent = [_lend(fit, lender, choose_band(fit, left_out, lender, boards, without), cell,
                  [row for row, library in enumerate(libraries) if library == lender.library])
            for lender in _lenders(cell, measured)]
    return widest(between, *lent)


def choose_power_band(fit: Fit, left_out: HeldOut | None, cell: Cell,
                      without: Hashable | None = None) -> Band:
    """Return how far intervals of powers reach; of `fitting.cell.known_power`, as `choose_band`.

    Of a board without its firmware, Student t over firmwares left out; of a regulator, over boards.
    Deviations between boards were assumed before any: they are worth `ASSUMED_BOARDS` more.
    """
    cells = fit.evidence.cells
    boards = tuple(other.board for other in cells)
    if cell.library:
        return choose_band(fit, left_out, cell, len(set(boards)), without)
    keys = cells if cell.board in boards else boards
    scale, count = (scale_of(leave_out_closely(fit, keys).scores, keys) if len(set(keys)) > 1
                    else (1.0, 1))
    band = student_band(count + ASSUMED_BOARDS, scale=scale)
    if cell.board in boards:
        return band
    lenders = dict.fromkeys(replace(other, library="", release=0.0) for other in cells)
    rows = range(len(cells))
    return widest(band, *(_lend(fit, lender, choose_power_band(fit, left_out, lender), cell, rows)
                          for lender in lenders))


def _stranger_band(fit: Fit, cell: Cell, boards: int) -> Band:
    """Student t over what boards, cores, libraries or cells left out show."""
    known = cell.library in {other.library for other in fit.evidence.cells}
    found = []
    for keys in level_keys(fit, cell):
        scale, count = scale_of(leave_out_closely(fit, keys).scores, keys)
        found.append(student_band(count if known else len(set(keys)), scale=scale))
    return max(found, key=lambda band: band.up, default=student_band(boards))


def _lend(fit: Fit, lender: Cell, band: Band, cell: Cell, rows: Sequence[int]) -> Band:
    """Return how far a lender's band reaches in deviations of another cell, at any of the rows."""
    theirs, ours = (_deviations(fit, fit.estimate(one), rows) for one in (lender, cell))
    return scale_band(band, max(
        float((np.hypot(theirs, untold) / np.hypot(ours, untold)).max()) for untold in UNTOLD))


def _deviations(fit: Fit, estimate: Estimate, rows: Sequence[int]) -> np.ndarray:
    """Stated standard deviations of the networks of rows at an estimate's prices."""
    _, shares = log_total(fit.evidence.amounts[rows], estimate.log)
    priced = np.einsum("ij,jk,ik->i", shares, estimate.covariance, shares)
    deviations: np.ndarray = np.sqrt(
        priced + total_error(fit, fit.evidence.concentration[rows]))
    return deviations


def _lenders(cell: Cell, measured: Iterable[Cell]) -> tuple[Cell, ...]:
    """Cells that one which was not measured takes its prices from.

    Of a board: its releases. Of a stranger: the same release on boards of its core, or else of its
    library, whether or not it was measured there.
    """
    measured = tuple(measured)
    library = tuple(other for other in measured if other.library == cell.library)
    board = tuple(other for other in library if other.board == cell.board)
    if board or not library:
        return board or measured
    kin = tuple(other for other in library if other.core == cell.core) or library
    return tuple(dict.fromkeys(replace(other, release=cell.release) for other in kin))


def _measured_band(left_out: HeldOut, cells: Sequence[Cell], usable: Sequence[int], cell: Cell,
                   ) -> Band | None:
    """Quantiles of errors of a library on a board, or on ever more of its kin; None: too few."""
    kin = [row for row in usable if cells[row].library == cell.library]
    near = [row for row in kin if cells[row].board == cell.board]
    for rows in (near, kin, usable):
        if len(rows) >= CONFORMAL_ROWS:
            band = make_band(left_out.scores[rows],
                             basis="conformal" if rows is near else "borrowed")
            if band is not None:
                return band
    return None
