"""Lines of a structure times prices: events x prices, for one configuration or many at once.

A line is one event at one place for one operand of one kernel, or the calls of a layer. With o how
often it occurred, x what stretched the run, e the efficiency of the kernel's family (of a
convolution that of narrow and wide ones, mixed by its width) and c and p the prices of time and
energy,

    cycles = x c e      energy = o p e

On a processor core kernels are run, counted and priced so (`price_on_core`).
Where a replacement policy is not documented, they are under each it may be (`price_rivals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.board.policies import POLICIES
from hwmodels.counts import (
    Bill,
    BillLine,
    CountLine,
    Counts,
    Price,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
    order_of,
)
from hwmodels.file_cache import Same
from hwmodels.frozen import entity
from hwmodels.paths.exposure import expose
from hwmodels.paths.timing import Floats, read_timing, stack_columns
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.prices import derive_prices
from twin.deployment.costs import LayerCost
from twin.deployment.deployment import Deployment
from twin.network.graph import GraphLayer
from twin.pricing.price_names import mix_efficiency, name_work
from twin.pricing.structure import Call, Groups, Structure, find_structure
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
             price("setup channels", runtime.setup_cycles_per_channel, "setup_cycles_per_channel"))
    return Prices({**prices.table, **{(p.event, p.place): p for p in added}})


def price_on_core(deployment: Deployment, groups: Groups, prices: Prices, *, cold: bool,
                  part: tuple[int, ...] = ()) -> tuple[LayerCost, ...]:
    """Run the kernels of layers one after another on the main core.

    Parameters
    ----------
    deployment
        For the board, the code's place and the runtime.
    groups
        Returns the kernels of each layer, none for an alias; called where counts are not kept.
    prices
        From `runtime_prices`.
    cold
        Caches start empty.
    part
        Positions of the layers, where they are some of the network's.

    Returns
    -------
    tuple of LayerCost
        One per layer: its kernels and the calls of the runtime.
    """
    structure, board = find_structure(deployment, groups, cold=cold, part=part), deployment.board
    runtime, transfers = deployment.runtime, deployment.transfers
    priced = price_lines(structure, runtime, prices, read_timing(board, structure.arrays.places),
                         list_shares(deployment))
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
        accesses=sum(one.accesses for one in traffic), misses=sum(one.misses for one in traffic),
        assumed=any(kernel.assumed for kernel in kernels))


Ints = NDArray[np.int64]
Event = tuple[int, str, str, str]
"""Layer, event, place and operand of a line of a layer's bill."""

KEPT = 256
"""Structures whose lines are kept in order, and timings whose counts are."""


@entity
class Lines:
    """Lines of a structure as prices see them: the same at every timing.

    Parameters
    ----------
    keys : tuple of (str, str, str)
        Event, place and family each price is looked up by; "" for what no efficiency scales.
    number, layers : ndarray of int, (lines,)
        Key and layer of each line.
    calls : ndarray of float, (layers,)
        How often each layer calls a kernel: the last lines.
    events
        Lines of bills: those of kernels of one layer are added up.
    order, starts : ndarray of int, (lines,), (events,)
        Lines as they are added up, and where the lines of each event begin in that order.
    whole
        Events that occur in whole numbers.
    """

    keys: tuple[tuple[str, str, str], ...]
    number: Ints
    layers: Ints
    calls: Floats
    events: tuple[Event, ...]
    order: Ints
    starts: Ints
    whole: tuple[bool, ...]


@entity
class PricedLines:
    """Lines times prices; of one configuration, or of many with a row for each.

    Parameters
    ----------
    occurred, exposed : ndarray of float, (lines,) or (n, lines)
        All of an event, and what stretched the run.
    cycles : ndarray of float, (lines,) or (n, lines)
        Of the core's clock.
    pj : ndarray of float, (lines,) or (n, lines)
        Price of one that occurred; NaN is not known.
    """

    lines: Lines
    occurred: Floats
    exposed: Floats
    cycles: Floats
    pj: Floats

    @property
    def energy_pj(self) -> Floats:
        """Energy of each line; of what did not occur none, known or not."""
        return spend(self.occurred, self.pj)


def spend(occurred: Floats, pj: Floats) -> Floats:
    """Return the energy of what occurred; of what did not none, known or not."""
    spent: Floats = occurred * pj
    return np.where(occurred != 0, spent, 0.0) if np.isnan(pj).any() else spent


def list_shares(deployment: Deployment) -> Floats | None:
    """Return the share of each layer the core with more of it computes; None with one core."""
    if not deployment.runtime.barrier_cycles:
        return None
    graph, library = deployment.executed, deployment.runtime.library
    share_rows = import_module(f"twin.runtimes.{library}.cores").share_rows
    return np.array([share_rows(GraphLayer(graph, layer)) for layer in graph.layers])


def price_lines(structure: Structure, runtime: Runtime, prices: Prices, timing: Floats,
                shares: Floats | None = None) -> PricedLines:
    """Return the lines of a structure times prices.

    Parameters
    ----------
    runtime
        For its efficiencies, 1 where absent, and its calls.
    prices
        From `twin.pricing.lines.runtime_prices`; of many boards each price may be an array.
    timing : ndarray of float, (width,) or (n, width)
        Of `hwmodels.paths.timing.read_timing`.
    shares
        From `list_shares`.
    """
    lines = list_lines(structure, runtime.dispatches_aliases)
    occurred, exposed = expose(structure.arrays, timing)
    calls = np.broadcast_to(lines.calls, (*occurred.shape[:-1], len(lines.calls)))
    occurred, exposed = (np.concatenate([own, calls], axis=-1) for own in (occurred, exposed))
    cycles, energies = [], []
    for event, place, family in lines.keys:
        price, factor = prices.price(event, place), mix_efficiency(runtime.efficiency, family)
        cycles.append(price.cycles * factor)
        energies.append(np.nan if price.pj is None else price.pj * factor)
    each = stack_columns(cycles)[..., lines.number]
    if shares is not None:
        from twin.pricing.cores import split_lines

        exposed = exposed * split_lines(
            exposed * each, [operand for *_, operand in structure.arrays.lines], lines.layers,
            shares, runtime.barrier_cycles)
    return PricedLines(lines=lines, occurred=occurred, exposed=exposed, cycles=exposed * each,
                       pj=stack_columns(energies)[..., lines.number])


@lru_cache(maxsize=KEPT)
def list_lines(structure: Structure, calls_aliases: bool) -> Lines:
    """Return the lines of a structure; a layer without kernels may be called, too."""
    calls = tuple([max(sum(kernel.calls for kernel in layer), int(calls_aliases))
                   for layer in structure.layers])
    return _order_lines(structure.arrays.lines, structure.arrays.whole, tuple([
        (layer, kernel.family, kernel.wide) for layer, kernels in enumerate(structure.layers)
        for kernel in kernels]), calls)


@lru_cache(maxsize=KEPT // 4)
def _order_lines(listed: tuple[Event, ...], whole: tuple[bool, ...],
                 kernels: tuple[tuple[int, str, float], ...], calls: tuple[int, ...]) -> Lines:
    """Return lines of kernels of layers and families: the same under most cache policies."""
    numbers: dict[tuple[str, str, str], int] = {}
    number, events = [], []
    for kernel, event, place, operand in listed:
        layer, family, wide = kernels[kernel]
        key = (event, place, name_work(event, place, family, wide))
        number.append(numbers.setdefault(key, len(numbers)))
        events.append((layer, event, place, operand))
    for layer in range(len(calls)):
        number.append(numbers.setdefault(("kernel_dispatch", "", ""), len(numbers)))
        events.append((layer, "kernel_dispatch", "", ""))
    order = sorted(range(len(events)), key=lambda line: (events[line][0],
                                                         *order_of(*events[line][1:])))
    starts = [at for at, line in enumerate(order)
              if not at or events[line] != events[order[at - 1]]]
    ended, all_whole = [*starts[1:], len(order)], (*whole, *(True for _ in calls))
    return Lines(
        keys=tuple(numbers), number=np.array(number, np.int64),
        layers=np.array([event[0] for event in events], np.int64),
        calls=np.array(calls, np.float64), events=tuple(events[order[at]] for at in starts),
        order=np.array(order, np.int64), starts=np.array(starts, np.int64),
        whole=tuple(all(all_whole[line] for line in order[begin:end])
                    for begin, end in zip(starts, ended, strict=True)))


def count_layers(structure: Structure, priced: PricedLines) -> tuple[Counts, ...]:
    """Return the counts of each layer, of one configuration."""
    return _count_layers(structure, priced.lines, priced.occurred.tobytes(),
                         priced.exposed.tobytes())


@lru_cache(maxsize=KEPT // 4)
def _count_layers(structure: Structure, lines: Lines, occurred: bytes,
                  exposed: bytes) -> tuple[Counts, ...]:
    amounts, shown = (np.frombuffer(column, np.float64) for column in (occurred, exposed))
    stands = np.append(structure.arrays.kept, np.zeros(len(lines.calls), np.bool_)) | (amounts != 0)
    found: list[list[CountLine]] = [[] for _ in structure.layers]
    for (layer, event, place, operand), one, own, whole, stand in zip(
            lines.events, _add(lines, amounts), _add(lines, shown), lines.whole,
            _add(lines, stands), strict=True):
        if stand:
            found[layer].append(CountLine(event=event, place=place, operand=operand,
                                          occurred=int(one) if whole else one, exposed=own))
    return tuple(Counts(tuple(own)) for own in found)


def bill_layers(counts: tuple[Counts, ...], priced: PricedLines,
                prices: Prices) -> list[tuple[BillLine, ...]]:
    """Return the lines of each layer's bill, of one configuration.

    Parameters
    ----------
    counts
        From `count_layers`.
    prices
        Of which clock each event is.
    """
    lines = priced.lines
    costs = dict(zip(lines.events, zip(_add(lines, priced.cycles), _add(
        lines, priced.occurred * priced.pj), strict=True), strict=True))
    found = []
    for layer, own in enumerate(counts):
        made = []
        for line in own.lines:
            cycles, energy_pj = costs[layer, line.event, line.place, line.operand]
            made.append(BillLine(
                event=line.event, place=line.place, operand=line.operand,
                clock=prices.price(line.event, line.place).clock, occurred=line.occurred,
                exposed=line.exposed, cycles=cycles,
                energy_pj=None if energy_pj != energy_pj else energy_pj))
        found.append(tuple(made))
    return found


def _add(lines: Lines, values: np.ndarray) -> list[float]:
    """Add up lines by event."""
    if not len(lines.starts):
        return []
    return list(np.add.reduceat(values[lines.order], lines.starts).tolist())


CANDIDATES = tuple(name for name, policy in POLICIES.items() if policy.candidate)
"""Replacement policies an undocumented cache may have."""

NO_CACHE = "no cache"
"""Rival of a cache that may not be there."""

WAITS = {"no wait states": 0, "twice the wait states": 2}
"""Rivals of a memory whose waits are guessed, and how often they are as many."""


def list_open(board: Board) -> tuple[Cache, ...]:
    """Return the caches in use whose replacement policy nobody documents."""
    known = {fact.path for fact in board.facts
             if fact.kind != "assumed" or fact.source == WHAT_IF_SOURCE}
    return tuple(cache for cache in board.caches if cache.enabled
                 and cache.ways > 1 and cache.name in (
                     board.core.icache, board.core.dcache, *board.core.data_caches)
                 and f"caches.{cache.name}.replacement" not in known)


def list_doubtful(board: Board) -> tuple[Cache, ...]:
    """Return the caches in use that may not be there: nought is within their size's deviation."""
    return tuple(cache for cache in board.caches
                 if cache.enabled and f"caches.{cache.name}.size_bytes" in _list_guesses(board))


def list_guessed_reads(board: Board) -> tuple[Memory, ...]:
    """Return the memories that wait and whose wait states or width of a read are guessed."""
    guesses = _list_guesses(board)
    return tuple(one for one in board.memories if one.wait_states and {
        f"memories.{one.name}.{fact}" for fact in ("read_bytes", "wait_states_max_hz")} & guesses)


def _list_guesses(board: Board) -> set[str]:
    """Return the paths of facts that may be nought, or twice as much."""
    return {fact.path.removesuffix(".default") for fact in board.facts
            if (fact.rel_sd or 0.0) >= 1.0}


def list_rivals(deployment: Deployment) -> tuple[tuple[str, Deployment], ...]:
    """Return a deployment under each policy open caches may have, the assumed one first, if any is.

    After these, without the caches that may not be there, and with other waits than were guessed.
    """
    board = deployment.board
    caches, doubtful, reads = list_open(board), list_doubtful(board), list_guessed_reads(board)

    def change(changed: Sequence[Cache], **fields: Any) -> Board:
        return replace(board, caches=tuple(
            replace(one, **fields) if one in changed else one for one in board.caches))

    boards = [*((policy, change(caches, replacement=policy)) for policy in CANDIDATES
                if caches and policy != caches[0].replacement
                and all(POLICIES[policy].takes(cache.ways) for cache in caches)),
              *([(NO_CACHE, change(doubtful, enabled=False))] if doubtful else []),
              *((name, replace(board, memories=tuple(
                  replace(one, wait_states=times * one.wait_states) if one in reads else one
                  for one in board.memories))) for name, times in WAITS.items() if reads)]
    return ((caches[0].replacement if caches else "as stated", deployment), *(
        (name, replace(deployment, board=one)) for name, one in boards)) if caches or boards else ()


def price_rivals(deployment: Deployment, prices: Prices,
                 lower: Groups) -> list[tuple[str, PricedLines]]:
    """Return the lines of a warm inference as each rival has them, if anything is open.

    Parameters
    ----------
    deployment
        All of it on the core; the assumed policy is the first.
    prices
        Of the board, the same under each.
    lower
        Returns the kernels of each layer.
    """
    found, rivals = [], list_rivals(deployment)
    shares = list_shares(deployment) if rivals else None
    timing = lru_cache(partial(read_timing, deployment.board))
    alone = deployment.loads or any(cache.below for cache in deployment.board.caches)
    alike = [] if alone else [rival for policy, rival in rivals if policy in POLICIES]
    for place, (policy, rival) in enumerate(rivals, start=1):
        structure = find_structure(rival, lower, cold=False, alike=alike[place:])
        places = structure.arrays.places
        own = runtime_prices(rival) if policy == NO_CACHE else prices
        us = read_timing(rival.board, places) if policy in (NO_CACHE, *WAITS) else timing(places)
        found.append((policy, price_lines(structure, deployment.runtime, own, us, shares)))
    return found
