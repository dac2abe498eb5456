"""How fast caches are simulated: `python -m benchmarks.speed.cache_speed`.

Data accesses of whole networks a second, one thread, warm, by policy, for a cache of 16 KiB,
4 ways and 32-byte lines; beside pycachesim in the same run, timed again for every network, for
other processes slow both. Ratios count, milliseconds inform. "First" is a pass of kernels nobody
has simulated before. The misses of all methods are asserted to be equal, so that speed work can
never change a result.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.speed.processor_time import median_cpu_s
from hwmodels.board.facts import Cache
from hwmodels.board.file import change_board, load_board
from hwmodels.cache.set_associative import new_state, simulate_kernels, simulate_nests
from hwmodels.kernel import Kernel
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.network.zoo import build

NETWORKS = ("kws", "ic", "vww", "ad", "sww", "mobilenet_v1_0.25_224", "mobilenet_v2_1.0_224")
POLICIES = ("lru", "plru", "round_robin", "lfsr")
BOARD = "nucleo_h7a3zi_q"
RUNTIME = "cmsis-nn"
START = "from hwmodels.cache.set_associative import *; from hwmodels.board.facts import Cache; " \
    "from hwmodels.kernel import *; " \
    "c = Cache(name='c', size_bytes=16384, line_bytes=32, ways=4); " \
    "o = (Operand(name='x', role='input', memory='m', address=0, size_bytes=64),); " \
    "simulate_nests(c, (Access(operand='x', write=False, width_bytes=4),), o, new_state(c))"


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
    """Accesses, misses and touches of a pass, and the state after it."""
    state = state or new_state(cache)
    accesses = misses = touches = 0
    for kernel in kernels:
        counts, state = simulate_nests(cache, kernel.nests, kernel.operands, state, method=method)
        accesses += counts.total("reads") + counts.total("writes")
        misses += counts.total("read_misses") + counts.total("write_misses")
        touches += counts.simulated_touches
    return accesses, misses, touches, state


def simulate_all(kernels: Sequence[Kernel], cache: Cache, state, method="runs") -> None:  # type: ignore[no-untyped-def]
    """A pass, as predictions make it."""
    simulate_kernels(cache, kernels, state, method=method)


def time_network(network: str) -> None:
    """Print one row per policy."""
    kernels = lower(network)
    for policy in POLICIES:
        cache = make_cache(policy)
        start = time.perf_counter()
        accesses, _, _, state = run(kernels, cache)
        first = time.perf_counter() - start
        _, misses, touches, _ = run(kernels, cache, state)
        assert run(kernels, cache, state, "accesses")[1] == misses, f"{network}, {policy}"
        warm = median_cpu_s(partial(simulate_all, kernels, cache, state))
        plain = median_cpu_s(partial(simulate_all, kernels, cache, state, "accesses"))
        rate, theirs = accesses / warm / 1e6, time_pycachesim()
        ratio = f"{rate / theirs[0]:10.1f}" if theirs else ""
        print(f"{network:24}{policy:12}{accesses / 1e6:9.2f}M{misses:9}{touches / 1e6:8.2f}M"
              f"{first * 1e3:10.1f}{warm * 1e3:9.2f}{rate:9.0f}"
              f"{accesses / plain / 1e6:10.0f}"
              f"{ratio}")


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
    each = median_cpu_s(
        lambda: [simulator.load(0, length=32 * lines) for _ in range(200)])
    single = median_cpu_s(lambda: [simulator.load(32 * (turn % lines), length=4)
                                   for turn in range(20_000)])
    return 200 * lines / each / 1e6, 20_000 / single / 1e6


def time_start() -> None:
    """Start of a process, with a simulation and without."""
    times = {}
    for name, code in (("a simulation", START), ("numpy alone", "import numpy")):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True)
        after = os.times()
        times[name] = (after.children_user - before.children_user
                       + after.children_system - before.children_system)
    print("processor time of a process: "
          + ", ".join(f"{name} {taken:.2f} s" for name, taken in times.items()))


def main() -> None:
    """Print the figures."""
    networks = sys.argv[1:] or NETWORKS
    time_start()
    theirs = time_pycachesim()
    print(f"pycachesim, hits: C core {theirs[0]:.0f} M lines/s, Python calls {theirs[1]:.1f} "
          "M accesses/s" if theirs else "pycachesim is not installed: no comparison")
    print(f"{'network':24}{'policy':12}{'accesses':>10}{'misses':>9}{'touches':>9}{'first ms':>10}"
          f"{'warm ms':>9}{'M acc/s':>9}{'by access':>10}"
          + ("  x their C" if theirs else ""))
    for network in networks:
        time_network(network)


if __name__ == "__main__":
    main()
