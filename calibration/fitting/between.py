"""How far networks lie apart that prices do not tell of: errors on held-out published networks.

One's own rows are often of one network. Its layers agree with one another better than another
network will with them, and a single total leaves no error to look at. So what another network may
be off by is taken from published rows: each predicted without its family of networks, from others
on its board and of its library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from calibration.errors import FitError
from calibration.fitting.cell import SHIPPED
from calibration.fitting.intervals import LEVEL, Band, conformal_quantile
from hwmodels.file_cache import read_yaml_once
from hwmodels.files import write_whole
from hwmodels.frozen import frozen

LEFT_OUT_FILE = SHIPPED / "left_out.yaml"


@frozen
class Between:
    """Errors on held-out networks.

    Parameters
    ----------
    sd
        Root of their mean square, of logarithms.
    reach
        What the level's share of them stays below, as a multiple of `sd`.
    count
        How many.

    Notes
    -----
    Either way the same: that published networks were rather slower or faster than predicted says
    nothing of which way one's own will be.
    """

    sd: float
    reach: float
    count: int

    @property
    def band(self) -> Band:
        """How far intervals of one's own board reach."""
        return Band(down=self.reach, up=self.reach, level=LEVEL, basis="borrowed", count=self.count)


def learn_between(log_errors: np.ndarray) -> Between:
    """Return how far networks lie apart.

    Parameters
    ----------
    log_errors
        Shape (rows,): log(measured / predicted) of whole networks, each without its own rows.

    Raises
    ------
    FitError
        With too few for quantiles.
    """
    errors = np.asarray(log_errors, dtype=np.float64)
    errors = errors[np.isfinite(errors)]
    sd = float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.0
    reach = conformal_quantile(np.abs(errors) / sd, LEVEL) if sd else math.inf
    if not math.isfinite(reach):
        raise FitError(f"{len(errors)} errors on held-out networks: too few for an interval")
    return Between(sd=sd, reach=reach, count=len(errors))


@lru_cache(maxsize=2)
def read_between(quantity: Literal["time", "energy"]) -> Between:
    """Return how far the published networks lie apart in time, or in power."""
    document: Mapping[str, Any] = read_yaml_once(LEFT_OUT_FILE)
    found = document[quantity]
    return Between(sd=found["sd"], reach=found["reach"], count=found["errors"])


def write_between(path: Path, found: Mapping[str, Between]) -> None:
    """Write how far networks lie apart, by quantity."""
    import yaml

    table = {quantity: {"sd": float(f"{one.sd:.6g}"), "reach": float(f"{one.reach:.6g}"),
                        "errors": one.count} for quantity, one in found.items()}
    text = ("# Errors of the logarithm on networks of use fit, each predicted without its\n"
            "# family: root mean square, and what 90 % of them stay below, in its multiples;\n"
            "# written with the overlays beside. No network is known better from one's own rows\n"
            "# of others.\n")
    write_whole(path, (text + yaml.safe_dump({"schema": 1, **table}, sort_keys=False,
                                             default_flow_style=None)).encode())
