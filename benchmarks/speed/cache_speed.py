"""Caches of whole networks, simulated warm: 16 KiB, 4 ways and 32-byte lines, one thread.

Beside them pycachesim, timed again for every network, for other processes slow both. The misses of
all methods are asserted to be equal, so that speed work can never change a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.speed.processor_time import median_cpu_s
from hwmodels.board.facts import Cache
from hwmodels.board.file import change_board, load_board
from hwmodels.cache.set_associative import new_state, simulate_kernels, simulate_nests
from hwmodels.kernel import Kernel
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.network.zoo import build

BOARD = "nucleo_h7a3zi_q"
RUNTIME = "cmsis-nn"


def make_cache(policy: str) -> Cache:
    """The cache all figures are for."""
    return Cache(name="l1d", size_bytes=16384, line_bytes=32, ways=4, replacement=policy)


def lower(network: str) -> list[Kernel]:
    """Kernels of a network, on a board with memory enough for any."""
    board = load_board(BOARD)
    flash = next(memory.name for memory in board.memories if memory.role == "flash")
    sram = next(memory.name for memory in board.memories if memory.role == "sram")
    board = change_board(board, {f"memories.{flash}.size_bytes": 32 << 20})
    board = change_board(board, {f"memories.{sram}.size_bytes": 32 << 20})
    deployment = deploy(build(network), board, runtime=RUNTIME, weights=flash, arena=sram)
    return [kernel for layer in lower_network(deployment) for kernel in layer]


def run(kernels: Sequence[Kernel], cache: Cache, state=None, method="runs"):  # type: ignore[no-untyped-def]
    """Accesses and misses of a pass, and the state after it."""
    state = state or new_state(cache)
    accesses = misses = 0
    for kernel in kernels:
        counts, state = simulate_nests(cache, kernel.nests, kernel.operands, state, method=method)
        accesses += counts.total("reads") + counts.total("writes")
        misses += counts.total("read_misses") + counts.total("write_misses")
    return accesses, misses, state


def simulate_all(kernels: Sequence[Kernel], cache: Cache, state, method="runs") -> None:  # type: ignore[no-untyped-def]
    """A pass, as predictions make it."""
    simulate_kernels(cache, kernels, state, method=method)


def time_pycachesim() -> tuple[float, float] | None:
    """Million lines a second of pycachesim's C core in its best case, one call and hits only, and
    million accesses by calls from Python; None where it is not installed."""
    try:
        import cachesim
    except ImportError:
        return None
    memory = cachesim.MainMemory()
    level = cachesim.Cache("L1", 128, 4, 32, "LRU")
    memory.load_to(level)
    memory.store_from(level)
    simulator = cachesim.CacheSimulator(level, memory)
    lines = 256
    each = median_cpu_s(lambda: [simulator.load(0, length=32 * lines) for _ in range(200)])
    single = median_cpu_s(lambda: [simulator.load(32 * (turn % lines), length=4)
                                   for turn in range(20_000)])
    return 200 * lines / each / 1e6, 20_000 / single / 1e6
