"""How a network's accesses fare in the caches of a core: per layer, over geometries, over policies.

Counts are of the data side and warm unless said otherwise. The working set of a layer is every
line its cached operands touch; code is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hwmodels.board.facts import Board, Cache
from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.board.policies import POLICIES
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.kernel import Kernel
from hwmodels.paths.code import CodePath
from hwmodels.paths.lookup import data_cache
from hwmodels.simulator import KernelRun, simulate
from twin.deployment.deployment import Deployment
from twin.deployment.sites import code_address, lower_network
from twin.errors import UsageError
from twin.network.operators import is_alias
from twin.prediction.prediction import predict

if TYPE_CHECKING:
    from hwmodels.cache.geometries import Walked

CANDIDATES = tuple(name for name, policy in POLICIES.items() if policy.candidate)
"""Replacement policies an undocumented cache may have."""

SIZES_BYTES = tuple(1024 << power for power in range(8))
WAYS = (1, 2, 4, 8)
"""Geometries of a sweep, beside the cache's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerLocality:
    """What one layer's loads and stores met.

    Parameters
    ----------
    accesses, misses : int
        Lines looked up and filled.
    write_backs : int
        Dirty lines that had to leave, of this layer or an earlier one.
    working_set_bytes : int
        Lines touched, each once.
    direct : int
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Locality:
    """A network in the data caches of its board.

    Parameters
    ----------
    caches : tuple of Cache
        That loads and stores look up first.
    layers : tuple of LayerLocality
        In execution order, aliases left out.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """The network in caches of another geometry."""

    size_bytes: int
    ways: int
    accesses: int
    misses: int

    @property
    def miss_ratio(self) -> float:
        """Misses per line looked up."""
        return self.misses / self.accesses if self.accesses else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementRange:
    """What not knowing a replacement policy leaves open.

    Parameters
    ----------
    caches : tuple of str
        Whose policy is assumed; none: the candidates are the stated policy alone.
    time_us : tuple of (str, float)
        Of an inference by candidate, the assumed one first.
    """

    caches: tuple[str, ...]
    time_us: tuple[tuple[str, float], ...]

    @property
    def low(self) -> float:
        """Shortest time over that of the assumed policy."""
        return min(time for _, time in self.time_us) / self.time_us[0][1]

    @property
    def high(self) -> float:
        """Longest time over that of the assumed policy."""
        return max(time for _, time in self.time_us) / self.time_us[0][1]


def measure_locality(deployment: Deployment, *, cold: bool = False) -> Locality:
    """Run a deployment's accesses through its caches.

    Parameters
    ----------
    deployment : Deployment
        Of a runtime of the core.
    cold : bool
        Caches start empty.

    Returns
    -------
    Locality
        Per layer.

    Raises
    ------
    UsageError
        When the runtime offloads: its host starts with empty caches in each software epoch.
    """
    groups = _lower(deployment)
    done = _run(deployment, deployment.board, groups, cold)
    runs, layers = iter(done), deployment.executed.layers
    return Locality(
        lower=_sum_lower(done),
        deployment=deployment, temperature="cold" if cold else "warm",
        caches=data_caches(deployment.board),
        layers=tuple(_sum_up(deployment.board, layer, group, [next(runs) for _ in group])
                     for layer, group in zip(layers, groups, strict=True)
                     if not is_alias(layer)))


def _sum_lower(runs: Sequence[KernelRun]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for name, counts in (one for run in runs for one in run.lower):
        before = sums.get(name, (0, 0))
        sums[name] = (
            before[0] + counts.total("read_touches") + counts.total("write_touches"),
            before[1] + counts.total("read_misses") + counts.total("write_misses"))
    return sums


def data_caches(board: Board) -> tuple[Cache, ...]:
    """Return the caches loads and stores of a board look up first."""
    found = dict.fromkeys(data_cache(board, memory) for memory in board.memories)
    return tuple(cache for cache in found if cache is not None)


def sweep_caches(deployment: Deployment, sizes_bytes: Sequence[int],
                 ways: Sequence[int]) -> tuple[SweepPoint, ...]:
    """Run a deployment with its data caches at other sizes and associativities.

    Parameters
    ----------
    deployment : Deployment
        Of a runtime of the core.
    sizes_bytes, ways : sequence of int
        Every pair that makes whole sets is run; line and policy stay (tree pseudo-LRU
        becomes LRU at ways that are no power of two).

    Returns
    -------
    tuple of SweepPoint
        Warm; by ways, then size.
    """
    from hwmodels.cache.geometries import fewest_sets, strip_touches, sweep_misses

    kernels = [kernel for group in _lower(deployment) for kernel in group]
    measured = measure_locality(deployment)
    points = {(way, size): 0 for way in ways for size in sizes_bytes}
    for cache in measured.caches:
        shapes = {key: _reshape(cache, key[1], key[0]) for key in points}
        possible = {key: shape for key, shape in shapes.items() if shape is not None}
        points = {key: points[key] for key in possible}
        if not possible:
            continue
        stripped = strip_touches(_walk(deployment, kernels, cache), cache.line_bytes,
                                 fewest_sets([*possible.values()]))
        for key, misses in zip(possible, sweep_misses(stripped, [*possible.values()]),
                               strict=True):
            points[key] += misses
    return tuple(SweepPoint(size_bytes=size, ways=way, accesses=measured.accesses, misses=misses)
                 for (way, size), misses in points.items())


def replacement_range(deployment: Deployment) -> ReplacementRange:
    """Predict under every replacement policy a cache of undocumented policy may have.

    Parameters
    ----------
    deployment : Deployment
        Any.

    Returns
    -------
    ReplacementRange
        Policies are those the board file marks `assumed` or does not state; all such caches change
        together.

    Notes
    -----
    Tree pseudo-LRU is tried only where every cache has a power of two of ways, up to 32.
    """
    board = deployment.board
    known = {fact.path for fact in board.facts
             if fact.kind != "assumed" or fact.source == WHAT_IF_SOURCE}
    open_caches = [cache for cache in board.caches if cache.enabled
                   and cache.ways > 1 and _is_used(board, cache)
                   and f"caches.{cache.name}.replacement" not in known]
    first = predict(deployment).time_us
    if not open_caches:
        stated = "/".join(dict.fromkeys(cache.replacement for cache in data_caches(board)))
        return ReplacementRange(caches=(), time_us=((stated or "none", first),))
    times = [(open_caches[0].replacement, first)]
    for policy in CANDIDATES:
        if policy == open_caches[0].replacement or not all(
                POLICIES[policy].takes(cache.ways) for cache in open_caches):
            continue
        other = _with_caches(board, [replace(cache, replacement=policy)
                                     for cache in open_caches])
        times.append((policy, predict(replace(deployment, board=other)).time_us))
    return ReplacementRange(caches=tuple(cache.name for cache in open_caches),
                            time_us=tuple(times))


def to_locality_document(locality: Locality, sweep: Sequence[SweepPoint],
                         policies: ReplacementRange, prices: str = "stated") -> dict[str, Any]:
    """Return everything `twin cache` says as plain JSON types; `prices` are those of its times."""
    deployment = locality.deployment
    return {
        "schema": 1, "kind": "cache", "temperature": locality.temperature,
        "model": deployment.graph.name, "board": deployment.board.name,
        "runtime": deployment.runtime.identity,
        "placement": {"weights": deployment.weights, "arena": deployment.arena,
                      "code": deployment.code},
        "caches": [{"name": cache.name, "size_bytes": cache.size_bytes,
                    "line_bytes": cache.line_bytes, "ways": cache.ways,
                    "replacement": cache.replacement, "below": cache.below}
                   for cache in locality.caches],
        "lower": {name: {"accesses": looked_up, "misses": filled}
                  for name, (looked_up, filled) in locality.lower.items()},
        "layers": [{"index": layer.index, "name": layer.name, "op": layer.op,
                    "accesses": layer.accesses, "misses": layer.misses,
                    "miss_rate": layer.miss_rate, "write_backs": layer.write_backs,
                    "working_set_bytes": layer.working_set_bytes,
                    "direct_accesses": layer.direct} for layer in locality.layers],
        "total": {"accesses": locality.accesses, "misses": locality.misses,
                  "miss_rate": locality.miss_rate, "write_backs": locality.write_backs},
        "prices": prices,
        "replacement": {"assumed_of": list(policies.caches), "low": policies.low,
                        "high": policies.high, "time_us": dict(policies.time_us)},
        "sweep": [{"size_bytes": point.size_bytes, "ways": point.ways,
                   "accesses": point.accesses, "misses": point.misses,
                   "miss_ratio": point.miss_ratio} for point in sweep],
    }


def _lower(deployment: Deployment) -> tuple[tuple[Kernel, ...], ...]:
    if deployment.target.offloads:
        raise UsageError(f"{deployment.runtime.identity} offloads, and its host starts with empty "
                         "caches; accepted: a runtime of the core, such as tflm-cmsis-nn")
    return lower_network(deployment)


def _run(deployment: Deployment, board: Board, groups: Sequence[tuple[Kernel, ...]],
         cold: bool) -> tuple[KernelRun, ...]:
    return simulate([kernel for group in groups for kernel in group], board, cold=cold,
                    code_address=code_address(deployment), code_memory=deployment.code)


def _sum_up(board: Board, layer: Any, kernels: Sequence[Kernel],
            runs: Sequence[KernelRun]) -> LayerLocality:
    return LayerLocality(
        index=layer.index, name=layer.name, op=layer.op,
        accesses=sum(run.cache_accesses for run in runs),
        misses=sum(run.cache_misses for run in runs),
        write_backs=sum(run.data.write_backs() for run in runs),
        working_set_bytes=_working_set_bytes(board, kernels),
        direct=sum(one.reads + one.writes for run in runs for one in run.data.operands
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
            total += cache.line_bytes * (counts.total("read_misses")
                                         + counts.total("write_misses"))
    return total


def _walk(deployment: Deployment, kernels: Sequence[Kernel], cache: Cache) -> list[Walked]:
    """Return what reaches a data cache, in order: code of kernels where it is unified, operands.

    Stores are taken to allocate: caches that do not hold constants only.
    """
    from hwmodels.cache.geometries import Walked

    board = deployment.board
    code = CodePath(kernels, board, code_address(deployment), deployment.code, {})
    walks = []
    for kernel in kernels:
        walk = code.walk(kernel) if code.cache is cache else None
        if walk is not None:
            walks.append(Walked(nests=(walk[0],), operands=(walk[1],), chosen=(True,),
                                counted=False))
        walks.append(Walked(nests=kernel.nests, operands=kernel.operands, chosen=tuple(
            data_cache(board, board.memory(operand.memory)) is cache
            for operand in kernel.operands)))
    return walks


def _reshape(cache: Cache, size_bytes: int, ways: int) -> Cache | None:
    if size_bytes < cache.line_bytes * ways or size_bytes % (cache.line_bytes * ways):
        return None
    policy = cache.replacement
    if not POLICIES[policy].takes(ways):
        policy = "lru"
    return replace(cache, size_bytes=size_bytes, ways=ways, replacement=policy)


def _with_caches(board: Board, caches: Sequence[Cache]) -> Board:
    changed = {cache.name: cache for cache in caches}
    return replace(board, caches=tuple(changed.get(cache.name, cache) for cache in board.caches))


def _is_used(board: Board, cache: Cache) -> bool:
    return cache.name in (board.core.icache, board.core.dcache, *board.core.data_caches)
