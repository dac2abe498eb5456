"""What layers cost on a processor core: kernels run, counted and priced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from hwmodels.board.facts import Board
from hwmodels.counts import (
    COPYING,
    CountLine,
    Counts,
    Price,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
)
from hwmodels.file_cache import Same
from hwmodels.paths.exposure import count_once
from hwmodels.paths.timing import read_timing
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.prices import derive_prices
from twin.deployment.costs import LayerCost
from twin.deployment.deployment import Deployment
from twin.pricing.rates import CORE_EVENTS
from twin.pricing.structure import Call, Groups, find_structure
from twin.runtimes import Runtime
from twin.runtimes.runtime import COPY


def runtime_prices(deployment: Deployment) -> Prices:
    """Return the board's prices and what the runtime charges: calling a kernel, preparing one."""
    return _derive(Same((deployment.board, deployment.runtime)))


@lru_cache(maxsize=16)
def _derive(priced: Same[tuple[Board, Runtime]]) -> Prices:
    board, runtime = priced.parts
    prices = derive_prices(board)
    slot = prices.price("alu_issue", "")

    def price(place: str, cycles: float, what: str) -> Price:
        return Price(event="kernel_dispatch", place=place, cycles=cycles, clock=slot.clock,
                     pj=None if slot.pj is None else cycles * slot.pj, kind="assumed",
                     source=f"{what} of runtime {runtime.identity}")

    added = (price("", runtime.dispatch_cycles, "dispatch_cycles"),
             price("setup", runtime.setup_cycles_per_op, "setup_cycles_per_op"),
             price("setup channels", runtime.setup_cycles_per_channel,
                   "setup_cycles_per_channel"))
    return Prices({**prices.table, **{(p.event, p.place): p for p in added}})


def price_on_core(deployment: Deployment, groups: Groups, prices: Prices, *, cold: bool,
                  part: tuple[int, ...] = ()) -> tuple[LayerCost, ...]:
    """Run the kernels of layers one after another on the main core.

    Parameters
    ----------
    deployment : Deployment
        For the board, the code's place and the runtime.
    groups : callable
        Returns the kernels of each layer, none for an alias; called where counts are not kept.
    prices : Prices
        From `runtime_prices`.
    cold : bool
        Caches start empty.
    part : tuple of int
        Positions of the layers, where they are some of the network's.

    Returns
    -------
    tuple of LayerCost
        One per layer: its kernels and the calls of the runtime.
    """
    structure, board = find_structure(deployment, groups, cold=cold, part=part), deployment.board
    sheet = structure.sheet
    counts = iter(count_once(sheet, read_timing(board, sheet.places)))
    traffic = iter(structure.traffic)
    scaled = {family: _scale_work(prices, deployment.runtime, family) for family in {
        kernel.family for group in structure.layers for kernel in group}}
    costs = tuple(_price_layer(deployment.runtime, group, [next(counts) for _ in group],
                               [next(traffic) for _ in group], prices, scaled)
                  for group in structure.layers)
    if deployment.transfers is None:
        return costs
    from twin.deployment.transfers import count_transfers

    clock = board.core.clock
    added = count_transfers(deployment.transfers, [cost.bill.cycles(clock) for cost in costs])
    return tuple(replace(cost, bill=merge_bills([cost.bill, make_bill(more, prices)]),
                         counts=merge_counts([cost.counts, more]))
                 for cost, more in zip(costs, added, strict=True))


def _price_layer(runtime: Runtime, kernels: Sequence[Call], counts: Sequence[Counts],
                 traffic: Sequence[KernelTraffic], prices: Prices,
                 scaled: Mapping[str, Prices]) -> LayerCost:
    bills = [make_bill(own, scaled[kernel.family])
             for kernel, own in zip(kernels, counts, strict=True)]
    calls = _count_calls(max(sum(kernel.calls for kernel in kernels),
                             int(runtime.dispatches_aliases)))
    return LayerCost(
        bill=merge_bills([*bills, make_bill(calls, prices)]),
        counts=merge_counts([*counts, calls]),
        kernels=tuple(kernel.name for kernel in kernels),
        families=tuple(kernel.family for kernel in kernels),
        instructions=sum(one.instructions for one in traffic),
        accesses=sum(one.accesses for one in traffic),
        misses=sum(one.misses for one in traffic),
        assumed=any(kernel.assumed for kernel in kernels))


def _scale_work(prices: Prices, runtime: Runtime, family: str) -> Prices:
    """Return prices with the efficiencies of a kernel's family, and of copying, on core events."""
    copying = Prices({(event, COPYING): prices.price(event, COPYING) for event in CORE_EVENTS})
    work = prices.scaled(CORE_EVENTS, runtime.efficiency.get(family, 1.0))
    return Prices({**work.table, **copying.scaled(
        CORE_EVENTS, runtime.efficiency.get(COPY, 1.0)).table})


def _count_calls(calls: int) -> Counts:
    if not calls:
        return Counts()
    return Counts((CountLine(event="kernel_dispatch", occurred=calls, exposed=calls),))
