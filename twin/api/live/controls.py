"""What can be turned on a board: each control is a what-if path with values worth trying."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hwmodels.board.facts import FLASH_ROLES, Board, Cache, Clock
from hwmodels.board.npu import Pool
from hwmodels.files import JsonObject
from hwmodels.quantities import format_size
from twin.api.live.state import COMPILED
from twin.deployment.choice import list_each_runtime, list_runnable
from twin.deployment.deployment import Deployment
from twin.studies.axes import list_scales

LEAST_HZ = 1e6
"""Where the slider of a clock begins."""

SIZES = range(-3, 4)
"""Cache sizes offered, as powers of two of the board's own."""

PRECISIONS = {"int8": "int8", "int16x8": "int16", "float32": "float32", "float16": "float16"}
"""Type of activations by value of `network.precision`."""

LOADS = (0, 1e6, 5e6, 10e6, 20e6, 40e6, 80e6, 160e6)
"""Bytes a second of another master that are offered."""


def list_controls(board: Board, deployment: Deployment | None) -> JsonObject:
    """Return what can be turned on a board.

    Parameters
    ----------
    board : Board
        As its file has it.
    deployment : Deployment or None
        A network on it before anything was changed; None where it cannot be as it is.
    """
    return {
        "runtime": None if deployment is None else deployment.runtime.identity,
        "runtimes": list_libraries(board),
        "clocks": [_clock(board, clock) for clock in board.clocks if any(
            fact.path == f"clocks.{clock.name}.frequency_hz" for fact in board.facts)],
        "caches": [_cache(board, cache) for cache in board.caches],
        "places": list(_list_places(board, deployment)), "numbers": list(_list_numbers(deployment)),
        "loads": [{"master": dma.name, "rates": LOADS, "memories": [
            memory.name for memory in board.memories if memory.bus is not None
            and memory.role not in FLASH_ROLES]} for dma in board.dma],
    }


def _list_numbers(deployment: Deployment | None) -> Iterator[JsonObject]:
    """Yield what the network's numbers may be made, but what its library is known not to run."""
    precisions, weights = list(PRECISIONS), ["int8", "int4"]
    if deployment is not None:
        runtime, graph = deployment.runtime, deployment.graph
        types = Counter(graph.output(layer).dtype for layer in graph.layers)
        own = types.most_common(1)[0][0] if types else ""
        precisions = [name for name, dtype in PRECISIONS.items()
                      if dtype in runtime.dtypes and dtype != own]
        stored = {tensor.dtype for tensor in graph.tensors if tensor.is_constant}
        weights = ["int4"] if runtime.unpacks_weights or runtime.accelerated else []
        weights += ["int8"] if "int4" in stored else []
    for path, label, values in (("network.precision", "Numbers", precisions),
                                ("network.weights", "Stored weights", weights),
                                ("network.width", "Share of channels", ["0.75", "0.5", "0.25"])):
        if values:
            yield {"path": path, "label": label, "values": values}


def list_paths(board: Board) -> list[dict[str, str]]:
    """Return every what-if path a board has, what it takes and what it changes."""
    from twin.deployment.changes import list_paths_of

    return [{"path": path, "takes": takes, "changes": changes}
            for path, takes, changes in list_paths_of(board)
            if path != "runtime" and not path.startswith(("schema", "board."))]


def list_libraries(board: Board) -> dict[str, list[str]]:
    """Return runtimes that fit a board, and all others that need no compiler."""
    near, others = ([one for one in names if not one.startswith(f"{COMPILED}@")]
                    for names in (list_each_runtime(board), list_runnable(board)))
    return {"near": near, "others": [one for one in others if one not in near]}


def _clock(board: Board, clock: Clock) -> JsonObject:
    steps = list_scales(board, clock)
    highest = max([clock.frequency_hz, clock.max_hz or 0.0, *(hertz for _, hertz in steps)])
    return {"path": f"clocks.{clock.name}.frequency_hz", "name": clock.name,
            "core": clock.name == board.core.clock, "own_hz": clock.frequency_hz,
            "least_hz": min(LEAST_HZ, clock.frequency_hz), "highest_hz": highest,
            "scales": [{"scale": scale, "highest_hz": hertz} for scale, hertz in steps]}


def _cache(board: Board, cache: Cache) -> JsonObject:
    stated = any(fact.path == f"caches.{cache.name}.ways" for fact in board.facts)
    least = cache.line_bytes * (cache.ways if stated else 2)
    sizes = [int(cache.size_bytes * 2.0**power) for power in SIZES]
    return {"path": f"caches.{cache.name}", "name": cache.name, "own_bytes": cache.size_bytes,
            "enabled": cache.enabled,
            "values": [{"value": str(size), "label": format_size(size)} for size in sizes
                       if size >= least]}


def _list_places(board: Board, deployment: Deployment | None) -> Iterator[JsonObject]:
    accelerated = deployment is not None and deployment.accelerated
    stated = dict(board.placement)
    own = (stated["weights"], stated["arena"], stated["code"]) if deployment is None else (
        deployment.weights_named, deployment.arena_named, deployment.code)
    everywhere = [{"value": memory.name, "role": memory.role, "label":
                   f"{memory.name} ({memory.role}, {format_size(memory.size_bytes)})"}
                  for memory in board.memories]
    modes = _list_modes(board, deployment)
    if modes:
        yield {"path": "npu.memory_mode", "label": "Memories by", "values": modes,
               "own": board.accelerator.memory_mode}
    else:
        pools = board.accelerator.pools if accelerated else ()
        flash = {memory.name for memory in board.memories if memory.role in FLASH_ROLES}
        reached = [one for one in everywhere if not (accelerated and one["role"] == "tcm")]
        yield {"path": "placement.weights", "label": "Weights in", "own": own[0], "values":
               reached + [_name_pool(pool) for pool in pools]}
        yield {"path": "placement.arena", "label": "Arena in", "own": own[1], "values":
               [one for one in reached if one["role"] not in FLASH_ROLES]
               + [_name_pool(pool) for pool in pools if pool.memory not in flash]}
    yield {"path": "placement.code", "label": "Code in", "own": own[2], "values": everywhere}
    if board.dma and not accelerated:
        yield {"path": "placement.weights_via", "label": "Weights brought by", "own": "none",
               "values": [{"value": dma.name, "label": f"{dma.name} (DMA)"} for dma in board.dma]}


def _list_modes(board: Board, deployment: Deployment | None) -> list[dict[str, str]]:
    """Return the ways an NPU's compiler can use memory, where it has a choice."""
    places = {} if deployment is None or not deployment.accelerated else (
        deployment.runtime.compiler.list_places(board.accelerator))
    return [{"value": mode, "label": f"{mode}: " + ", ".join(
        f"{what} in {memory}" for what, memory in used.items())} for mode, used in places.items()]


def _name_pool(pool: Pool) -> dict[str, str]:
    return {"value": pool.name, "label": f"{pool.name} (pool)"}
