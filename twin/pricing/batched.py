"""Many predictions at once: of many deployments, or of one with values varied.

Rows are cut into spans (`spans`), and those into groups of one structure and timing, each one
product of matrices (`batch.fill_rows`): few boards are made for many clocks. A supply voltage in
a span changes nothing but what energies are in proportion to. Beside other masters a structure is
of one clock, as what they ask for in a cycle follows it. On an accelerator rows of one placement
are columns, whatever their clocks (`accelerator.batch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.fitting.intervals import LEVEL
from hwmodels.board.file import change_board
from hwmodels.board.operating_points import spread_clock, spread_supply
from hwmodels.errors import TwinError, check_word
from hwmodels.frozen import entity
from hwmodels.paths.timing import Floats
from hwmodels.prices import rail_mw_per_ma
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.batch import (
    Batch,
    Failure,
    Span,
    count_layers,
    empty_batch,
    fill_row,
    fill_rows,
    find_costs,
    list_factors,
)
from twin.pricing.calibrated import apply_factors, predict_calibrated
from twin.pricing.calibration import AUTO, NONE, Wanted, is_read
from twin.pricing.inference import TEMPERATURES
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES
from twin.pricing.spans import (
    SUPPLY,
    Spans,
    is_varied_clock,
    is_varied_supply,
    list_spans,
    split_alike,
)
from twin.pricing.variation import Variation, read_variation

Asked = TypeVar("Asked")
Read = TypeVar("Read")


@entity
class Group:
    """Rows of one structure and timing.

    Parameters
    ----------
    rows : ndarray of int, (n,)
        Of the batch.
    hertz : ndarray of float, (n,)
        Clock of the core.
    top
        Another of them, where energies differ by supply voltage.
    toward : ndarray of float, (n,)
        How far energies of each row are from those of the first to those of `top`, 0 to 1.
    """

    rows: np.ndarray
    deployment: Deployment
    hertz: Floats
    top: Deployment | None = None
    toward: Floats | None = None


def list_groups(base: Deployment, variation: Variation) -> Iterator[Group | Failure]:
    """Yield configurations in groups, and those that cannot be.

    Parameters
    ----------
    variation
        Of `read_variation`.

    Notes
    -----
    On an accelerator all are one group: `twin.pricing.spans` cuts them.
    """
    if base.accelerated and "runtime" not in variation.paths:
        yield from _whole(base, np.arange(variation.rows))
        return
    clocks = [name for name in variation.paths if is_varied_clock(name, variation)]
    shared = base.loads or any(name.startswith("load.") for name in variation.paths)
    clock = clocks[0] if clocks and not shared else None  # others ask by time, not by cycle
    supply = SUPPLY if is_varied_supply(variation) else None

    others = {name: values for name, values in variation.paths.items()
              if name not in (clock, supply)}
    for settings, rows in split_alike(others, np.arange(variation.rows)):
        if clock is None and supply is None:
            yield from _whole(attempt(base.replace, settings), rows)
            continue
        spans = Spans(base, variation, settings, [] if clock is None else [clock])
        for span in spans.list(rows, supply):
            yield from [span] if isinstance(span, Failure) else _list_timings(spans, span)


def _list_timings(spans: Spans, span: Span) -> Iterator[Group]:
    """Yield groups of rows of a span in which the ratios of all clocks are the same."""
    whole, board = gather_rows(span.deployment, span.rows), span.deployment.board
    if not span.hertz:
        yield whole if span.volts is None else _supply(whole, span.volts)
        return
    (clock, values), = span.hertz.items()
    spread = spread_clock(board, clock, values)
    supply = {} if span.volts is None else {SUPPLY: board.power.voltage_v}
    for piece in _list_ratios(list(spread.values())):
        own = spans.change({f"clocks.{clock}.frequency_hz": float(values[piece[0]]), **supply})
        group = Group(rows=span.rows[piece], hertz=spread[board.core.clock][piece],
                      deployment=span.deployment.repriced(
                          board=own, runtime=span.deployment.runtime))
        yield group if span.volts is None else _supply(group, span.volts[piece])


def _supply(group: Group, volts: Floats) -> Group:
    """Return a group at one of its supply voltages with each row at its own."""
    board = group.deployment.board
    rails: Any = rail_mw_per_ma(spread_supply(board, np.array([board.power.voltage_v, *volts])))
    away = rails[1:] - rails[0] if np.ndim(rails) else np.zeros_like(volts)
    farthest = int(np.argmax(np.abs(away)))
    if not away[farthest]:  # not known, or the same at each
        return group
    top = change_board(board, {SUPPLY: float(volts[farthest])})
    return replace(group, toward=away / away[farthest], top=group.deployment.repriced(
        runtime=group.deployment.runtime, board=top))


def attempt(make: Callable[[Asked], Read], asked: Asked) -> Read | TwinError:
    """Return what is made, or what it was refused with."""
    try:
        return make(asked)
    except TwinError as error:
        return error


def _whole(made: Deployment | TwinError, rows: np.ndarray) -> Iterator[Group | Failure]:
    if isinstance(made, TwinError):
        yield from (Failure(row=row, error=made) for row in rows.tolist())
        return
    yield gather_rows(made, rows)


def gather_rows(deployment: Deployment, rows: np.ndarray) -> Group:
    """Return rows that are all one deployment."""
    board = deployment.board
    return Group(rows=rows, deployment=deployment,
                 hertz=np.full(len(rows), board.core_clock.frequency_hz))


def _list_ratios(clocks: Sequence[Floats]) -> Iterator[np.ndarray]:
    """Yield places at which the ratios of all clocks are the same to the last bit."""
    ratios = [one / other for one in clocks for other in clocks if one is not other]
    moving = [ratio for ratio in ratios if np.ptp(ratio)]
    if not moving:
        yield np.arange(len(clocks[0]))
        return
    _, group = np.unique(np.stack(moving, axis=1), axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)


ERRORS = ("raise", "keep")
"""What becomes of a configuration that cannot be: the first is raised, or all are kept as rows."""


def predict_many(deployments: Deployment | Iterable[Deployment], *,
                 vary: Mapping[str, ArrayLike] | None = None, temperature: str = "warm",
                 calibration: Wanted | PathLike[str] = AUTO, layers: bool = False,
                 errors: str = "raise", draws: bool = False) -> Batch:
    """Predict many configurations at once, as arrays.

    Parameters
    ----------
    deployments : Deployment or iterable of Deployment
        From `twin.deploy`; or one, of which `vary` makes many.
    vary : mapping of str to sequence, or DataFrame, optional
        Dotted path to one value a configuration, or to a single one for all, as `--set` takes
        them (80e6 or "80MHz"): any what-if path
        ("clocks.cpu.frequency_hz", "supply.voltage_scale", "caches.dcache.size_bytes",
        "placement.arena", ...), and factors on stated prices in place of the learnt ones
        ("learnt.time.memory", "learnt.energy.leakage", ...). Voltage follows the clock and wait
        states follow both, as of `Deployment.replace`.
    temperature, calibration
        As for `predict`.
    layers : bool
        Whether each layer's time and energy are wanted.
    errors : str
        "raise": the first configuration that cannot be raises its error; "keep": all such become
        `Batch.failures`, and NaN, -1 for bytes.
    draws : bool
        Whether `Batch.draws` is wanted.

    Returns
    -------
    Batch
        One row a configuration, equal to what `predict` says of it; to 1e-12 where sums are made
        in another order.

    Raises
    ------
    UsageError
        For a name, values of different length, or a learnt price that is none.
    TwinError
        Of the first configuration that cannot be, unless errors are kept.

    Examples
    --------
    >>> import numpy as np, twin
    >>> kws = twin.deploy("kws", "nucleo_l4r5zi")
    >>> clocks = np.linspace(20e6, 120e6, 10)
    >>> batch = twin.predict_many(kws, vary={"clocks.cpu.frequency_hz": clocks})
    >>> bool((np.diff(batch.time_us) < 0).all())
    True
    """
    if isinstance(calibration, PathLike):
        calibration = fspath(calibration)
    check_word("temperature", temperature, TEMPERATURES, UsageError)
    check_word("errors", errors, ERRORS, UsageError)
    if isinstance(deployments, Deployment):
        variation = read_variation({} if vary is None else vary)
        most, groups = len(deployments.graph.layers), list_groups(deployments, variation)
    else:
        if vary:
            raise UsageError("vary: accepted with one deployment, the one that is varied")
        listed = _check(deployments)
        variation, most = Variation(rows=len(listed), paths={}), count_layers(listed)
        groups = (gather_rows(one, np.array([row])) for row, one in enumerate(listed))
    batch = empty_batch(variation.rows, most if layers else None, draws=draws)
    maker = _Maker(batch=batch, variation=variation, temperature=temperature,
                   calibration=calibration, stops=errors == "raise",
                   base=deployments if isinstance(deployments, Deployment) else None)
    listed_groups = list(groups)
    maker.failures += [one for one in listed_groups if isinstance(one, Failure)]
    for group in listed_groups:
        if maker.failures and errors == "raise":
            break
        if isinstance(group, Group):
            maker.make(group)
    if maker.failures and errors == "raise":
        raise min(maker.failures, key=lambda one: one.row).error
    return replace(batch, level=maker.level, failures=tuple(
        sorted(maker.failures, key=lambda one: one.row)))


def _check(deployments: Iterable[Deployment]) -> list[Deployment]:
    listed = list(deployments) if isinstance(deployments, Iterable) and not isinstance(
        deployments, str) else [deployments]
    for one in listed:
        if not isinstance(one, Deployment):
            raise UsageError(f"predict_many: {one!r} is not a deployment; accepted: "
                             "twin.deploy(model, board), or several")
    return listed


class _Maker:
    """Fills a batch group by group."""

    def __init__(self, *, batch: Batch, variation: Variation, temperature: str, calibration: Wanted,
                 stops: bool, base: Deployment | None) -> None:
        self.batch, self.variation, self.base, self.stops = batch, variation, base, stops
        self.temperature, self.calibration = temperature, calibration
        self.failures: list[Failure] = []
        self.level = np.nan

    def make(self, group: Group) -> None:
        """Fill the rows of a group, by product where its bill is counts times prices."""
        if group.deployment.accelerated:
            self._fill_accelerated(group)
            return
        rows, varied = group.rows.tolist(), self.variation
        if is_read(group.deployment) and not (varied.time or varied.energy):
            for row in rows:  # Intervals of machine code follow from its bill, not from an overlay.
                self._keep([row], partial(self._predict, group.deployment, row)
                           if self.base is None else partial(self._change_one, self.base, row))
            return
        self._keep(rows, partial(self._multiply, group))

    def _multiply(self, group: Group) -> None:
        deployment, rows, varied = group.deployment, group.rows, self.variation
        costs = find_costs(deployment, self.calibration, cold=self.temperature == "cold",
                           top=group.top)
        if costs.doubted is not None:
            self.level = costs.doubted.calibration.entry.time.band.level
        fill_rows(self.batch, rows, costs, hertz=group.hertz, toward=group.toward,
                  time=list_factors(rows, TIME_PRICES, costs.time, varied.time),
                  power=list_factors(rows, ENERGY_PRICES, costs.power, varied.energy))
        self.batch.ram_bytes[rows] = deployment.ram_bytes
        self.batch.flash_bytes[rows] = deployment.flash_bytes

    def _fill_accelerated(self, group: Group) -> None:
        """Fill rows on an accelerator: spans of clocks and voltages as columns."""
        base, varied = self.base or group.deployment, self.variation
        shared = any(name.startswith("load.") for name in varied.paths)
        priced = bool(varied.time or varied.energy) or self.calibration not in (None, AUTO, NONE)
        for span in list_spans(base, self.variation, group.rows):
            if isinstance(span, Failure):
                self.failures.append(span)
            if isinstance(span, Failure) or (self.failures and self.stops):
                continue
            rows = span.rows.tolist()
            if shared or priced or _runs_by_time(span.deployment):
                for row in rows:
                    self._keep([row], partial(self._change_one, base, row))
            elif len(rows) == 1:
                self._keep(rows, partial(self._predict, span.deployment, rows[0]))
            else:
                self._keep(rows, partial(self._fill_span, span))

    def _keep(self, rows: Sequence[int], fill: Callable[[], None]) -> None:
        """Fill rows, or keep what refuses them."""
        try:
            fill()
        except TwinError as error:
            self.failures += [Failure(row=row, error=error) for row in rows]

    def _fill_span(self, span: Span) -> None:
        from twin.pricing.accelerator.batch import fill_tasks

        unsure = self.calibration not in (None, NONE)
        fill_tasks(self.batch, span, unsure=unsure)
        if unsure:
            self.level = LEVEL

    def _change_one(self, base: Deployment, row: int) -> None:
        """Predict one configuration of what is varied by itself."""
        paths, varied = self.variation.paths, (self.variation.time, self.variation.energy)
        changed = base.replace({name: values[row] for name, values in paths.items()})
        time, energy = ({name: float(values[row]) for name, values in one.items()}
                        for one in varied)
        self._predict(apply_factors(changed, time, energy) if time or energy else changed, row)

    def _predict(self, deployment: Deployment, row: int) -> None:
        """Predict a configuration; what another voltage scale would save is not asked."""
        if deployment.own_scale is not None:
            deployment = replace(deployment, own_scale=None)
        made = predict_calibrated(deployment, temperature=self.temperature,
                                  calibration=self.calibration)
        fill_row(self.batch, row, made)
        if made.certainty is not None:
            self.level = made.certainty.time_us.level


def _runs_by_time(deployment: Deployment) -> bool:
    """Whether what caches and buses meet follows clocks, so that no row gives another."""
    return bool(deployment.loads or deployment.transfers or any(
        cache.streaming_lines and cache.enabled for cache in deployment.board.caches))
