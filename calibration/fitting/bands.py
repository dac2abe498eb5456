"""Which band an interval takes: of what was measured, by past errors; of a stranger, by its kin."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from calibration.fitting.intervals import CONFORMAL_ROWS, Band, make_band, student_band, widest
from calibration.fitting.overlay import Cell
from calibration.fitting.prices import Fit
from calibration.fitting.validation import HeldOut, stranger_scale


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
        Boards the spreads were learnt from: of all cores and libraries, for a core family alone
        has too few. Rows, where they are all of one board.
    without : hashable, optional
        Rows left out under this key are not looked at.

    Returns
    -------
    Band
        Quantiles of the errors on the same board, or on boards of the same library where it has
        too few rows; Student t between boards for a board, or a release, not measured. For a board
        it is scaled by how wrong boards left out are beside what was stated. A library nobody
        measured takes Student t between libraries, scaled by libraries left out.

    Notes
    -----
    What was not measured borrows rows, and with them the errors networks have there: it reaches
    at least as far as what it borrows from.
    """
    cells = fit.evidence.cells
    libraries = [other.library for other in cells]
    if cell.library not in libraries:
        return student_band(len(set(libraries)), scale=stranger_scale(fit, libraries))
    usable = [] if left_out is None else [
        row for row, key in enumerate(left_out.keys)
        if key != without and np.isfinite(left_out.scores[row])]
    known = cell.board in {other.board for other in cells}
    between = student_band(boards, scale=1.0 if known else stranger_scale(fit))
    if left_out is None:
        return between
    measured = dict.fromkeys(cells[row] for row in usable)
    if cell in measured:
        return _measured_band(left_out, cells, usable, cell) or between
    lent = (_measured_band(left_out, cells, usable, lender) for lender in _lenders(cell, measured))
    return widest(between, *(band for band in lent if band is not None))


def _lenders(cell: Cell, measured: Iterable[Cell]) -> tuple[Cell, ...]:
    """Measured cells that one which was not takes its prices from."""
    measured = tuple(measured)
    library = tuple(other for other in measured if other.library == cell.library)
    return (tuple(other for other in library if other.board == cell.board)
            or tuple(other for other in library if other.core == cell.core)
            or library or measured)


def _measured_band(left_out: HeldOut, cells: Sequence[Cell], usable: Sequence[int], cell: Cell,
                   ) -> Band | None:
    """Quantiles of errors on a cell's board, or on ever more of its kin; None: too few."""
    near = [row for row in usable if cells[row].board == cell.board]
    kin = [row for row in usable if cells[row].library == cell.library]
    for rows in (near, kin, usable):
        band = make_band(left_out.scores[rows]) if len(rows) >= CONFORMAL_ROWS else None
        if band is not None:
            return band
    return None
