"""Where a set of prices holds: a board under a release of a library, and which were measured.

A library's releases stand in an order, its lineage: prices of one say something of the next. What
no row was measured of borrows from what was: `list_measured` says of how many rows that is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from calibration.errors import FitError
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import NamedNumbers, entity, frozen

SHIPPED = Path(__file__).parent / "shipped"
LINEAGES_FILE = SHIPPED / "lineages.yaml"
MEASURED_FILE = SHIPPED / "measured.yaml"

PARTS = {"conv_wide": "conv", "stream": "memory"}
"""Prices that part another by the shape of layers: what is stated of both is one."""

UNSEEN = "unknown"
"""Folder of overlays for libraries nobody measured: prices from the spread between libraries."""

UNSEEN_RUNTIME = "unknown@any"
"""Runtime of their entries."""


@frozen
class Cell:
    """Where a set of prices holds.

    Parameters
    ----------
    board, core
        Board and model of its core; "" is none of those measured. Of powers, the regulator stands
        for the core: what a core draws beside its datasheet is a fact of its supply.
    library
        Kernel library, all releases together; "" is none of those measured. Of powers, the
        firmware: `locate_power`.
    release
        Position of the release in the library's history.
    stated_sd
        Of powers: relative deviation the board's file states of its run current.
    option
        Of a release built otherwise than by default, whose code prices are learnt apart of: "time"
        of "x-cube-ai@9.0.0-time"; "" is the default, and any build whose instructions were counted.
    """

    board: str
    core: str
    library: str
    release: float
    stated_sd: float = 0.0
    option: str = ""


@entity
class Estimate:
    """Prices of one cell.

    Parameters
    ----------
    log
        Shape (names,): log of the factor on the stated price.
    covariance, prior_covariance
        Shape (names, names): after and before the data.
    """

    names: tuple[str, ...]
    log: np.ndarray
    covariance: np.ndarray
    prior_covariance: np.ndarray

    @property
    def factors(self) -> np.ndarray:
        """What stated prices are multiplied by."""
        factors: np.ndarray = np.exp(self.log)
        return factors


def locate(board: str, core: str, runtime: str) -> Cell:
    """Return the cell whose prices hold on a board under a runtime.

    Parameters
    ----------
    board, core
        Names of the board and of its core's model.
    runtime
        "name@version".

    Returns
    -------
    Cell
        With the library the runtime is a release of; an unlisted one is a library of its own.
    """
    library, release, option = _positions().get(runtime, (runtime, 0.0, ""))
    return Cell(board=board, core=core, library=library, release=release, option=option)


def default_build(runtime: str) -> str:
    """Return a release as built by default, of one built with an option of its lineage."""
    return runtime.removesuffix(f"-{locate('', '', runtime).option}")


def locate_power(board: str, regulator: str, runtime: str, stated_sd: float) -> Cell:
    """Return the cell whose powers hold on a board while a runtime's firmware runs.

    Parameters
    ----------
    board, regulator
        Name of the board, and what makes its core's voltage: "ldo", "smps" or "none".
    runtime
        "name@version".
    stated_sd
        Relative deviation the board's file states of its run current.

    Notes
    -----
    What runs beside the kernels (clocks, peripherals, an operating system) is a fact of the
    firmware it was measured in. Releases whose tool writes that firmware stand near one another,
    as their lineage's `firmware` says; else each runtime was measured in one of its own.
    """
    library, release, _ = _positions().get(runtime, (runtime, 0.0, ""))
    if "firmware" not in read_yaml_once(LINEAGES_FILE)["libraries"].get(library, {}):
        library, release = runtime, 0.0
    return Cell(board=board, core=regulator, library=library, release=release, stated_sd=stated_sd)


def known_power(cell: Cell, measured: Collection[Cell]) -> Cell:
    """Return whose powers a cell takes: its firmware's there, its board's, or its regulator's.

    Parameters
    ----------
    cell
        From `locate_power`.
    """
    here = {other.library for other in measured if other.board == cell.board}
    if cell.library in here:
        return cell
    if here:
        return replace(cell, library="", release=0.0)
    return Cell(board="", core=cell.core, library="", release=0.0)


@lru_cache(maxsize=1)
def _positions() -> Mapping[str, tuple[str, float, str]]:
    document: Mapping[str, Any] = read_yaml_once(LINEAGES_FILE)
    positions: dict[str, tuple[str, float, str]] = {}
    for library, facts in document["libraries"].items():
        if facts["source"] not in document["sources"]:
            raise FitError(f"{LINEAGES_FILE}:libraries.{library}.source: {facts['source']!r} is "
                           "not in 'sources'")
        for position, builds in enumerate(facts["releases"]):
            for runtime in builds if isinstance(builds, list) else [builds]:
                if runtime in positions:
                    raise FitError(f"{LINEAGES_FILE}:libraries.{library}: {runtime} is listed "
                                   "twice")
                ending = runtime.partition("@")[2].partition("-")[2]
                positions[runtime] = (library, float(position),
                                      ending if ending in facts.get("options", ()) else "")
    return positions


def list_releases(library: str) -> NamedNumbers:
    """Return the runtimes that are releases of a library, with their positions, oldest first."""
    if library == UNSEEN:
        return ((UNSEEN_RUNTIME, 0.0),)
    found = tuple((runtime, position) for runtime, (name, position, _) in _positions().items()
                  if name == library)
    return found or ((library, 0.0),)


@frozen
class Measured:
    """How many rows were learnt from of a runtime on a board, which has a part of that name."""

    board: str
    soc: str
    core: str
    runtime: str
    rows: int


@lru_cache(maxsize=1)
def list_measured() -> tuple[Measured, ...]:
    """Return what shipped overlays were learnt from, releases oldest first within a library."""
    document: Mapping[str, Any] = read_yaml_once(MEASURED_FILE)
    return tuple(Measured(**row) for row in document["measured"])
