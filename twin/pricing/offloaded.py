"""Many clocks, supply voltages and learnt factors on an accelerator and its host, as columns.

A line is what one event of one epoch costs one layer. With u its time and e its energy at stated
prices on one board, and t and p the factors on prices of time and power it is charged under,

    time = t u        energy = t p e + what being powered costs meanwhile

Boards that differ in clocks and supply are rows of u and e, and lines are added up by layer, cause
and part of an epoch by products of matrices. What being powered costs follows from the time that
passes on each clock, as in `twin.pricing.accelerator`: the host waits, its clock tree runs, it
leaks, the accelerator idles. Intervals are those of `twin.pricing.accelerator.certainty`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.file import spread_clocks, spread_supply
from hwmodels.counts import CAUSES, EVENTS, EXACT, Prices
from hwmodels.paths.timing import Floats, read_timing, stack_columns
from hwmodels.schedule import Npu
from hwmodels.schedule.run import count_many
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.pricing.accelerator.certainty import PARTS, knows_host, name_part, was_profiled
from twin.pricing.accelerator.columns import POWERED
from twin.pricing.accelerator.energy import path_of, read_deviations
from twin.pricing.accelerator.offload import (
    list_cache_lines,
    list_host_groups,
    list_moved,
    pick_layers,
    task_of,
)
from twin.pricing.calibration import (
    ENERGY_PRICES,
    power_of,
    time_price,
    waits_on_memory,
)
from twin.pricing.lines import price_lines, runtime_prices, spend
from twin.pricing.structure import Structure, find_structure
from twin.runtimes.compiler import Offload, Step

Ints = np.ndarray

POWERED_PRICES = tuple((ENERGY_PRICES.index(power_of(event)), waits_on_memory(event))
                       for event in POWERED)
"""Energy price of what is paid while time passes, and whether the time price of memories is."""

_CAUSE = {event: CAUSES.index(described.cause) for event, described in EVENTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traits:
    """What lines are added up by.

    Parameters
    ----------
    layer, epoch, clock, cause, part : ndarray of int, (lines,)
        Of each: layer of the network, epoch, clock of `Lines`, of `CAUSES`, of `PARTS`.
    price, power : ndarray of int, (lines,)
        Of `TIME_PRICES` and `ENERGY_PRICES`.
    unsure : ndarray of float, (lines,)
        Relative deviation of its energy.
    """

    layer: Ints
    epoch: Ints
    clock: Ints
    cause: Ints
    part: Ints
    price: Ints
    power: Ints
    unsure: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lines:
    """What one inference costs on some boards, line by line.

    Parameters
    ----------
    traits : Traits
        Of the lines.
    clocks : tuple of str
        The accelerator's, the host's, then any others.
    hertz : ndarray of float, (boards, clocks)
        Of each.
    time_us, energy_pj : ndarray of float, (boards, lines)
        At stated prices; an energy that is not known is NaN.
    powered_pj : ndarray of float, (boards, powered events)
        Of one of what is paid for while time passes; NaN is not known.
    powered_unsure : ndarray of float, (powered events,)
        Relative deviations.
    """

    traits: Traits
    clocks: tuple[str, ...]
    hertz: Floats
    time_us: Floats
    energy_pj: Floats
    powered_pj: Floats
    powered_unsure: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line before it is priced: whose, and what."""

    event: str
    place: str
    family: str
    epoch: int
    layer: int


class Offloaded:
    """A deployment on an accelerator: what none of its clocks and voltages changes.

    Parameters
    ----------
    deployment : Deployment
        Whose runtime offloads, without other masters or weights by DMA.
    """

    def __init__(self, deployment: Deployment) -> None:
        whole = plan_of(deployment).steps
        npu, offload = deployment.board.npu, deployment.runtime.offload
        assert npu is not None and offload is not None, "a deployment that offloads has both"
        self.deployment, self.layers = deployment, len(deployment.executed.layers)
        self.clock = npu.clock
        self.steps: list[Step] = [step for step in whole if step.kind != "alias"]
        self.epochs = [task_of(step) for step in self.steps]
        self.seen = [was_profiled(epoch, npu, offload.spread) for epoch in self.epochs]
        self.known = [knows_host(step, deployment.executed, offload.spread)
                      for step in self.steps]
        self.offload: Offload = offload
        self.deviations = read_deviations(deployment.board)
        lower, own = cache(partial(lower_network, deployment)), {
            step.layers[0]: number for number, step in enumerate(self.steps)
            if step.kind == "host"}
        self.groups: list[tuple[Structure, Ints, Ints]] = []
        for group in list_host_groups(whole):
            structure = find_structure(deployment, partial(pick_layers, lower, group), cold=True,
                                       part=tuple(group))
            self.groups.append((structure, np.array(group), np.array([own[i] for i in group])))

    def make_lines(self, hertz: Mapping[str, Floats], volts: Floats | None) -> Lines:
        """Return what an inference costs on boards that differ in clocks and supply voltage.

        Parameters
        ----------
        hertz : mapping of str to ndarray of float, (boards,)
            Frequency by clock; others are as deployed.
        volts : ndarray of float, (boards,), or None
            Supply voltage; None: as deployed.
        """
        board = spread_clocks(self.deployment.board, hertz)
        if volts is not None:
            board = replace(board, power=spread_supply(board, volts))
        boards = max([1, *map(len, hertz.values()), 0 if volts is None else len(volts)])
        prices = runtime_prices(self.deployment.repriced(board=board,
                                                         runtime=self.deployment.runtime))
        npu = board.npu
        assert npu is not None
        lines: list[_Line] = []
        costs = [self._price_epochs(lines, npu, prices), *self._price_host(lines, board, prices)]
        clocks = [prices.price(line.event, line.place).clock for line in lines]
        named = tuple(dict.fromkeys((npu.clock, board.core.clock, *clocks)))
        rates = stack_columns([board.clock(name).frequency_hz for name in named])
        traits = self._describe(lines, [named.index(clock) for clock in clocks], named)
        cycles, energy_pj = (np.concatenate([np.broadcast_to(cost[part], (
            boards, np.shape(cost[part])[-1])) for cost in costs], axis=1) for part in range(2))
        hz = np.broadcast_to(rates, (boards, len(named)))
        cycles *= (1e6 / hz)[:, traits.clock]
        powered = stack_columns([_known(prices.price(event, "").pj) for event in POWERED])
        return Lines(
            traits=traits, clocks=named, hertz=hz, energy_pj=energy_pj,
            time_us=cycles,
            powered_pj=np.broadcast_to(powered, (boards, len(POWERED))),
            powered_unsure=np.array([self._unsure(event, "") for event in POWERED]))

    def _price_epochs(self, lines: list[_Line], npu: Npu, prices: Prices,
                      ) -> tuple[Floats, Floats]:
        """Price what the accelerator does and the hand-over, by layer."""
        many = count_many(self.epochs, npu)
        extra = [(number, line) for number, (step, cleaned) in enumerate(zip(
                     self.steps, list_cache_lines(self.deployment, self.steps), strict=True))
                 for line in (*list_moved(self.deployment, step), *cleaned)]
        occurred = np.concatenate([many.occurred, np.broadcast_to(
            [float(line.occurred) for _, line in extra], (len(many.occurred), len(extra)))], axis=1)
        shown = np.append(many.shown, np.ones(len(extra), np.bool_))
        whose = [*many.task.tolist(), *(number for number, _ in extra)]
        events = [*(many.keys.known[key][:2] for key in many.key.tolist()),
                  *((line.event, line.place) for _, line in extra)]
        at, share, heir, layers = self._share(whose)
        occurred = _divide(occurred, at, share, heir)[many.machines]
        lines += [_Line(event=events[line][0], place=events[line][1], family="",
                        epoch=whose[line], layer=layer)
                  for line, layer in zip(at.tolist(), layers, strict=True)]
        cycles, pj = _rate(lines, prices)
        return occurred * np.where(shown[at], cycles, 0.0), spend(occurred, pj)

    def _share(self, whose: Sequence[int]) -> tuple[Ints, Floats, np.ndarray, list[int]]:
        """Line, share, whether it takes what rounding leaves, and layer, of each part of lines."""
        at, share, heir, layers = [], [], [], []
        for line, epoch in enumerate(whose):
            shares = self.steps[epoch].shares
            largest = shares.index(max(shares))
            for place, (own, layer) in enumerate(zip(shares, self.steps[epoch].layers,
                                                     strict=True)):
                at.append(line)
                share.append(own)
                heir.append(place == largest)
                layers.append(layer)
        return np.array(at, int), np.array(share), np.array(heir, np.bool_), layers

    def _price_host(self, lines: list[_Line], board: Board,
                    prices: Prices) -> Iterator[tuple[Floats, Floats]]:
        """Price the host's kernels, and calling them."""
        for structure, layers, epochs in self.groups:
            priced = price_lines(structure, self.deployment.runtime, prices, np.atleast_2d(
                read_timing(board, structure.sheet.places)))
            listed = priced.lines
            for number, layer in zip(listed.number.tolist(), listed.layers.tolist(), strict=True):
                event, place, family = listed.keys[number]
                lines.append(_Line(event=event, place=place, family=family,
                                   epoch=int(epochs[layer]), layer=int(layers[layer])))
            yield priced.cycles, priced.energy_pj

    def _describe(self, lines: Sequence[_Line], clocks: Sequence[int],
                  named: Sequence[str]) -> Traits:
        """Return what lines are added up by."""
        npu = self.deployment.board.npu
        assert npu is not None
        part = [PARTS.index(name_part(line.event, line.place, named[clock], npu,
                                      seen=self.seen[line.epoch], known=self.known[line.epoch]))
                for line, clock in zip(lines, clocks, strict=True)]
        unsure = {key: self._unsure(*key) for key in {(one.event, one.place) for one in lines}}
        return Traits(
            layer=_ints(line.layer for line in lines), epoch=_ints(line.epoch for line in lines),
            clock=_ints(clocks), cause=_ints(_CAUSE[line.event] for line in lines),
            part=_ints(part), price=_ints(time_price(line.event, line.family) for line in lines),
            power=_ints(ENERGY_PRICES.index(power_of(line.event)) for line in lines),
            unsure=np.array([unsure[line.event, line.place] for line in lines]))

    def _unsure(self, event: str, place: str) -> float:
        return self.deviations.get(path_of(event, place, self.deployment.board), 0.0)


def _rate(lines: Sequence[_Line], prices: Prices) -> tuple[Floats, Floats]:
    """Cycles and picojoules of one of each line, (lines,) or (boards, lines)."""
    keys = {key: number for number, key in enumerate(dict.fromkeys(
        (line.event, line.place) for line in lines))}
    number = _ints(keys[line.event, line.place] for line in lines)
    found = [prices.price(*key) for key in keys]
    return (stack_columns([price.cycles for price in found])[..., number],
            stack_columns([_known(price.pj) for price in found])[..., number])


def _divide(amounts: Floats, at: Ints, share: Floats, heir: np.ndarray) -> Floats:
    """Part amounts by shares in 64ths; the largest share takes what rounding leaves."""
    whole = np.take(amounts, at, axis=1)
    if heir.all():
        return whole
    parts = np.where(heir, 0.0, np.floor(whole * share * EXACT) / EXACT)
    given = np.add.reduceat(parts, np.flatnonzero(np.diff(at, prepend=-1)), axis=1)
    divided: Floats = np.where(heir, whole - given[:, at], parts)
    return divided


def _known(pj: float | None) -> float:
    return np.nan if pj is None else pj


def _ints(values: object) -> Ints:
    return np.array([*values], np.int64)  # type: ignore[misc]
