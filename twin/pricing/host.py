"""What layers cost on a processor core: kernels run, counted and priced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hwmodels.board.facts import Board
from hwmodels.counts import Bill, Counts, Price, Prices, make_bill, merge_bills, merge_counts
from hwmodels.file_cache import Same
from hwmodels.paths.timing import read_timing
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.prices import derive_prices
from twin.deployment.costs import LayerCost
from twin.deployment.deployment import Deployment
from twin.pricing.lines import bill_layers, count_layers, price_lines
from twin.pricing.structure import Call, Groups, find_structure
from twin.runtimes import Runtime


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
    runtime, transfers = deployment.runtime, deployment.transfers
    priced = price_lines(structure, runtime, prices, read_timing(board, structure.sheet.places))
    counts, traffic = count_layers(structure, priced), iter(structure.traffic)
    bills = [Bill(lines) for lines in bill_layers(counts, priced, prices)]
    if transfers is not None:
        from twin.deployment.transfers import count_transfers

        clock = board.core.clock
        added = count_transfers(transfers, [bill.cycles(clock) for bill in bills])
        counts = tuple(merge_counts(both) for both in zip(counts, added, strict=True))
        bills = [merge_bills([bill, make_bill(more, prices)])
                 for bill, more in zip(bills, added, strict=True)]
    return tuple(_cost_layer(kernels, bill, own, [next(traffic) for _ in kernels])
                 for kernels, bill, own in zip(structure.layers, bills, counts, strict=True))


def _cost_layer(kernels: Sequence[Call], bill: Bill, counts: Counts,
                traffic: Sequence[KernelTraffic]) -> LayerCost:
    return LayerCost(
        bill=bill, counts=counts, kernels=tuple(kernel.name for kernel in kernels),
        families=tuple(kernel.family for kernel in kernels),
        instructions=sum(one.instructions for one in traffic),
        accesses=sum(one.accesses for one in traffic),
        misses=sum(one.misses for one in traffic),
        assumed=any(kernel.assumed for kernel in kernels))
