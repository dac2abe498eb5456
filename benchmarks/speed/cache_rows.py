"""The cache simulator beside pycachesim's C core, cachegrind and a loop over all accesses.

Every kernel is run on the state it meets, as predictions run it.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from benchmarks.speed.cache_speed import lower, make_cache, run, simulate_all, time_pycachesim
from benchmarks.speed.processor_time import median_cpu_s
from benchmarks.speed.row import Row, median_processes_s, process_s
from hwmodels.cache.set_associative import new_state, simulate_nests

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
