"""What an inference does to caches and memories, as named figures beside its time and energy.

    lookups.CACHE, misses.CACHE, miss_rate.CACHE  lines looked up for data, filled, their ratio
    misses.CACHE of an instruction cache          lines filled; its look-ups are not counted
    bytes.MEMORY                                  read from it and written to it
    bandwidth_used.MEMORY                         share of what it delivers when read without pause
    us.CAUSE                                      time by cause of the bill
    ram.PART, flash.PART                          bytes by what lies there: arena, weights, code ...
    setup_us                                      of preparing the network once
    cold_start_us                                 from sleep to the first answer, of cold rows

A figure that is not known is absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial

from hwmodels.board.facts import Board, Cache
from hwmodels.cache import OwnerCounts
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.paths.ways import code_cache, data_cache, lower_cache
from twin.deployment.core import lower_network
from twin.deployment.costs import bill_us
from twin.deployment.deployment import Deployment
from twin.pricing.inference import predict, setup_bill
from twin.pricing.lines import runtime_prices
from twin.pricing.roofs import memory_bytes_per_second
from twin.pricing.structure import find_structure

RATE, USED, CAUSE, RAM, FLASH = "miss_rate", "bandwidth_used", "us", "ram", "flash"
SETUP, COLD_START = "setup_us", "cold_start_us"
PREFIXES = ("lookups", "misses", RATE, "bytes", USED, CAUSE, RAM, FLASH)
"""First parts of the names of figures; the two above are the only others."""

_NPU_BYTES = ("npu_ram_byte", "npu_flash_byte", "npu_external_byte")


def measure_variables(deployment: Deployment, *, cold: bool) -> dict[str, float]:
    """Return what a deployment's caches and memories are asked, by name.

    Parameters
    ----------
    cold
        Caches start empty.

    Notes
    -----
    Bytes of a cached memory are lines filled, lines written back and stores passed on; of another
    what loads, stores and fetches move. `bandwidth_used` holds cycles of the core the bytes need at
    the least, until `relate_to_time` divides them by those of the inference. Of an accelerator only
    the bytes it moves itself are counted.
    """
    board, found = deployment.board, dict(_count(deployment, cold))
    hertz, memories = board.hertz[board.core.clock], {one.name for one in board.memories}
    setup_us = bill_us(setup_bill(deployment, runtime_prices(deployment)), board)
    found |= {SETUP: setup_us} if setup_us else {}
    found |= {f"{RAM}.{part}": float(held) for part, held in deployment.ram_parts.items() if held}
    if not deployment.target.executes:
        weights = min(deployment.linked_bytes, deployment.flash_bytes)
        found |= {f"{FLASH}.weights": float(weights),
                  f"{FLASH}.code": float(deployment.flash_bytes - weights)}
    for name, value in [*found.items()]:
        kind, _, place = name.partition(".")
        if kind == "lookups" and value:
            found[f"{RATE}.{place}"] = found.get(f"misses.{place}", 0.0) / value
        elif kind == "bytes" and place in memories:
            found[f"{USED}.{place}"] = value * hertz / memory_bytes_per_second(
                board, board.memory(place))
    return found


def relate_to_time(found: Mapping[str, float], cycles: float) -> dict[str, float]:
    """Return figures with shares of bandwidth in so many cycles of the core."""
    return {name: value / cycles if name.startswith(f"{USED}.") else value
            for name, value in found.items()}


def _count(deployment: Deployment, cold: bool) -> Mapping[str, float]:
    found: dict[str, float] = defaultdict(float)
    if deployment.accelerated:
        for layer in predict(deployment).layers:  # cold is as warm
            for line in layer.counts.lines:
                if line.event in _NPU_BYTES:
                    found[f"bytes.{line.place}"] += line.occurred
        return found
    traffic = (deployment.target.executed_traffic(deployment, cold=cold)
               if deployment.target.executes else find_structure(
                   deployment, partial(lower_network, deployment), cold=cold).traffic)
    for kernel in traffic:
        for name, amount in (*_list_data(deployment.board, kernel),
                             *_list_code(deployment, kernel)):
            found[name] += amount
    if deployment.transfers is not None:
        found[f"bytes.{deployment.transfers.source.name}"] += sum(
            deployment.transfers.buffers.layer_bytes)
    return found


Amounts = Iterator[tuple[str, float]]


def _list_data(board: Board, kernel: KernelTraffic) -> Amounts:
    counts = kernel.data.counts
    for one in counts.operands:
        cache = data_cache(board, board.memory(one.memory)) if one.cached else None
        if cache is None:
            yield f"bytes.{one.memory}", one.read_bytes + one.write_bytes
            continue
        misses = one.read_misses + one.write_misses
        yield f"lookups.{cache.name}", one.read_touches + one.write_touches
        yield f"misses.{cache.name}", misses
        if lower_cache(board, cache, board.memory(one.memory)) is None:
            passed = one.write_throughs / one.write_touches if one.write_touches else 0.0
            yield f"bytes.{one.memory}", misses * cache.line_bytes + passed * one.write_bytes
    for owner in counts.owners:
        cache = data_cache(board, board.memory(owner.memory))
        if cache is not None and lower_cache(board, cache, board.memory(owner.memory)) is None:
            yield _write_back(owner, cache)
    for name, _, below in kernel.data.lower:
        cache = board.cache(name)
        assert cache is not None, f"{name} was looked up"
        for one in below.operands:
            misses = one.read_misses + one.write_misses
            yield f"lookups.{name}", one.read_touches + one.write_touches
            yield f"misses.{name}", misses
            yield f"bytes.{one.memory}", misses * cache.line_bytes
        for owner in below.owners:
            yield _write_back(owner, cache)


def _write_back(owner: OwnerCounts, cache: Cache) -> tuple[str, float]:
    return f"bytes.{owner.memory}", owner.write_backs * cache.line_bytes


def _list_code(deployment: Deployment, kernel: KernelTraffic) -> Amounts:
    board, code = deployment.board, kernel.code
    cache = code_cache(board, board.memory(deployment.code))
    if cache is not None and code.misses:
        if cache.name not in (board.core.dcache, *board.core.data_caches):
            yield f"misses.{cache.name}", code.misses
        yield f"bytes.{deployment.code}", code.misses * cache.line_bytes
    for block in code.blocks:
        yield f"bytes.{deployment.code}", block.size_bytes * block.trips
