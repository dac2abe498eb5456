"""Many clocks and supply voltages of an accelerator and its host, as columns.

A line is what one event of one task costs one layer, its time and its energy at stated prices on
one board. Boards that differ in clocks and supply are rows of both, and lines are added up by
layer, cause and part of an task by products of matrices. What being powered costs follows from the
time that passes on each clock, as in `twin.pricing.accelerator`: the host waits, its clock tree
runs, it leaks, the accelerator idles. Intervals are those of
`twin.pricing.accelerator.certainty`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.operating_points import spread_clocks, spread_supply
from hwmodels.columns import Keys
from hwmodels.counts import CAUSES, EVENTS, Prices
from hwmodels.frozen import entity
from hwmodels.paths.timing import Floats, read_timing, stack_columns
from hwmodels.schedule.run import count_many
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.pricing.accelerator.certainty import PARTS, knows_host, name_part, was_profiled
from twin.pricing.accelerator.columns import (
    POWERED,
    Hosted,
    TaskLines,
    add_lines,
    divide,
    price_tasks,
)
from twin.pricing.accelerator.costs import (
    list_extra,
    list_host_groups,
    pick_layers,
    task_of,
)
from twin.pricing.accelerator.energy import path_of
from twin.pricing.lines import price_lines, runtime_prices
from twin.pricing.structure import Structure, find_structure
from twin.pricing.task_prices import read_deviations
from twin.runtimes.compiler import Step

Ints = np.ndarray

_CAUSE = {event: CAUSES.index(described.cause) for event, described in EVENTS.items()}


@entity
class Traits:
    """What lines are added up by.

    Parameters
    ----------
    layer, task, clock, cause, part : ndarray of int, (lines,)
        Of each: layer of the network, task, clock of `Lines`, of `CAUSES`, of `PARTS`.
    unsure : ndarray of float, (lines,)
        Relative deviation of its energy.
    """

    layer: Ints
    task: Ints
    clock: Ints
    cause: Ints
    part: Ints
    unsure: Floats


@entity
class Lines:
    """What one inference costs on some boards, line by line.

    Parameters
    ----------
    clocks
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


class Tasks:
    """A deployment on an accelerator: what none of its clocks and voltages changes.

    Parameters
    ----------
    deployment
        On an accelerator, without other masters or weights by DMA.
    """

    def __init__(self, deployment: Deployment) -> None:
        whole = plan_of(deployment).steps
        npu, spread = deployment.board.accelerator, deployment.runtime.mapping.spread
        self.deployment, self.layers = deployment, len(deployment.executed.layers)
        self.clock = npu.clock
        self.steps: list[Step] = [step for step in whole if step.kind != "alias"]
        self.shares = [step.shares for step in self.steps]
        self.tasks = np.repeat(np.arange(len(self.steps)), [len(own) for own in self.shares])
        self.of_layer = np.array([layer for step in self.steps for layer in step.layers], np.int64)
        self.seen = [was_profiled(task_of(step), npu, spread) for step in self.steps]
        self.known = [knows_host(step, deployment.executed, spread)
                      for step in self.steps]
        self.spread = spread
        self.deviations = read_deviations(deployment.board)
        first = np.cumsum([0, *map(len, self.shares)])
        lower, own = cache(partial(lower_network, deployment)), {
            step.layers[0]: part for part, step in zip(first.tolist(), self.steps, strict=False)
            if step.kind == "host"}
        self.groups = [(find_structure(deployment, partial(pick_layers, lower, group), cold=True,
                                       part=tuple(group)), np.array([own[i] for i in group]))
                       for group in list_host_groups(whole)]

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
        counts = add_lines(count_many([task_of(step) for step in self.steps], board.accelerator),
                           list_extra(self.deployment, self.steps))
        lines = price_tasks(divide(counts, self.shares), [
            self._price_host(structure, parts, counts.keys, board, prices)
            for structure, parts in self.groups], prices, board)
        hz = np.broadcast_to(stack_columns([
            board.clock(name).frequency_hz for name in lines.clocks]), (boards, len(lines.clocks)))
        return Lines(
            traits=self._describe(lines), clocks=lines.clocks, hertz=hz,
            time_us=lines.cycles * (1e6 / hz)[:, lines.clock],
            energy_pj=np.broadcast_to(lines.energy_pj, (boards, len(lines.key))),
            powered_pj=np.broadcast_to(lines.powered_pj, (boards, len(POWERED))),
            powered_unsure=np.array([self._unsure(event, "") for event in POWERED]))

    def _price_host(self, structure: Structure, parts: Ints, keys: Keys, board: Board,
                    prices: Prices) -> Hosted:
        """Price the host's kernels, and calling them."""
        priced = price_lines(structure, self.deployment.runtime, prices, np.atleast_2d(
            read_timing(board, structure.arrays.places)))
        listed = priced.lines
        numbers = _ints(keys.number(event, place) for event, place, _ in listed.keys)
        return Hosted(
            part=parts[listed.layers], key=numbers[listed.number],
            occurred=priced.occurred, exposed=priced.exposed, cycles=priced.cycles,
            energy_pj=priced.energy_pj)

    def _describe(self, lines: TaskLines) -> Traits:
        """Return what lines are added up by."""
        npu = self.deployment.board.accelerator
        task = self.tasks[lines.part]
        named = [lines.keys.known[key][:2] for key in lines.key.tolist()]
        part = [PARTS.index(name_part(event, place, lines.clocks[clock], npu, seen=self.seen[own],
                                      known=self.known[own]))
                for (event, place), clock, own in zip(named, lines.clock.tolist(), task.tolist(),
                                                      strict=True)]
        unsure = {key: self._unsure(*key) for key in set(named)}
        return Traits(
            layer=self.of_layer[lines.part], task=task, clock=lines.clock,
            cause=_ints(_CAUSE[event] for event, _ in named), part=_ints(part),
            unsure=np.array([unsure[key] for key in named]))

    def _unsure(self, event: str, place: str) -> float:
        return self.deviations.get(path_of(event, place, self.deployment.board), 0.0)


def _ints(values: object) -> Ints:
    return np.array([*values], np.int64)  # type: ignore[misc]
