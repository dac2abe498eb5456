"""One configuration slid along a clock: priced again from kept counts, without simulating.

Voltage scale and wait states follow the clock. Everything else a clock changes is worked out once
for each timing and kept, so that most positions are a product of matrices (`batch.fill_rows`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.file import spread_clock
from twin.deployment.deployment import Deployment, boards_of
from twin.pricing.batch import Batch, Costs, empty_batch, fill_row, fill_rows, find_costs
from twin.pricing.batched import sign_board
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.spans import are_own

MOST_TIMINGS = 128
"""Of one slide; the oldest goes."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Timing:
    """What is the same at some clocks: costs by price, and the span they are known to hold in."""

    low_hz: float
    high_hz: float
    sign: tuple[object, ...]
    ratios: tuple[float, ...]
    board: Board
    costs: Costs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slid:
    """A bill at a frequency.

    Parameters
    ----------
    batch : Batch
        Its one row, with layers.
    board : Board
        At that voltage scale and those wait states, maybe at another frequency.
    clocks_hz : mapping of str to float
        Frequency of every clock.
    """

    batch: Batch
    board: Board
    clocks_hz: Mapping[str, float]


class Slide:
    """A deployment at any frequency of one of its clocks.

    Parameters
    ----------
    base : Deployment
        With all else that is changed about it.
    clock : str
        Name of the clock that moves.
    temperature, calibration : str
        As for `predict_calibrated`.

    Notes
    -----
    Scale and wait states follow a clock in one direction, so what is the same at both ends of a
    span is the same inside (`spans`); ratios between clocks must be the same to the bit.
    The board's own clock is in no span: there it keeps the scale it states, if a lower would do.
    """

    def __init__(self, base: Deployment, clock: str, *, temperature: str,
                 calibration: str) -> None:
        self.base, self.clock = base, clock
        self.temperature, self.calibration = temperature, calibration
        self._timings: list[_Timing] = []

    @property
    def keeps(self) -> bool:
        """Whether what is met is the same at every clock: other masters ask by time."""
        return not self.base.loads and not any(
            cache.streaming_lines and cache.enabled for cache in self.base.board.caches)

    def price(self, hertz: float) -> Slid:
        """Return the bill at a frequency.

        Parameters
        ----------
        hertz : float
            Of the clock that moves.

        Raises
        ------
        TwinError
            When the board cannot run at it.

        Notes
        -----
        Equal to what `predict_calibrated` says of the deployment, to 1e-12; without intervals
        of layers.
        """
        batch = empty_batch(1, len(self.base.graph.layers))
        if not self.base.is_itemised or not self.keeps:
            deployment = dataclasses.replace(
                self.base.replace({self._path: hertz}), own_scale=None)
            made = predict_calibrated(deployment, temperature=self.temperature,
                                      calibration=self.calibration)
            fill_row(batch, 0, made)
            return Slid(batch=batch, board=deployment.board, clocks_hz=_list_clocks(
                deployment.board))
        timing, clocks_hz = self._find(hertz) or self._make(self._board(hertz), hertz)
        costs, whole = timing.costs, empty_batch(1)
        core_hz = np.array([clocks_hz[timing.board.core.clock]])
        for one, own in ((batch, dataclasses.replace(costs, doubted=None)), (whole, costs)):
            fill_rows(one, np.array([0]), own, hertz=core_hz, time=costs.time[None],
                      power=costs.power[None])
        whole.ram_bytes[0], whole.flash_bytes[0] = self._sizes
        return Slid(batch=dataclasses.replace(whole, layers=batch.layers), board=timing.board,
                    clocks_hz=clocks_hz)

    def _find(self, hertz: float) -> tuple[_Timing, Mapping[str, float]] | None:
        """Return what is known of a frequency, and all clocks'; None where nothing is."""
        near = [] if self._is_own(hertz) else [
            one for one in self._timings if one.low_hz <= hertz <= one.high_hz]
        if not near:
            return None
        spread = self._spread(near[0].board, hertz)
        ratios = _list_ratios(spread)
        return next(((one, spread) for one in near if one.ratios == ratios), None)

    def _make(self, board: Board, hertz: float) -> tuple[_Timing, Mapping[str, float]]:
        """Work out the timing of a board, or find that it is that of a span beside it."""
        sign, spread = sign_board(board), _list_clocks(board)
        ratios = _list_ratios(spread)
        low_hz, high_hz = (np.inf, -np.inf) if self._is_own(hertz) else (hertz, hertz)
        for one in self._timings:
            if one.sign == sign and one.ratios == ratios:
                one.low_hz, one.high_hz = min(one.low_hz, low_hz), max(one.high_hz, high_hz)
                return one, spread
        deployment = self.base.repriced(board, self.base.runtime)  # placing reads no clock
        timing = _Timing(low_hz=low_hz, high_hz=high_hz, sign=sign, ratios=ratios, board=board,
                         costs=find_costs(deployment, self.calibration,
                                          cold=self.temperature == "cold"))
        self._timings = [*self._timings[-MOST_TIMINGS + 1:], timing]
        return timing, spread

    @property
    def _path(self) -> str:
        return f"clocks.{self.clock}.frequency_hz"

    def _is_own(self, hertz: float) -> bool:
        return bool(are_own(self.base.board, [self._path], np.array([[hertz]]))[0])

    @cached_property
    def _board_at(self) -> Callable[[Mapping[str, object]], Board]:
        return boards_of(self.base, {})

    def _board(self, hertz: float) -> Board:
        return self._board_at({self._path: hertz})

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        return self.base.ram_bytes, self.base.flash_bytes

    def _spread(self, board: Board, hertz: float) -> Mapping[str, float]:
        return {name: float(values[0]) for name, values in
                spread_clock(board, self.clock, np.array([hertz])).items()}


def _list_clocks(board: Board) -> dict[str, float]:
    return {one.name: one.frequency_hz for one in board.clocks}


def _list_ratios(spread: Mapping[str, float]) -> tuple[float, ...]:
    values = list(spread.values())
    return tuple(one / other for one in values for other in values if one is not other)
