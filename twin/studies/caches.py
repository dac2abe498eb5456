"""A network in caches of many sizes and associativities, and what `twin cache` says as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwmodels.board.facts import Cache
from hwmodels.board.policies import policy_of
from hwmodels.cache.set_associative import new_state, simulate_kernels
from hwmodels.frozen import frozen
from hwmodels.kernel import Kernel
from hwmodels.paths.code import CodePath
from hwmodels.paths.ways import data_cache
from twin.deployment.core import code_address
from twin.deployment.deployment import Deployment
from twin.pricing.locality import lower_kernels, measure_locality

SIZES_BYTES = tuple(1024 << power for power in range(8))
WAYS = (1, 2, 4, 8)
"""Geometries of a sweep, beside the cache's own."""


@frozen
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


def sweep_caches(deployment: Deployment, sizes_bytes: Sequence[int],
                 ways: Sequence[int]) -> tuple[SweepPoint, ...]:
    """Run a deployment with its data caches at other sizes and associativities.

    Parameters
    ----------
    deployment
        Of a runtime of the core.
    sizes_bytes, ways
        Every pair that makes whole sets is run; line and policy stay (tree pseudo-LRU
        becomes LRU at ways that are no power of two).

    Returns
    -------
    tuple of SweepPoint
        Warm; by ways, then size.
    """
    kernels = [kernel for group in lower_kernels(deployment) for kernel in group]
    measured = measure_locality(deployment)
    points = {(way, size): 0 for way in ways for size in sizes_bytes}
    for cache in measured.caches:
        shapes = {key: _reshape(cache, key[1], key[0]) for key in points}
        walks, flags, counted = _walk(deployment, kernels, cache)
        points = {key: points[key] + _count_misses(shape, walks, flags, counted)
                  for key, shape in shapes.items() if shape is not None}
    return tuple(SweepPoint(size_bytes=size, ways=way, accesses=measured.accesses, misses=misses)
                 for (way, size), misses in points.items())


def _walk(deployment: Deployment, kernels: Sequence[Kernel], cache: Cache,
          ) -> tuple[list[Kernel], list[tuple[bool, ...]], list[bool]]:
    """Return what reaches a data cache, in order: code of kernels where it is unified, operands.

    With each, which operands look the cache up, and whether its misses count: data's do.
    """
    board = deployment.board
    code = CodePath(kernels, board, code_address(deployment), deployment.code, {})
    walks: list[Kernel] = []
    flags: list[tuple[bool, ...]] = []
    counted: list[bool] = []
    for kernel in kernels:
        walk = code.find_walk(kernel) if code.cache is cache else None
        if walk is not None:
            walks.append(walk)
            flags.append((True,))
            counted.append(False)
        walks.append(kernel)
        flags.append(tuple([data_cache(board, board.memory(operand.memory)) is cache
                            for operand in kernel.operands]))
        counted.append(True)
    return walks, flags, counted


def _count_misses(cache: Cache, kernels: Sequence[Kernel], flags: Sequence[tuple[bool, ...]],
                  counted: Sequence[bool]) -> int:
    """Return the misses that count in the second of two passes."""
    _, state = simulate_kernels(cache, kernels, new_state(cache), flags)
    found, _ = simulate_kernels(cache, kernels, state, flags)
    return sum(one.total("read_misses") + one.total("write_misses")
               for one, chosen in zip(found, counted, strict=True) if chosen)


def _reshape(cache: Cache, size_bytes: int, ways: int) -> Cache | None:
    if size_bytes < cache.line_bytes * ways or size_bytes % (cache.line_bytes * ways):
        return None
    policy = cache.replacement
    if not policy_of(policy).takes(ways):
        policy = "lru"
    # Stores are taken to allocate: caches that do not hold constants only.
    return replace(cache, size_bytes=size_bytes, ways=ways, replacement=policy,
                   allocate="read_write")
