"""Caches of whole networks, simulated warm, beside pycachesim's C core, cachegrind, a plain loop.

16 KiB, 4 ways and 32-byte lines, one thread; every kernel is run on the state it meets, as
predictions run it. pycachesim is timed again for every network, for other processes slow both. The
misses of all methods are asserted to be equal, so that speed work can never change a result.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from benchmarks.speed.row import Row, median_cpu_s, median_processes_s, process_s
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


TINY = ("kws", "ic", "vww", "ad")
LAYER = (32, 32, 16, 16, 3, 1)
"""Of a convolution: height, width, channels in and out, kernel, stride."""


def measure() -> Iterator[Row]:
    """Yield the rows of caches."""
    for network, policy in itertools.product(TINY, ("lru", "plru", "round_robin", "lfsr")):
        yield time_policy(network, policy)
    yield time_large()
    found = time_cachegrind()
    if found is not None:
        yield found


def time_policy(network: str, policy: str) -> Row:
    """Return the row of a network under a policy, beside pycachesim's best case."""
    kernels, cache = lower(network), make_cache(policy)
    accesses, _, state = run(kernels, cache)
    _, misses, _ = run(kernels, cache, state)
    assert run(kernels, cache, state, "accesses")[1] == misses, f"{network}, {policy}"
    seconds = median_cpu_s(partial(simulate_all, kernels, cache, state))
    theirs = time_pycachesim()
    return Row(name=f"caches, {network}, {policy}", unit="M/s",
               figure=accesses / seconds / 1e6, peer="pycachesim",
               theirs=theirs[0] if theirs else None, limit=300.0,
               events={"accesses": accesses, "misses": misses})


def time_large() -> Row:
    """Return the row of a large network, beside a compiled loop over its accesses."""
    network = "mobilenet_v2_1.0_224"
    kernels, cache = lower(network), make_cache("lru")
    accesses, _, state = run(kernels, cache)
    misses = run(kernels, cache, state)[1]
    seconds = median_cpu_s(partial(simulate_all, kernels, cache, state))
    plain = median_cpu_s(partial(simulate_all, kernels, cache, state, "accesses"))
    return Row(name=f"caches, {network}, lru", unit="ms", figure=seconds * 1e3,
               peer="access by access", theirs=plain * 1e3, limit=250.0,
               events={"accesses": accesses, "misses": misses})


def time_cachegrind() -> Row | None:
    """Return the row of a layer, beside cachegrind on a program that makes its accesses."""
    if shutil.which("valgrind") is None or shutil.which("gcc") is None:
        return None
    from benchmarks.exactness.against_cachegrind import BASES, write_c

    nests, operands = import_module("cache_layers").make_conv(*LAYER, BASES[0])
    cache = make_cache("lru")
    counts, _ = simulate_nests(cache, nests, operands, new_state(cache))
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "nest.c", Path(folder) / "nest"
        source.write_text(write_c(nests, operands))
        subprocess.run(["gcc", "-O2", "-no-pie", "-o", program, source], check=True)
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes",
                   "--cachegrind-out-file=/dev/null"]
        found = median_processes_s({"idle": partial(process_s, [*command, "true"]),
                                    "whole": partial(process_s, [*command, str(program)])}, 3)
        idle, whole = found["idle"], found["whole"]
    seconds = median_cpu_s(partial(simulate_nests, cache, nests, operands, new_state(cache)))
    accesses = counts.total("reads") + counts.total("writes")
    theirs = accesses / (whole - idle) / 1e6 if whole - idle > 0.01 else None
    return Row(name="caches, one convolution, lru", unit="M/s", figure=accesses / seconds / 1e6,
               peer="cachegrind" if theirs else "cachegrind, too short to time", theirs=theirs,
               events={"accesses": accesses, "misses": counts.total("read_misses")
                       + counts.total("write_misses")})
