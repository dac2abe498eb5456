"""Accesses of one layer, sampled: when, where, of which operand, and whether they missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hwmodels.bus.contention import WORD, list_bursts, run_shared
from hwmodels.bus.events import BusRun
from hwmodels.cache.set_associative import CacheState, new_state
from hwmodels.cache.touches import BYPASS, HIT, Touches, visit_touches
from hwmodels.core.file import load_core
from hwmodels.core.schedule import count_block
from hwmodels.frozen import entity
from hwmodels.kernel import Kernel, Lowered, count_accesses
from hwmodels.paths.ways import data_cache
from hwmodels.simulator import run_until
from twin.deployment.core import code_address, lower_network
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.operators import is_alias

POINTS = 6000
"""Accesses drawn; misses are drawn as many again at most."""


@entity
class AccessSample:
    """Accesses of a layer; arrays of one entry per access kept.

    Parameters
    ----------
    layer
        Its index.
    cycles : ndarray of float
        When, in core cycles of the layer's own, accesses spread evenly over a kernel.
    address : ndarray of int64
        First byte of the line, or of the word where no cache is looked up.
    missed, write : ndarray of bool
        Whether a line had to be filled; whether it is a store.
    total_cycles
        The core's own, of the layer.
    """

    layer: int
    cycles: np.ndarray
    address: np.ndarray
    role: np.ndarray
    memory: np.ndarray
    missed: np.ndarray
    write: np.ndarray
    accesses: int
    misses: int
    total_cycles: float


def sample_accesses(deployment: Deployment, position: int, *, cold: bool = False,
                    points: int = POINTS) -> AccessSample:
    """Run one layer touch by touch, as the layers before it leave the caches, and sample it.

    Parameters
    ----------
    deployment
        Of a runtime of the core.
    position
        Layer of the executed graph.
    cold
        Caches start empty.
    points
        About how many accesses to keep, and at most how many misses beside them.

    Returns
    -------
    AccessSample
        In order of time.
    """
    kernels, states = _reach(deployment, position, cold)
    collected = _Collected(points, sum(count_accesses(kernel.nests) for kernel in kernels))
    start = 0.0
    for kernel in kernels:
        cycles = _own_cycles(deployment, kernel)
        caches = [data_cache(deployment.board, deployment.board.memory(operand.memory))
                  for operand in kernel.operands]
        for cache in dict.fromkeys(caches):
            chosen = np.array([one is cache for one in caches])
            looked_up = cache or WORD
            state = states.get(looked_up.name) or new_state(looked_up)
            after = visit_touches(
                looked_up, kernel.nests, kernel.operands, state,
                collected.visitor(kernel, chosen, looked_up.line_bytes),
                [bool(mine) and cache is not None for mine in chosen])
            if cache is not None:
                states[cache.name] = after
        collected.end(cycles, start)
        start += cycles
    return collected.sample(deployment.executed.layers[position].index, start)


def run_layer_bus(deployment: Deployment, position: int, *,
                  cold: bool = False) -> tuple[str, BusRun] | None:
    """Run a layer's bursts on the bus most of them go to, with the deployment's loads.

    Parameters
    ----------
    deployment
        Of a runtime of the core.
    position
        Layer of the executed graph.
    cold
        Caches start empty.

    Returns
    -------
    tuple of (str, BusRun) or None
        Bus and run of the layer's first kernel; None where nothing reaches a bus.
    """
    kernels, states = _reach(deployment, position, cold)
    board = deployment.board
    bursts = list_bursts(board, kernels[0], states)
    buses = [board.memory(bursts.owners[owner][0]).bus for owner in bursts.owner.tolist()]
    if not buses:
        return None
    loaded = [board.memory(load.memory).bus for load in deployment.loads]
    name = max(sorted({str(bus) for bus in buses}),
               key=lambda bus: (bus in loaded, buses.count(bus)))
    runs = run_shared(board, deployment.loads, bursts, _own_cycles(deployment, kernels[0]),
                      1 + int(bursts.access.max()), buses=(name,))
    return name, runs[name][0]


def _reach(deployment: Deployment, position: int,
           cold: bool) -> tuple[Lowered, dict[str, CacheState]]:
    """Return a layer's kernels and the caches' contents before them."""
    groups = lower_network(deployment)
    layers = deployment.executed.layers
    if not 0 <= position < len(groups) or is_alias(layers[position]):
        raise UsageError(f"layer {position} runs no kernel; accepted: " + ", ".join(
            str(place) for place, layer in enumerate(layers) if not is_alias(layer)))
    flat = [kernel for group in groups for kernel in group]
    stop = sum(map(len, groups[:position]))
    states = run_until(flat, deployment.board, code_address=code_address(deployment),
                       code_memory=deployment.code, stop=stop, cold=cold)
    return groups[position], states


def _own_cycles(deployment: Deployment, kernel: Kernel) -> float:
    timing = load_core(deployment.board.core.model)
    return sum(count_block(block, timing).cpu_cycles for block in kernel.blocks if block.trips)


class _Collected:
    """Touches kept so far: every n-th, and misses while there is room for them."""

    def __init__(self, points: int, expected: int) -> None:
        self.stride = max(1, expected // points)
        self.room = points
        self.columns: list[list[np.ndarray]] = []
        self.kernel: list[list[np.ndarray]] = []
        self.last = 0
        self.accesses = self.misses = 0

    def visitor(self, kernel: Kernel, chosen: np.ndarray,
                line_bytes: int) -> Callable[[Touches], None]:
        """Return a visitor for the chosen operands of a kernel."""
        roles = np.array([operand.role for operand in kernel.operands])
        memories = np.array([operand.memory for operand in kernel.operands])

        def visit(touches: Touches) -> None:
            self.last = max(self.last, int(touches.accesses[-1]) if len(touches.accesses) else 0)
            mine = chosen[touches.operands]
            missed = (touches.found != HIT) & (touches.found != BYPASS)
            self.accesses += int(mine.sum())
            self.misses += int((mine & missed).sum())
            kept = mine & (touches.accesses % self.stride == 0)
            extra = np.flatnonzero(mine & missed & ~kept)
            extra = extra[::max(1, len(extra) // max(1, self.room // 4))][:self.room]
            self.room -= len(extra)
            kept[extra] = True
            self.kernel.append([
                touches.accesses[kept].astype(float), touches.lines[kept] * line_bytes,
                roles[touches.operands[kept]], memories[touches.operands[kept]], missed[kept],
                touches.writes[kept]])

        return visit

    def end(self, cycles: float, start: float) -> None:
        """Turn the numbers of a kernel's accesses into time."""
        for columns in self.kernel:
            columns[0] = start + columns[0] * cycles / (self.last + 1)
        self.columns += self.kernel
        self.kernel, self.last = [], 0

    def sample(self, layer: int, cycles: float) -> AccessSample:
        """Return what was kept, in order of time."""
        joined: Sequence[np.ndarray] = [np.concatenate([part[column] for part in self.columns])
                                        for column in range(6)]
        order = np.argsort(joined[0], kind="stable")
        when, address, role, memory, missed, write = (column[order] for column in joined)
        return AccessSample(layer=layer, cycles=when, address=address, role=role, memory=memory,
                            missed=missed, write=write, accesses=self.accesses,
                            misses=self.misses, total_cycles=cycles)
