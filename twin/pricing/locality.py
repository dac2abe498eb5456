"""How a network's accesses fare in the caches of a core, layer by layer.

Counts are of the data side and warm unless said otherwise. The working set of a layer is every
line its cached operands touch; code is not in it.
What an undocumented replacement policy leaves open is the time under each it may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from hwmodels.board.facts import Board, Cache
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.frozen import NamedNumbers, frozen
from hwmodels.kernel import Kernel, Lowered
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.paths.ways import data_cache, data_caches
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.operators import is_alias
from twin.pricing.inference import predict
from twin.pricing.lines import list_open, list_rivals, price_rivals, runtime_prices
from twin.pricing.structure import find_structure

WORRYING = 0.10
"""Miss rate from which a layer is called bound by its cache."""


@frozen
class LayerLocality:
    """What one layer's loads and stores met.

    Parameters
    ----------
    accesses, misses
        Lines looked up and filled.
    write_backs
        Dirty lines that had to leave, of this layer or an earlier one.
    working_set_bytes
        Lines touched, each once.
    direct
        Accesses no cache looks up.
    """

    index: int
    name: str
    op: str
    accesses: int
    misses: int
    write_backs: int
    working_set_bytes: int
    direct: int

    @property
    def miss_rate(self) -> float | None:
        """Misses per line looked up; None where nothing is."""
        return self.misses / self.accesses if self.accesses else None


@frozen
class Locality:
    """A network in the data caches of its board.

    Parameters
    ----------
    caches
        That loads and stores look up first.
    layers
        In execution order, aliases omitted.
    lower : mapping of str to (int, int)
        Lines looked up and filled in caches below those, by name.
    """

    deployment: Deployment
    temperature: str
    caches: tuple[Cache, ...]
    layers: tuple[LayerLocality, ...]
    lower: Mapping[str, tuple[int, int]]

    @property
    def accesses(self) -> int:
        """Lines looked up."""
        return sum(layer.accesses for layer in self.layers)

    @property
    def misses(self) -> int:
        """Lines filled."""
        return sum(layer.misses for layer in self.layers)

    @property
    def write_backs(self) -> int:
        """Dirty lines written to memory."""
        return sum(layer.write_backs for layer in self.layers)

    @property
    def miss_rate(self) -> float | None:
        """Misses per line looked up; None where nothing is."""
        return self.misses / self.accesses if self.accesses else None

    @property
    def capacity_bytes(self) -> int:
        """Of all the caches."""
        return sum(cache.size_bytes for cache in self.caches)


def measure_locality(deployment: Deployment, *, cold: bool = False) -> Locality:
    """Run a deployment's accesses through its caches.

    Parameters
    ----------
    deployment
        Of a runtime of the core.
    cold
        Caches start empty.

    Returns
    -------
    Locality
        Per layer.

    Raises
    ------
    UsageError
        On an accelerator, whose host starts each of its tasks with empty caches.
    """
    groups = lower_kernels(deployment)
    done = find_structure(deployment, lambda: groups, cold=cold).traffic
    runs, layers = iter(done), deployment.executed.layers
    return Locality(
        lower=_sum_lower(done), deployment=deployment, temperature="cold" if cold else "warm",
        caches=data_caches(deployment.board),
        layers=tuple(_sum_up(deployment.board, layer, group, [next(runs) for _ in group])
                     for layer, group in zip(layers, groups, strict=True)
                     if not is_alias(layer)))


def _sum_lower(runs: Sequence[KernelTraffic]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for name, _, counts in (one for run in runs for one in run.data.lower):
        before = sums.get(name, (0, 0))
        sums[name] = (
            before[0] + counts.total("read_touches") + counts.total("write_touches"),
            before[1] + counts.total("read_misses") + counts.total("write_misses"))
    return sums


def lower_kernels(deployment: Deployment) -> tuple[Lowered, ...]:
    """Return the kernels of each layer, in the order the core's caches meet them.

    Parameters
    ----------
    deployment
        Of a runtime of the core.

    Returns
    -------
    tuple of tuple of Kernel
        By layer.

    Raises
    ------
    UsageError
        On an accelerator.
    """
    if deployment.accelerated:
        raise UsageError(f"{deployment.runtime.identity} offloads, and its host starts with empty "
                         "caches; accepted: a runtime of the core, such as tflm-cmsis-nn")
    return lower_network(deployment)


def _sum_up(board: Board, layer: Any, kernels: Sequence[Kernel],
            runs: Sequence[KernelTraffic]) -> LayerLocality:
    return LayerLocality(
        index=layer.index, name=layer.name, op=layer.op, accesses=sum(run.accesses for run in runs),
        misses=sum(run.misses for run in runs),
        write_backs=sum(run.data.counts.write_backs() for run in runs),
        working_set_bytes=_working_set_bytes(board, kernels),
        direct=sum(one.reads + one.writes for run in runs for one in run.data.counts.operands
                   if not one.cached))


def _working_set_bytes(board: Board, kernels: Sequence[Kernel]) -> int:
    """Bytes of the lines touched: misses of a cache in which no two lines share a set."""
    total = 0
    for memory in dict.fromkeys(operand.memory for kernel in kernels
                                for operand in kernel.operands):
        cache = data_cache(board, board.memory(memory))
        mine = [operand for kernel in kernels for operand in kernel.operands
                if operand.memory == memory]
        if cache is None:
            continue
        span = (max(operand.address + operand.size_bytes for operand in mine)
                - min(operand.address for operand in mine))
        size = cache.line_bytes << (span // cache.line_bytes + 1).bit_length()
        roomy = Cache(name="roomy", size_bytes=size, line_bytes=cache.line_bytes, ways=1)
        state = new_state(roomy)
        for kernel in kernels:
            counts, state = simulate_nests(
                roomy, kernel.nests, kernel.operands, state,
                [operand.memory == memory for operand in kernel.operands])
            total += cache.line_bytes * (counts.total("read_misses") + counts.total("write_misses"))
    return total


@frozen
class ReplacementRange:
    """What not knowing a replacement policy leaves open.

    Parameters
    ----------
    caches
        Whose policy is assumed; none: the candidates are the stated policy alone.
    time_us : tuple of (str, float)
        Of an inference by candidate, the assumed one first.
    """

    caches: tuple[str, ...]
    time_us: NamedNumbers

    @property
    def low(self) -> float:
        """Shortest time over that of the assumed policy."""
        return min(time for _, time in self.time_us) / self.time_us[0][1]

    @property
    def high(self) -> float:
        """Longest time over that of the assumed policy."""
        return max(time for _, time in self.time_us) / self.time_us[0][1]


def replacement_range(deployment: Deployment) -> ReplacementRange:
    """Predict under every replacement policy a cache of undocumented policy may have.

    Returns
    -------
    ReplacementRange
        Policies are those the board file marks `assumed` or does not state; all such caches change
        together.

    Notes
    -----
    Tree pseudo-LRU is tried only where every cache has a power of two of ways, up to 32.
    """
    caches = list_open(deployment.board)
    if not caches:
        stated = "/".join(dict.fromkeys(
            cache.replacement for cache in data_caches(deployment.board)))
        return ReplacementRange(caches=(), time_us=(
            (stated or "none", predict(deployment).time_us),))
    core = deployment.board.core_clock
    times_us = [(policy, math.fsum(priced.cycles) / core.frequency_hz * 1e6)
                for policy, priced in price_rivals(
                    deployment, runtime_prices(deployment),
                    cache(partial(lower_network, deployment)))] if deployment.is_itemised else [
        (policy, predict(one).time_us) for policy, one in list_rivals(deployment)]
    return ReplacementRange(caches=tuple(cache.name for cache in caches), time_us=tuple(times_us))
