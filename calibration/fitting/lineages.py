"""Which runtimes are releases of one library, and which networks are kin.

Releases share prices; kin are left out together when a fit is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from calibration.errors import FitError

SHIPPED = Path(__file__).parent / "shipped"
LINEAGES_FILE = SHIPPED / "lineages.yaml"
NETWORKS_FILE = SHIPPED / "networks.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Where a set of prices holds.

    Parameters
    ----------
    board, core : str
        Board and model of its core; "" is none of those measured.
    library : str
        Kernel library, all releases together.
    release : float
        Position of the release in the library's history.
    """

    board: str
    core: str
    library: str
    release: float


def locate(board: str, core: str, runtime: str) -> Cell:
    """Return the cell whose prices hold on a board under a runtime.

    Parameters
    ----------
    board, core : str
        Names of the board and of its core's model.
    runtime : str
        "name@version".

    Returns
    -------
    Cell
        With the library the runtime is a release of; an unlisted one is a library of its own.
    """
    library, release = _positions().get(runtime, (runtime, 0.0))
    return Cell(board=board, core=core, library=library, release=release)


@lru_cache(maxsize=1)
def _positions() -> Mapping[str, tuple[str, float]]:
    document: Mapping[str, Any] = yaml.safe_load(LINEAGES_FILE.read_text(encoding="utf-8"))
    positions: dict[str, tuple[str, float]] = {}
    for library, facts in document["libraries"].items():
        if facts["source"] not in document["sources"]:
            raise FitError(f"{LINEAGES_FILE}:libraries.{library}.source: {facts['source']!r} is "
                           "not in 'sources'")
        for position, runtime in enumerate(facts["releases"]):
            if runtime in positions:
                raise FitError(f"{LINEAGES_FILE}:libraries.{library}: {runtime} is listed twice")
            positions[runtime] = (library, float(position))
    return positions


def name_network(model: str) -> str:
    """Return the name a published network goes by, whatever the publication calls it."""
    plain = model.partition("__")[0].removesuffix("_int8")
    return str(_networks()["same"].get(plain, plain))


def name_family(network: str) -> str:
    """Return the family of a network; one that is not listed is its own."""
    for start, family in _networks()["families"].items():
        if network.startswith(start):
            return str(family)
    return network


@lru_cache(maxsize=1)
def _networks() -> Mapping[str, Mapping[str, str]]:
    document: Mapping[str, Any] = yaml.safe_load(NETWORKS_FILE.read_text(encoding="utf-8"))
    return document


def list_releases(library: str) -> tuple[tuple[str, float], ...]:
    """Return the runtimes that are releases of a library, with their positions, oldest first."""
    found = tuple((runtime, position) for runtime, (name, position) in _positions().items()
                  if name == library)
    return found or ((library, 0.0),)
