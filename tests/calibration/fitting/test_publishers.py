"""Rows of one publisher share what their builds have in common, release by release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibration.fitting.cell import Cell, find_series
from calibration.fitting.prices import Evidence
from calibration.fitting.prior import RELEASES, Spread, relate
from calibration.fitting.spread import fit_pooled

HERE = Cell(board="one", core="core", library="lib", release=1.0, series="zoo")


def test_a_series_is_shared_within_a_library_and_fades_with_releases() -> None:
    later = replace(HERE, board="two", release=3.0)
    others = [replace(HERE, series="suite"), replace(HERE, library="else"), later, HERE]
    assert relate("series", [HERE], others)[0] == pytest.approx([0, 0, np.exp(-2 / RELEASES), 1])
    fades = [0, np.exp(-2 / RELEASES), 1]  # one file of code for each core and release
    assert relate("build", [HERE], [replace(HERE, core="else"), later, HERE])[0] == pytest.approx(
        fades)
    assert relate("cell", [HERE], [later, HERE])[0].tolist() == [0, 1]
    own = replace(HERE, series="")
    assert relate("series", [own], [own, HERE])[0].tolist() == [1, 0]  # one's own rows are one


def test_an_unmeasured_board_takes_the_series_of_the_nearest_release() -> None:
    rows = [HERE, replace(HERE, series="suite"), replace(HERE, series="suite"),
            replace(HERE, release=4.0)]
    assert find_series("lib", 0.0, rows) == "suite"
    assert find_series("lib", 3.0, rows) == "zoo"
    assert find_series("else", 3.0, rows) == ""


def test_a_release_held_out_follows_its_publisher() -> None:
    """Planted: builds of one publisher take 1.3 times as long from release 2 on."""
    cells = [replace(HERE, release=float(release), series=series, board=f"{series} board")
             for series in ("zoo", "suite") for release in range(5)]
    slow = np.array([1.3 if cell.series == "zoo" and cell.release >= 2 else 1.0 for cell in cells])
    rows = [row for row in range(10) if cells[row] != cells[3]]
    evidence = Evidence(names=("conv",), amounts=np.full((10, 1), 1e6), measured=1e6 * slow,
                        cells=tuple(cells), networks=("net",) * 10,
                        labels=tuple(map(str, range(10)))).select(rows)

    def error(series: float) -> float:
        fit = fit_pooled(evidence, np.array([0.3]), replace(Spread(), series=series))
        return abs(float(fit.estimate(cells[3]).log[0]) - np.log(1.3))

    assert error(0.14) < min(0.06, error(0.0) / 2)
