"""Builds of a release with an option share what it changes, in every release of the library."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibration.fitting.cell import Cell, default_build, locate
from calibration.fitting.prices import Evidence
from calibration.fitting.prior import RELEASES, WINDOWED, Spread, relate, share
from calibration.fitting.spread import fit_pooled

HERE = Cell(board="one", core="core", library="lib", release=1.0, option="time")


def test_an_option_is_shared_within_a_library_by_all_releases_built_with_it() -> None:
    later = replace(HERE, board="two", release=3.0)
    others = [replace(HERE, option=""), replace(HERE, library="else"), later, HERE]
    assert relate("option", [HERE], others)[0].tolist() == [0, 0, 1, 1]
    default = replace(HERE, option="")
    assert relate("option", [default], [default, HERE])[0].tolist() == [0, 0]
    fades = [0, np.exp(-2 / RELEASES), 1]  # one file of code for each core and release
    assert relate("build", [HERE], [replace(HERE, core="else"), later, HERE])[0] == pytest.approx(
        fades)
    assert relate("cell", [HERE], [later, HERE])[0].tolist() == [0, 1]


def test_an_option_moves_kernels_that_multiply_and_those_with_a_window_less() -> None:
    names = ("conv", "conv_wide", "pointwise", "depthwise", "fully_connected", "copy", "stream")
    moved = np.array([WINDOWED, WINDOWED, 1, 1, 1, 0, 0])
    assert share(names, "option") == pytest.approx(np.outer(moved, moved))


def test_a_build_is_a_release_with_an_option_where_its_lineage_has_that() -> None:
    default, built = (locate("b", "c", f"x-cube-ai@9.0.0{ending}") for ending in ("", "-time"))
    assert built == replace(default, option="time") and default.option == ""
    assert default_build("x-cube-ai@9.0.0-time") == default_build("x-cube-ai@9.0.0") == (
        "x-cube-ai@9.0.0")
    counted = "tflm-cmsis-nn@2024-os"  # its instructions say what the build changes
    assert locate("b", "c", counted).option == "" and default_build(counted) == counted


def test_an_option_is_learnt_from_other_releases_and_default_builds_keep_their_prices() -> None:
    """Planted: what is built with the option takes 0.7 of the time in each release."""
    cells = [replace(HERE, release=float(release), option=option, board=f"board {release % 2}")
             for option in ("", "time") for release in range(4)]
    takes = np.array([0.7 if cell.option else 1.0 for cell in cells])
    rows = [row for row in range(8) if cells[row].release != 3.0]
    evidence = Evidence(names=("pointwise", "stream"), amounts=np.tile([1e6, 1e3], (8, 1)),
                        measured=1e6 * takes, cells=tuple(cells), networks=("net",) * 8,
                        labels=tuple(map(str, range(8)))).select(rows)
    fit = fit_pooled(evidence, np.array([0.3, 0.3]), Spread())
    default, built = (fit.estimate(cells[row]) for row in (3, 7))
    assert built.log[0] - default.log[0] == pytest.approx(np.log(0.7), abs=0.08)
    assert default.log[0] == pytest.approx(0.0, abs=0.08)
    assert built.prior_covariance[0, 0] - default.prior_covariance[0, 0] == pytest.approx(
        Spread().option**2)
