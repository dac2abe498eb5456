"""What is believed of prices before a board is measured: one covariance over all of them.

A price is held as the logarithm of its ratio to what the datasheet, or the lowered kernel, says.
The price of one board and runtime is a sum of deviations, each shared by those who have something
in common:

    log price = mean + everything + library + core + release + option + board
                + (core and release), or of currents (board and release)

and, of currents, the error of a board's file, as large as the file states.

An option is how a release was built where not by default: all releases built with it share it.

So what one board teaches informs others of its family, and an unseen one keeps the spread of those
it is unlike. Each deviation has a part common to all prices (a faster compiler moves everything)
and a part of each price by itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import fields

import numpy as np

from calibration.errors import FitError
from calibration.fitting.cell import PARTS, Cell
from hwmodels.errors import check_word
from hwmodels.frozen import entity, frozen

RELEASES = 4.0
"""Releases of a library after which what two have in common has fallen to 1/e; assumed."""

WINDOWED = 0.7
"""Share of what an option changes of other kernels that multiply, in convolutions with a window:
by the scores of rows held out, of 0, 0.3, 0.5, 0.7 and 1.
"""

PART_SD = 0.25
"""By how much each of two parts of a price may differ from it; chosen by leaving networks out."""

PRODUCTS, ALIKE = ("conv", "pointwise", "depthwise", "fully_connected"), 0.3
"""Prices of kernels that multiply and accumulate, and the correlation of what each is off by: one
hand wrote them. By the scores of rows held out; without it dense layers, which hardly a row shows
but the dense autoencoder's, follow all prices alone.
"""

WAITING = ("memory", "stream")
"""Prices of time that wait for memories: faster code shortens no waiting, a board's memories do."""

LEVELS = ("everything", "library", "core", "release", "option", "board", "build", "cell", "file")
"""What two cells may have in common; "build" is the code of one release for one core, "cell" one
board under one firmware, "file" the error of a board's file, in multiples of the deviation it
states.
"""


@entity
class Part:
    """One deviation: who shares it, and the covariance of its prices (names x names)."""

    level: str
    covariance: np.ndarray

    def __post_init__(self) -> None:
        """Refuse a level that is not known."""
        check_word("level", self.level, LEVELS, FitError)


@entity
class Prior:
    """Mean and covariance of log prices.

    Parameters
    ----------
    mean
        Shape (names,): 0 is what the datasheet says.
    parts
        Independent deviations that add up.
    """

    names: tuple[str, ...]
    mean: np.ndarray
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        """Refuse a mean or covariance that is not of every price."""
        count = len(self.names)
        if self.mean.shape != (count,):
            raise FitError(f"prior mean of shape {self.mean.shape} for {count} prices")
        for part in self.parts:
            if part.covariance.shape != (count, count):
                raise FitError(f"prior of level {part.level}: covariance of shape "
                               f"{part.covariance.shape} for {count} prices")

    @property
    def covariance(self) -> np.ndarray:
        """Of one cell whose file is exact: the sum of its parts."""
        return self.of(0.0)

    def of(self, stated_sd: float, option: str = "") -> np.ndarray:
        """Return the covariance of one cell on its own, whose file states a deviation."""
        known = {"file": stated_sd**2, "option": float(option != "")}
        return np.asarray(sum(part.covariance * known.get(part.level, 1.0) for part in self.parts))


@frozen
class Spread:
    """Standard deviations of log prices by level, and of what no price explains.

    Parameters
    ----------
    everything
        Common to all prices everywhere: networks are not what prices were stated of.
    library, core, release, option, board, build, cell
        Common to all prices of those who share the level; 0 is none, as of `everything`.
    own_core, own_release, own_board, own_build, own_cell
        Of each price by itself, as a share of its stated deviation: what is little known of a
        library differs more between its releases. A library's own are stated, not learnt.
    network
        Error common to all rows of one network on one library: structure nothing here models.
    row
        What is left of a single row: measurement, build, placement.
    """

    everything: float = 0.0
    library: float = 0.3
    core: float = 0.1
    release: float = 0.14
    option: float = 0.14
    board: float = 0.05
    build: float = 0.03
    cell: float = 0.0
    own_core: float = 0.3
    own_release: float = 0.3
    own_board: float = 0.15
    own_build: float = 0.1
    own_cell: float = 0.0
    network: float = 0.05
    row: float = 0.02

    def __post_init__(self) -> None:
        """Refuse a spread that is negative or infinite, and errors that are none."""
        for field in fields(self):
            value = getattr(self, field.name)
            none = value == 0 and field.name not in ("network", "row")
            if not (0 < value < math.inf or none):
                raise FitError(f"spread {field.name} is {getattr(self, field.name)}; accepted: "
                               "above 0")


def state(names: Sequence[str], stated_sd: np.ndarray) -> np.ndarray:
    """Return the covariance of prices as stated, shape (names, names).

    Those parted are nearly one, those of `PRODUCTS` alike, others on their own.

    Parameters
    ----------
    stated_sd
        Shape (names,): relative standard deviation each is stated with.
    """
    whole = [PARTS.get(name, name) for name in names]
    same = np.array([[one == other for other in whole] for one in whole])
    product = np.array([one in PRODUCTS for one in whole])
    sds = np.asarray(stated_sd, dtype=np.float64)
    both, apart = np.outer(sds, sds), np.minimum(PART_SD, sds)**2
    return np.where(same, both - apart, ALIKE * both * np.outer(product, product)) + np.diag(apart)


def share(names: Sequence[str], level: str) -> np.ndarray:
    """Return which prices move together by what a level has in common, shape (names, names).

    Of currents all. Of time those of `PRODUCTS`: a release, an option or a compiler makes kernels
    faster that multiply and accumulate, and says nothing of copies, pooling or calls; of a board's
    those that wait for its memories, too; of an option's those with a window `WINDOWED`.
    """
    moved = np.array(["stream" not in names or PARTS.get(name, name) in PRODUCTS
                      or (level == "board" and name in WAITING) for name in names], dtype=float)
    if level == "option":
        moved[[PARTS.get(name, name) == "conv" for name in names]] *= WINDOWED
    return np.outer(moved, moved)


def pool_prior(names: Sequence[str], stated_sd: np.ndarray, spread: Spread) -> Prior:
    """Return the prior of prices partially pooled over libraries, cores, releases and boards.

    Parameters
    ----------
    stated_sd
        Shape (names,): relative standard deviation each price is stated with.
    spread
        How far apart those sharing a level are.

    Returns
    -------
    Prior
        Centred on what is stated. Where libraries do not matter, prices are of currents: what is
        stated of each by itself is common to all boards, and a board's file has an error.
    """
    stated = state(names, stated_sd)
    first, left_out = ("library", "file") if spread.library else ("everything", "library")
    return Prior(names=tuple(names), mean=np.zeros(len(names)), parts=tuple(
        Part(level=level, covariance=getattr(spread, level, 1.0)**2 * share(names, level)
             + getattr(spread, f"own_{level}", level == first)**2 * stated)
        for level in LEVELS if level != left_out))


def known_prior(names: Sequence[str], mean: np.ndarray, covariance: np.ndarray) -> Prior:
    """Return a prior of one cell whose prices are known with a covariance: an earlier fit's."""
    return Prior(names=tuple(names), mean=np.asarray(mean, dtype=np.float64),
                 parts=(Part(level="everything", covariance=np.asarray(covariance)),))


def bind(prior: Prior, names: Collection[str], sd: float = 0.0) -> Prior:
    """Return the prior of one cell given that prices are off by one factor, but for a deviation.

    Parameters
    ----------
    sd
        Of the logarithm of each one's ratio to the first.
    """
    places = [place for place, name in enumerate(prior.names) if name in names]
    apart = np.zeros((max(len(places) - 1, 0), len(prior.names)))
    for row, place in enumerate(places[1:]):
        apart[row, places[0]], apart[row, place] = 1.0, -1.0
    covariance = prior.covariance
    if len(apart):
        cross = covariance @ apart.T
        known = apart @ cross + sd**2 * np.eye(len(apart))
        covariance = covariance - cross @ np.linalg.solve(known, cross.T)
    return known_prior(prior.names, prior.mean, (covariance + covariance.T) / 2)


def relate(level: str, left: Sequence[Cell], right: Sequence[Cell]) -> np.ndarray:
    """Return how much of a level two lists of cells share: 1 all, 0 nothing.

    Parameters
    ----------
    level
        One of `LEVELS`.

    Returns
    -------
    numpy.ndarray
        Shape (left, right).

    Notes
    -----
    Releases of one library share exp(-|distance| / RELEASES): a release between two measured ones
    is interpolated, one far from all keeps its spread.
    """
    def same(name: str) -> np.ndarray:
        here = np.array([getattr(cell, name) for cell in left], dtype=object)
        there = np.array([getattr(cell, name) for cell in right], dtype=object)
        return np.asarray((here[:, None] == there[None, :]) & (here[:, None] != ""), np.float64)

    if level == "everything":
        return np.ones((len(left), len(right)))
    if level == "file":
        return np.asarray(same("board") * np.outer([cell.stated_sd for cell in left],
                                                   [cell.stated_sd for cell in right]))
    if level in ("library", "core", "board"):
        return same(level)
    distance = np.abs(np.subtract.outer(*(
        [cell.release for cell in side] for side in (left, right))))
    fading = np.exp(-distance / (np.inf if level == "option" else RELEASES))
    named = {"release": "library", "build": "core", "cell": "board"}.get(level, level)
    return np.asarray(same("library") * fading * same(named))
