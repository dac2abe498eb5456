"""Simple predictors any model of a machine has to beat.

They are fitted to published rows of `use="fit"` and nothing else; sealed rows are refused. What a
network does reaches them as arrays of counts with names: they know no layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from calibration.datasets import PublishedRow
from calibration.datasets.published import refuse_sealed
from calibration.errors import MeasurementError
from calibration.fitting.cell import locate
from hwmodels.errors import extra_missing
from hwmodels.frozen import entity, frozen
from hwmodels.quantities import list_by_key
from twin.network.graph import Graph
from twin.network.operators import is_alias, layer_macs
from twin.network.rewrites.dead_channels import drop_dead_channels

WORK_NAMES = ("conv_macs", "pointwise_macs", "depthwise_macs", "operators")
"""What `count_work` counts, in order."""

Group = tuple[str, ...]
Grouping = Callable[[PublishedRow], Group]


@entity
class Observations:
    """Published rows and what the network of each does.

    Parameters
    ----------
    rows : tuple of PublishedRow
        With latency and clock.
    names : tuple of str
        What the columns of `counts` count.
    counts : numpy.ndarray
        Shape (rows, names), non-negative.
    """

    rows: tuple[PublishedRow, ...]
    names: tuple[str, ...]
    counts: np.ndarray

    def __post_init__(self) -> None:
        if self.counts.shape != (len(self.rows), len(self.names)):
            raise MeasurementError(f"counts of shape {self.counts.shape} for {len(self.rows)} rows "
                                   f"and {len(self.names)} names")

    @property
    def cycles(self) -> np.ndarray:
        """CPU cycles of each row, latency x clock."""
        return np.array([_cycles(row) for row in self.rows])

    def select(self, chosen: Sequence[int]) -> Observations:
        """Return these rows only, by position."""
        return Observations(rows=tuple(self.rows[i] for i in chosen), names=self.names,
                            counts=self.counts[list(chosen)])


def _cycles(row: PublishedRow) -> float:
    if row.latency_ms is None or row.clock_hz is None:
        raise MeasurementError(f"{row.dataset}:{row.line}: no latency or no clock to learn from")
    return row.latency_ms * 1e-3 * row.clock_hz


def by_core(row: PublishedRow) -> Group:
    """Group rows by core."""
    return (row.core,)


def by_everything(row: PublishedRow) -> Group:
    """Group all rows."""
    return ()


def by_core_and_release(row: PublishedRow) -> Group:
    """Group rows by core and release of a kernel library, boards together."""
    return (row.core, row.runtime or row.software)


def by_core_and_library(row: PublishedRow) -> Group:
    """Group rows by core and kernel library, releases and boards together."""
    return (row.core, locate("", "", row.runtime or row.software).library)


def count_work(graph: Graph, *, drops_dead_channels: bool = False) -> tuple[int, int, int, int]:
    """Count what the simple baselines are made of.

    Parameters
    ----------
    graph : Graph
        The network.
    drops_dead_channels : bool
        Count the network that is left when channels that are always zero are removed.

    Returns
    -------
    tuple of int
        As `WORK_NAMES`: MACs of convolutions with a window, of 1x1 convolutions and matrix
        products, of depthwise convolutions, and the number of operators that move data.
    """
    if drops_dead_channels:
        graph = drop_dead_channels(graph)
    conv = pointwise = depthwise = 0
    for layer in graph.layers:
        macs = layer_macs(graph, layer)
        if layer.op == "depthwise_conv_2d":
            depthwise += macs
        elif layer.window is not None and layer.window.kernel != (1, 1):
            conv += macs
        else:
            pointwise += macs
    operators = sum(not is_alias(layer) for layer in graph.layers)
    return conv, pointwise, depthwise, operators


@frozen
class LinearBaseline:
    """Cycles as a non-negative sum of counts, one set of constants per group of rows.

    Parameters
    ----------
    names : tuple of str
        What is counted.
    grouping : callable
        Row to group.
    cycles_each : mapping of group to tuple of float
        Cycles per count, in the order of `names`.
    rows_each : mapping of group to int
        Rows each set was fitted to.
    """

    names: tuple[str, ...]
    grouping: Grouping
    cycles_each: Mapping[Group, tuple[float, ...]]
    rows_each: Mapping[Group, int]

    def predict_ms(self, row: PublishedRow, counts: Sequence[float]) -> float | None:
        """Return the latency of a row in ms; None when its group was not fitted."""
        constants = self.cycles_each.get(self.grouping(row))
        if constants is None or row.clock_hz is None:
            return None
        return float(np.dot(constants, counts)) / row.clock_hz * 1e3


def fit_linear(observations: Observations, grouping: Grouping) -> LinearBaseline:
    """Fit cycles = sum of constant x count by non-negative least squares of relative errors.

    Parameters
    ----------
    observations : Observations
        Rows of use "fit" only.
    grouping : callable
        Each group gets its own constants; a group with no more rows than constants gets none,
        because it would be explained whatever it held.

    Returns
    -------
    LinearBaseline
        Fitted.

    Raises
    ------
    MeasurementError
        When a sealed row is among them.
    ToolMissingError
        Without SciPy.

    Notes
    -----
    Minimises sum over rows of (sum_j c_j n_ij / t_i - 1)^2 with c_j >= 0, t_i the measured cycles:
    errors are judged in per cent, so they are fitted in per cent.
    """
    refuse_sealed(observations.rows)
    groups = list_by_key((grouping(row), position)
                         for position, row in enumerate(observations.rows))
    fitted = {group: _solve(observations.select(chosen)) for group, chosen in groups.items()
              if len(chosen) > len(observations.names)}
    return LinearBaseline(names=observations.names, grouping=grouping, cycles_each=fitted,
                          rows_each={group: len(groups[group]) for group in fitted})


def _solve(observations: Observations) -> tuple[float, ...]:
    try:
        from scipy.optimize import nnls
    except ImportError as error:
        raise extra_missing("fits", "SciPy", "fit") from error
    relative = observations.counts / observations.cycles[:, None]
    scale = np.linalg.norm(relative, axis=0)
    scale[scale == 0] = 1
    constants, _ = nnls(relative / scale, np.ones(len(relative)))
    return tuple(float(c) for c in constants / scale)


@frozen
class PowerBaseline:
    """A board draws the same power whatever it runs: energy = power x time.

    Parameters
    ----------
    power_mw : mapping of board name (upper case) to float
        Fitted power at the rail.
    """

    power_mw: Mapping[str, float]

    def predict_uj(self, row: PublishedRow, time_ms: float | None) -> float | None:
        """Return the energy of that time in uJ (mW x ms); None when either is not known."""
        power_mw = self.power_mw.get(row.board_name.upper())
        return None if power_mw is None or time_ms is None else power_mw * time_ms


def fit_power(rows: Sequence[PublishedRow]) -> PowerBaseline:
    """Fit one power per board to rows of use "fit" with energy.

    Raises
    ------
    MeasurementError
        When a sealed row is among them.

    Notes
    -----
    Least squares of relative errors, P = sum(t/E) / sum((t/E)^2). Supplies are no visible effect:
    this is a baseline.
    """
    refuse_sealed(rows)
    ratios = list_by_key((row.board_name.upper(), row.latency_ms / row.energy_uj) for row in rows
                         if row.judges_energy and row.energy_uj and row.latency_ms)
    return PowerBaseline(power_mw={
        board: float(np.sum(found) / np.sum(np.square(found))) for board, found in ratios.items()})
