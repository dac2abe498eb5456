"""What the Neural-ART compiler wrote, read: epochs with operations, cycles and bytes per pool.

Read is `c_info.json` (schemas 1 and 2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hwmodels.errors import reworded
from hwmodels.files import (
    LARGEST_JSON_BYTES,
    MISSHAPEN,
    DocumentError,
    parse_json,
    read_regular_text,
)
from hwmodels.frozen import NamedCounts, frozen
from hwmodels.quantities import drop_none, list_by_key
from twin.errors import ModelError

MAPPINGS = {"NODE_HW": "hw", "NODE_SW": "sw", "NODE_HYBRID": "hybrid"}
"""Kind of epoch by the compiler's word; others (NODE_NO_X) run nothing."""

MOST = 1 << 53
"""Of anything a compiler counts: whole numbers up to here are exact."""

_UNIT_OF_TYPE = {"Conv": "CONV_ACC", "Gemm": "CONV_ACC", "Add": "ARITH_ACC", "Sub": "ARITH_ACC",
                 "Mul": "ARITH_ACC", "AveragePool": "POOL_ACC", "MaxPool": "POOL_ACC",
                 "Sigmoid": "ACTIV_ACC", "Relu": "ACTIV_ACC", "Identity": "NULL"}
_UNIT_OF_NAME = (("_bias", "ARITH_ACC"), ("suboff", "ARITH_ACC"), ("Conv", "CONV_ACC"),
                 ("Gemm", "CONV_ACC"), ("Pool", "POOL_ACC"), ("Sigmoid", "ACTIV_ACC"),
                 ("Identity", "NULL"))


@frozen
class CompiledPool:
    """A memory pool as the compiler describes it."""

    name: str
    address: int
    size_bytes: int
    byte_width_bytes: int
    frequency_ratio: float
    cacheable: bool


@frozen
class CompiledBuffer:
    """A buffer an epoch streams."""

    name: str
    pool: str
    size_bytes: int
    weights: bool = False


@frozen
class PoolAccess:
    """Bytes of an epoch in one pool, with the cycles the compiler estimates for them."""

    pool: str
    read_bytes: int
    read_cycles: float
    write_bytes: int
    write_cycles: float


@frozen
class CompiledEpoch:
    """One epoch of a compiler's output.

    Parameters
    ----------
    kind
        "hw", "sw" or "hybrid".
    operations, units : tuple of (str, int)
        Operations, and units by kind, where the file states them.
    ops, compute_cycles, max_cycles
        The compiler's estimates, NPU cycles.
    accesses
        By pool; pools not touched omitted.
    inputs, outputs
        Streamed buffers, where the file states them.
    """

    name: str
    kind: str
    operations: NamedCounts
    units: NamedCounts
    ops: int
    compute_cycles: int
    max_cycles: int
    accesses: tuple[PoolAccess, ...]
    inputs: tuple[CompiledBuffer, ...] = ()
    outputs: tuple[CompiledBuffer, ...] = ()


@frozen
class CompiledNetwork:
    """A network as compiled: its epochs in order, and the pools the compiler was given."""

    name: str
    tool: str
    epochs: tuple[CompiledEpoch, ...]
    pools: tuple[CompiledPool, ...] = ()


def is_compiled(path: str | Path) -> bool:
    """Whether a file looks like output of this compiler rather than a model."""
    path = Path(path)
    if path.suffix != ".json" or not path.is_file():
        return False
    with open(path, encoding="utf-8", errors="replace") as stream:
        return '"json_schema_version"' in stream.read(65536) or "c_info" in path.name


def read_compiled(path: str | Path) -> CompiledNetwork:
    """Read c_info.json.

    Raises
    ------
    ModelError
        When the file is none, naming what is missing.
    """
    path = Path(path)
    with reworded((OSError, UnicodeDecodeError), ModelError, f"{path}: cannot be read: "):
        text = read_regular_text(path, LARGEST_JSON_BYTES)
    document = _parse(path, text)
    try:
        return _read_info(path, document)
    except MISSHAPEN as error:
        raise ModelError(f"{path}: not a c_info.json of the Neural-ART compiler: {_tell(error)} is "
                         "missing or of another form; accepted: what `stedgeai generate` writes, "
                         "with memory_pools, buffers and graphs") from error


def _tell(error: Exception) -> str:
    """Return a missing key by its name, anything else by what Python says of it."""
    return repr(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)


def _parse(path: Path, text: str) -> Any:
    with reworded(DocumentError, ModelError, f"{path}: "):
        return parse_json(text)


def _read_info(path: Path, document: Mapping[str, Any]) -> CompiledNetwork:
    pools = {pool["id"]: _read_info_pool(pool) for pool in document["memory_pools"]}
    buffers = {buffer["id"]: buffer for buffer in document["buffers"]}
    nodes = {node["id"]: node for node in document["graphs"][0]["nodes"]}
    accesses = list_by_key((entry["node_id"], PoolAccess(
        pool=pools[entry["mpool_id"]].name, read_bytes=_amount(entry["reads"]),
        read_cycles=float(entry["read_cycles"]), write_bytes=_amount(entry["writes"]),
        write_cycles=float(entry["write_cycles"])))
        for entry in _access_entries(document) if entry["reads"] or entry["writes"])
    epochs = []
    for estimate in document["power_estimates"]:
        node = nodes[estimate["node_id"]]
        kind = MAPPINGS.get(node["mapping"])
        if kind is None or not node["subgraph_nodes"]:
            continue
        touched = tuple(accesses.get(node["id"], ()))
        if kind == "hw" and not touched:
            continue  # Parameters and returns are listed as epochs, too.
        epochs.append(_info_epoch(node, kind, estimate, touched, buffers, pools))
    tools = [f"{tool['name']} {tool['version']}" for tool in document["environment"]["tools"]]
    return CompiledNetwork(name=str(document["graphs"][0].get("name", path.stem)),
                           tool=", ".join(tools), epochs=tuple(epochs),
                           pools=tuple(pools.values()))


def _access_entries(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the list of bytes by node and pool, whatever the schema calls it."""
    for value in document.values():
        if isinstance(value, list) and value and isinstance(value[0], dict) and {
                "node_id", "mpool_id", "reads", "writes"} <= value[0].keys():
            return value
    raise KeyError("bytes by node_id and mpool_id")


def _info_epoch(node: Mapping[str, Any], kind: str, estimate: Mapping[str, Any],
                accesses: tuple[PoolAccess, ...], buffers: Mapping[int, Mapping[str, Any]],
                pools: Mapping[int, CompiledPool]) -> CompiledEpoch:
    inner = [part for part in node["subgraph_nodes"] if part.get("type") != "Param"]
    weights = {place for part in inner if _unit(part) == "CONV_ACC" for place in part["inputs"]
               if buffers[place]["is_param"]}

    def streamed(places: Iterable[int]) -> tuple[CompiledBuffer, ...]:
        return tuple(CompiledBuffer(
            name=_text(buffers[i]["name"]), pool=pools[buffers[i]["mpool_id"]].name,
            size_bytes=_amount(buffers[i]["size_bytes"]), weights=i in weights)
            for i in dict.fromkeys(places) if not buffers[i]["is_param"] or i in weights)

    units = drop_none(_unit(part) for part in inner)
    names = [str(part.get("type") or part["name"]) for part in inner]
    return CompiledEpoch(
        name=_text(node["name"]), kind=kind, operations=_count(names), units=_count(units),
        ops=_amount(estimate["ops"]), compute_cycles=_amount(estimate["compute_cycles"]),
        max_cycles=_amount(estimate["max_cycles"]), accesses=accesses,
        inputs=streamed(node["inputs"]), outputs=streamed(node["outputs"]))


def _unit(part: Mapping[str, Any]) -> str | None:
    """Return a node's unit: as it says, else by its type, else by the compiler's name for it."""
    stated = str(part.get("attributes", {}).get("HWUnit", ""))
    found = re.match(r"(CONV_ACC|ARITH_ACC|ACTIV_ACC|POOL_ACC|DECUN_ACC|NULL)", stated)
    if found:
        return found[1]
    if part.get("type"):
        return _UNIT_OF_TYPE.get(part["type"])
    return next((unit for text, unit in _UNIT_OF_NAME if text in part["name"]), None)


def _count(names: Iterable[str]) -> NamedCounts:
    return tuple(Counter(names).items())


def _amount(value: Any) -> int:
    """Return how many; more than a float distinguishes, or fewer than none, is another form."""
    number = int(value)
    if not 0 <= number <= MOST:
        raise ValueError(f"{value!r} is no amount up to {MOST:,}")
    return number


def _text(value: Any) -> str:
    """Return a name; what is none is another form."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a name")
    return value


def _read_info_pool(pool: Mapping[str, Any]) -> CompiledPool:
    attributes = pool["attributes"]
    return CompiledPool(
        name=_text(pool["name"]), address=_amount(pool["address"]),
        size_bytes=_amount(pool["size_bytes"]),
        byte_width_bytes=_amount(attributes["byte_width"]),
        frequency_ratio=float(attributes["freq_ratio"]),
        cacheable=pool.get("cacheable") == "CACHEABLE_ON")
