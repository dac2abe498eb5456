"""Which quantiles an interval takes: past errors of a measured board, or those of its family."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from calibration.fitting.cell import Cell, Estimate
from calibration.fitting.intervals import (
    CONFORMAL_ROWS,
    LEVEL,
    TAIL_ROWS,
    Band,
    make_band,
    scale_band,
    student_band,
    widest,
)
from calibration.fitting.prices import Fit, log_total
from calibration.fitting.validation import (
    HeldOut,
    effective_count,
    leave_out_closely,
    level_keys,
    scale_of,
    total_error,
)

ASSUMED_BOARDS = 2
"""Boards that assumed deviations are worth: of spread.ASSUMED, 1 / (2 x 0.5^2)."""

NORMAL_REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Standard deviations an interval reaches of errors whose deviation is known."""

SHARED_SDS = (0.0, 0.1)
"""Least and largest deviation both share of what no row informs, between which a borrowed interval
is scaled."""


def choose_band(fit: Fit, left_out: HeldOut | None, cell: Cell, boards: int,
                without: Hashable | None = None) -> Band:
    """Return how far intervals of a cell reach.

    Parameters
    ----------
    fit
        To the rows of `left_out`.
    left_out
        Rows predicted without their family of networks, if they were.
    boards
        Boards the spreads were learnt from, where too few can be held out in turn. Rows, where
        they are all of one board.
    without
        Rows held out under this key are ignored.

    Returns
    -------
    Band
        Of a measured cell: quantiles of errors, as `_measured_band`. Of another: Student t, scaled
        by how wrong held-out boards, cores, libraries or releases are beside what was stated,
        whichever of these is unseen.

    Notes
    -----
    What was not measured borrows rows, and with them the errors networks have there: over the
    networks measured, its interval is never narrower than that of what it borrows from.
    """
    cells = fit.evidence.cells
    libraries = [other.library for other in cells]
    if cell.library not in libraries:
        between = _unseen_band(fit, cell, len(set(libraries)))
        return widest(between, *(
            _borrow(fit, source, between, cell, range(len(cells))) for source in dict.fromkeys(
                replace(cell, board=other.board, core=other.core) for other in cells
                if other.core == cell.core and not cell.board)))
    usable = [] if left_out is None else [
        row for row, key in enumerate(left_out.keys)
        if key != without and np.isfinite(left_out.scores[row])]
    measured = dict.fromkeys(cells[row] for row in usable)
    if left_out is not None and cell in measured:
        return _measured_band(left_out, cells, usable, cell) or student_band(boards)
    between = _unseen_band(fit, cell, boards)
    if left_out is None:
        return between
    lent = [_borrow(fit, source, choose_band(fit, left_out, source, boards, without), cell,
                  [row for row, library in enumerate(libraries) if library == source.library])
            for source in _source_cells(cell, measured)]
    return widest(between, *lent)


def choose_power_band(fit: Fit, left_out: HeldOut | None, cell: Cell,
                      without: Hashable | None = None) -> Band:
    """Return how far intervals of powers reach; of `fitting.cell.known_power`, as `choose_band`.

    Of a board without its firmware, Student t over held-out firmwares; of a regulator, over boards.
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
    sources = dict.fromkeys(replace(other, library="", release=0.0) for other in cells)
    rows = range(len(cells))
    return widest(band, *(_borrow(fit, source, choose_power_band(fit, left_out, source), cell, rows)
                          for source in sources))


def _unseen_band(fit: Fit, cell: Cell, boards: int) -> Band:
    """Student t over what held-out boards, cores, libraries or cells show."""
    cells = fit.evidence.cells
    known = cell.library in {other.library for other in cells}
    found = []
    for keys in level_keys(fit, cell):
        scale, count = scale_of(leave_out_closely(fit, keys).scores, keys)
        found.append(student_band(count if known else len(set(keys)), scale=scale))
    return max(found, key=lambda band: band.up, default=student_band(boards + ASSUMED_BOARDS))


def _borrow(fit: Fit, source: Cell, band: Band, cell: Cell, rows: Sequence[int]) -> Band:
    """Return a source cell's quantiles in deviations of another cell, at any of the rows."""
    theirs, ours = (_deviations(fit, fit.estimate(one), rows) for one in (source, cell))
    return scale_band(band, max(
        float((np.hypot(theirs, shared_sd) / np.hypot(ours, shared_sd)).max()) for shared_sd
        in SHARED_SDS))


def _deviations(fit: Fit, estimate: Estimate, rows: Sequence[int]) -> np.ndarray:
    """Stated standard deviations of the networks of rows at an estimate's prices."""
    _, shares = log_total(fit.evidence.amounts[rows], estimate.log)
    priced = np.einsum("ij,jk,ik->i", shares, estimate.covariance, shares)
    deviations: np.ndarray = np.sqrt(priced + total_error(fit, fit.evidence.concentration[rows]))
    return deviations


def _source_cells(cell: Cell, measured: Iterable[Cell]) -> tuple[Cell, ...]:
    """Cells that one which was not measured takes its prices from.

    Of a board: its releases. Of an unseen one: the same build on boards of its core, or else of
    its library, whether or not it was measured there.
    """
    measured = tuple(measured)
    library = tuple(other for other in measured if other.library == cell.library)
    board = tuple(other for other in library if other.board == cell.board)
    if board or not library:
        return board or measured
    family = tuple(other for other in library if other.core == cell.core) or library
    return tuple(dict.fromkeys(replace(other, release=cell.release, option=cell.option)
                               for other in family))


def _measured_band(left_out: HeldOut, cells: Sequence[Cell], usable: Sequence[int], cell: Cell,
                   ) -> Band | None:
    """Quantiles of errors of a library on a board, or on ever more of its family; None: too few.

    Errors of one family of networks go together: where they are worth too few independent ones for
    either tail, both sides reach alike, and they reach further as Student t does for so few.
    """
    same_library = [row for row in usable if cells[row].library == cell.library]
    near = [row for row in same_library if cells[row].board == cell.board]
    for rows in (near, same_library, usable):
        if len(rows) >= CONFORMAL_ROWS:
            scores = left_out.scores[rows]
            count = effective_count([left_out.keys[row] for row in rows], scores**2)
            band = make_band(scores, basis="conformal" if rows is near else "borrowed",
                             alike=count < TAIL_ROWS)
            if band is not None:
                return scale_band(band, student_band(count).up / NORMAL_REACH)
    return None
