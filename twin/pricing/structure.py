"""What of an inference no price changes: its kernels' names and traffic, kept by content.

Looked for in memory, then in the user's cache on disk, else lowered and simulated. What is kept
depends on the network, the library, where everything lies, the geometry of caches and memories and
this code; and of an accelerator on all but its clocks and the latency of its pools. Clocks, waits,
bandwidths and prices are omitted, but where another master shares the bus or a cache stops
allocating for streams.

`twin.deployment.kept_counts` is the disk.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from hwmodels.board.facts import Board
from hwmodels.board.npu import Npu
from hwmodels.board.policies import GROUP, POLICIES
from hwmodels.errors import TwinError
from hwmodels.extensions import find_entries, hash_package
from hwmodels.file_cache import keep_newest, pack, unpack
from hwmodels.frozen import entity, frozen
from hwmodels.kernel import Lowered
from hwmodels.paths.arrays import lay_out
from hwmodels.paths.exposure import TrafficArrays
from hwmodels.paths.traffic import KernelTraffic
from twin.deployment.deployment import Deployment
from twin.deployment.kept_counts import describe_cores, load_counts, read_geometry, save_counts
from twin.network.graph import Graph, GraphLayer, Layer
from twin.network.operators import OPERATORS, is_assumed
from twin.runtimes import Runtime

MOST_IN_MEMORY = 256
"""Structures; one of fifty kernels takes half a megabyte."""

Groups = Callable[[], Sequence[Lowered]]
"""Lowers: kernels of each layer."""


@frozen
class Call:
    """A kernel as prices and reports see it; `hwmodels.kernel.Kernel` says what each part is."""

    name: str
    family: str
    calls: int = 1
    assumed: bool = False
    wide: float = 0.0


FEW, MANY = 8, 64
"""Output channels of a convolution that is narrow, and of one that is wide; in between both are."""


Layers = tuple[tuple[Call, ...], ...]
"""Kernels of each layer; of an alias none."""


@entity
class Structure:
    """Kernels that run one after another, and what they met.

    Parameters
    ----------
    key
        Hash of everything it depends on.
    arrays
        The same in columns.
    """

    key: str
    layers: Layers
    traffic: tuple[KernelTraffic, ...]
    arrays: TrafficArrays


MOST_COUNTED = 64
"""Counts of what libraries may share: eight libraries under four policies of caches and more."""

_known: OrderedDict[str, Structure] = OrderedDict()
_counted: OrderedDict[tuple[object, ...], tuple[KernelTraffic, ...]] = OrderedDict()
_lock = threading.Lock()


def find_structure(deployment: Deployment, groups: Groups, *, cold: bool,
                   part: tuple[int, ...] = (), alike: Sequence[Deployment] = ()) -> Structure:
    """Return what kernels of a deployment do, simulated only where it is not kept.

    Parameters
    ----------
    deployment
        Placed network.
    groups
        Returns the kernels of each layer; called where nothing is kept.
    cold
        Caches start empty.
    part
        Positions of the layers, where they are some of the network's.
    alike
        What is asked for next and differs in the policies of caches alone: if anything is
        simulated, these are with it.
    """
    content = deployment.target.content(deployment)
    key = structure_key(deployment, content, cold=cold, part=part)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    layers, traffic = _load(key) or _count(key, deployment, groups(), alike, cold=cold)
    if not deployment.accelerated:  # A host's convolutions have one price.
        layers = _tell_width(deployment.graph, layers, part)
    made = Structure(key=key, layers=layers, traffic=traffic,
                     arrays=lay_out(traffic, deployment.board, deployment.code))
    with _lock:
        keep_newest(_known, key, made, MOST_IN_MEMORY)
    return made


def _tell_width(graph: Graph, layers: Layers, part: tuple[int, ...]) -> Layers:
    """Return calls of convolutions with their width: 0 up to `FEW` channels, 1 from `MANY`."""
    def width(place: int) -> float:
        channels = graph.tensors[graph.layers[place].target_id].channels
        return round(min(1.0, max(0.0, math.log(channels / FEW) / math.log(MANY / FEW))), 2)

    return tuple(
        tuple(replace(call, wide=width(place)) if call.family == "conv" else call
              for call in layer)
        for place, layer in zip(part or range(len(layers)), layers, strict=True))


def forget_structures() -> None:
    """Drop what is kept in memory."""
    with _lock:
        _known.clear()
        _counted.clear()


Found = tuple[Layers, tuple[KernelTraffic, ...]]


def _load(key: str) -> Found | None:
    """Return what is on disk; None where there is none, or what it is cannot be read."""
    document = load_counts(key)
    if document is None:
        return None
    try:
        layers, traffic = unpack(document)
    except (ValueError, LookupError, TypeError, AttributeError, ImportError, TwinError):
        return None
    return layers, traffic


def _count(key: str, deployment: Deployment, groups: Sequence[Lowered],
           alike: Sequence[Deployment], *, cold: bool) -> Found:
    """Simulate, and keep what is counted."""
    layers = tuple(tuple(Call(name=kernel.name, family=kernel.family, calls=kernel.calls,
                              assumed=kernel.assumed) for kernel in group) for group in groups)
    traffic = _count_once((deployment, *alike),
                          tuple(kernel for group in groups for kernel in group), cold)
    save_counts(key, pack((layers, traffic)))
    return layers, traffic


def _count_once(deployments: Sequence[Deployment], kernels: Lowered,
                cold: bool) -> tuple[KernelTraffic, ...]:
    """Simulate kernels unless another library on this board was just found to run the same."""
    from hwmodels.simulator import count_traffic
    from twin.deployment.core import code_address

    first = deployments[0]
    address = code_address(first)
    keys = [(kernels, _met_by(one), address, one.code, cold, one.loads) for one in deployments]
    with _lock:
        known = _counted.get(keys[0])
    if known is None:
        counted = count_traffic(kernels, _join_policies([one.board for one in deployments]),
                                code_address=address, code_memory=first.code, cold=cold,
                                loads=first.loads)
        known = counted[:len(kernels)]
        with _lock:
            for place, key in enumerate(keys):
                keep_newest(_counted, key, counted[place * len(kernels):][:len(kernels)],
                            MOST_COUNTED)
    return known


def _join_policies(boards: Sequence[Board]) -> Board:
    """Return a board whose caches are counted under the policies of each of several."""
    return replace(boards[0], caches=tuple(
        replace(rows[0], replacement=" ".join([
            one.replacement for one in (rows if len({*rows}) > 1 else rows[:1])]))
        for rows in zip(*[board.caches for board in boards], strict=True)))


def _met_by(deployment: Deployment) -> str:
    """Return what of a board kernels meet: its geometry, and its timing where that decides."""
    board = deployment.board
    timed = (bool(deployment.loads)
             or any(cache.streaming_lines and cache.enabled for cache in board.caches))
    return repr(_timed(board) if timed else read_geometry(board))


def structure_key(deployment: Deployment, content: str, *, cold: bool,
                  part: tuple[int, ...] = ()) -> str:
    """Return a hash of what kernels and their traffic depend on.

    Parameters
    ----------
    deployment
        Placed network.
    content
        What its target says kernels depend on besides it.
    cold, part
        As for `find_structure`.
    """
    placed = tuple(getattr(deployment, name) for name in _DEPLOYMENT_FIELDS)
    digest = hashlib.sha256(_met_by(deployment).encode())
    for one in (deployment.graph.content_id, _library(deployment.runtime), placed,
                content, cold, part, _foreign_code(deployment),
                _plan_facts(deployment.board.accelerator) if deployment.accelerated else None):
        digest.update(repr(one).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _foreign_code(deployment: Deployment) -> tuple[str, ...]:
    """Return hashes of what other packages add to a deployment: operators, policies, its target."""
    foreign = {find_entries("twin.operators")[layer.op].value for layer in deployment.graph.layers
               if not OPERATORS.is_ours(layer.op)}
    foreign |= {find_entries(GROUP)[cache.replacement].value for cache in deployment.board.caches
                if cache.replacement not in POLICIES}
    target = type(deployment.target).__module__
    if not target.startswith("twin."):
        foreign.add(target)
    return tuple(map(hash_package, sorted(foreign)))


def _library(runtime: Runtime) -> Runtime:
    """Return a runtime without its prices."""
    return replace(runtime, efficiency={}, dispatch_cycles=0.0, setup_cycles_per_op=0.0,
                   setup_cycles_per_channel=0.0, facts=())


def _timed(board: Board) -> tuple[object, ...]:
    return (board.clocks, describe_cores(board), board.caches, board.memories, board.buses,
            board.dma, board.npu)


def _plan_facts(npu: Npu) -> Npu:
    """Return what an accelerator's schedule may follow of it: all but what its clocks change."""
    return replace(npu, frequency_hz=0.0, pools=tuple(
        replace(pool, clock_ratio=0.0, read_latency_cycles=0.0, write_latency_cycles=0.0)
        for pool in npu.pools))


_DEPLOYMENT_FIELDS = tuple(one.name for one in fields(Deployment) if one.name not in (
    "graph", "board", "runtime", "notes", "chosen", "own_scale", "scale_stated", "original",
    "rewritten"))
"""All that decides what is counted."""


def list_assumed(deployment: Deployment, layers: Sequence[Sequence[Call]]) -> tuple[bool, ...]:
    """Return which layers' costs are assumed, without pricing any: `LayerPrediction.assumed`.

    Parameters
    ----------
    deployment
        All of it on the core.
    """
    return tuple(any(kernel.assumed for kernel in kernels)
                 or is_layer_assumed(deployment, layer, [kernel.name for kernel in kernels])
                 for layer, kernels in zip(deployment.graph.layers, layers, strict=True))


def is_layer_assumed(deployment: Deployment, layer: Layer, kernels: Sequence[str]) -> bool:
    """Whether nothing stands behind a layer's cost, or 16-bit activations borrow int8 kernels.

    What was counted of the library itself needs no other source.
    """
    graph, counted = deployment.graph, deployment.runtime.counted
    borrowed = is_assumed(layer) or (graph.output(layer).dtype == "int16"
                                     and any("_s8" in name for name in kernels))
    if borrowed and counted is not None:
        from twin.runtimes.counted.lower import stands_in

        borrowed = stands_in(*counted, GraphLayer(graph, layer), deployment.board.core)
    return layer.assumed or borrowed
