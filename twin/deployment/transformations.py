"""Every transformation of a deployment: what may be worth trying, and whether it applies.

for one in list_transformations(deployment): print(one.path, one.values, one.reason)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from hwmodels.board.facts import FLASH_ROLES
from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from hwmodels.isa import load_isa
from twin.deployment.choice import list_each_runtime
from twin.deployment.deployment import Deployment
from twin.deployment.kernels import KERNEL_PATHS, SQUARES, TILES, choose_kernels, list_levels
from twin.deployment.support import check_network
from twin.errors import NotApplicableError, RuntimeRefusedError, UsageError
from twin.network.rewrites.rewrite import EFFORTS, list_rewrites, rewrite_network
from twin.runtimes import load_runtime

_REBUILD = EFFORTS[1]


@frozen
class Transformation:
    """A change one could make to a deployment.

    Parameters
    ----------
    path
        As `--set` and `Deployment.replace` take it.
    effort
        Of `EFFORTS`.
    costs
        What it costs besides, in words; "" where nothing.
    values
        Worth trying on this deployment; none when it does not apply.
    reason
        Why there are none; "" where there are.
    """

    path: str
    accepted: str
    does: str
    effort: str
    costs: str
    values: tuple[str, ...]
    reason: str = ""


def list_transformations(deployment: Deployment, efforts: Collection[str] = EFFORTS,
                         ) -> tuple[Transformation, ...]:
    """Return transformations, each with the values worth trying, or why there are none.

    Parameters
    ----------
    efforts
        Classes of effort that are wanted; of others nothing is tried.

    Returns
    -------
    tuple of Transformation
        Settings first, then what needs a rebuild, a conversion, training.

    Notes
    -----
    Values that a network or its kernels refuse are omitted; whether memory is enough is found
    when one is applied.
    """
    rebuilt = (*_options(deployment), *_kernels(deployment)) if _REBUILD in efforts else ()
    return (*_settings(deployment, efforts), *rebuilt, *_rewrites(deployment, efforts))


def _rewrites(deployment: Deployment, efforts: Collection[str]) -> Iterator[Transformation]:
    """Yield changes of the network."""
    made = dict(deployment.rewritten)
    for rewrite in list_rewrites():
        if rewrite.effort not in efforts:
            continue
        graph = rewrite_network(deployment.original or deployment.graph, {
            name: value for name, value in made.items() if name != rewrite.name})
        values, reason = [], ""
        for value in rewrite.values(graph):
            try:
                check_network(rewrite.apply(graph, rewrite.read(value)), deployment.runtime)
            except (NotApplicableError, RuntimeRefusedError) as error:
                reason = reason or str(error)
            else:
                values.append(value)
        yield Transformation(
            path=rewrite.name, accepted=rewrite.accepted, does=rewrite.does,
            effort=rewrite.effort, costs=rewrite.costs, values=tuple(values),
            reason="" if values else reason or f"{rewrite.name}: nothing of {graph.name} to change")


def _kernels(deployment: Deployment) -> Iterator[Transformation]:
    """Yield other kernels of the same library."""
    runtime, board = deployment.runtime, deployment.board
    tried = {
        "kernels.extension": load_isa(board.core.isa).extensions[1:],
        "kernels.convolution": ("im2col",) if runtime.direct_convolutions else ("direct",),
        "kernels.level": tuple(level for level in list_levels(runtime)
                               if level not in (runtime.version, (runtime.counted or ("", ""))[1])),
        "kernels.tile": tuple(tile for tile in (*TILES, *SQUARES)
                              if tile != str(runtime.tile_windows)),
    }
    for path, accepted, does in KERNEL_PATHS:
        values, reason = [], ""
        for value in tried[path]:
            try:
                choose_kernels({path: value}, runtime, board)
            except (NotApplicableError, UsageError) as error:
                reason = reason or str(error)
            else:
                values.append(value)
        yield Transformation(
            path=path, accepted=accepted, does=does, effort=_REBUILD, costs="",
            values=tuple(values), reason="" if values else reason or _no_kernels(path, deployment))


def _no_kernels(path: str, deployment: Deployment) -> str:
    if path == "kernels.extension":
        return (f"{path}: the {deployment.board.core.model} has plain C only: there is nothing to "
                "leave out")
    return f"{path}: {deployment.runtime.identity} was counted at one level only"


def _options(deployment: Deployment) -> Iterator[Transformation]:
    """Yield choices the accelerator's compiler offers."""
    from hwmodels.board.catalogue import find_fact

    runtime = deployment.runtime
    for key, offered in runtime.compiler.options.items() if deployment.accelerated else ():
        path, own = f"npu.{key}", str(getattr(deployment.board.accelerator, key))
        fact = find_fact(path)
        assert fact is not None
        yield Transformation(
            path=path, accepted=", ".join(offered), does=fact.doc, effort=_REBUILD, costs="",
            values=tuple(one for one in offered if one.lower() != own.lower()))


def _settings(deployment: Deployment, efforts: Collection[str]) -> Iterator[Transformation]:
    """Yield changes of clocks, memories, caches, transfers and the library."""
    for path, accepted, does, effort, find in _SETTINGS:
        if effort not in efforts:
            continue
        try:
            named, values, reason = find(deployment)
        except TwinError as error:
            named, values, reason = path, (), str(error)
        yield Transformation(path=named or path, accepted=accepted, does=does, effort=effort,
                             costs="", values=values, reason="" if values else reason)


Found = tuple[str, tuple[str, ...], str]
"""Path, values worth trying, why there are none."""


def _find_clocks(deployment: Deployment, npu: bool = False) -> Found:
    board = deployment.board
    clock = board.clock(board.accelerator.clock) if npu else board.core_clock
    path = f"clocks.{clock.name}.frequency_hz"
    most = clock.max_hz or clock.frequency_hz
    found = clock.settings_hz[::-1] or [most * share for share in (1.0, 0.75, 0.5, 0.25)]
    values = tuple(f"{round(hz)}" for hz in found if abs(hz - clock.frequency_hz) > 1)
    return path, values, f"{path}: {board.name} states one frequency"


def _find_npu_clock(deployment: Deployment) -> Found:
    board = deployment.board
    if not deployment.accelerated or board.accelerator.clock == board.core.clock:
        return "", (), "clocks.NPU.frequency_hz: the NPU has no clock of its own"
    return _find_clocks(deployment, npu=True)


def _find_weights(deployment: Deployment) -> Found:
    if modes := _find_modes(deployment)[1]:
        return "", (), f"placement.weights: npu.memory_mode decides ({', '.join(modes)})"
    needed = deployment.linked_bytes
    values = tuple(memory.name for memory in deployment.board.memories
                   if memory.name != deployment.weights and memory.size_bytes >= needed)
    return "", values, "placement.weights: no other memory has room for the weights"


def _find_arena(deployment: Deployment) -> Found:
    if modes := _find_modes(deployment)[1]:
        return "", (), f"placement.arena: npu.memory_mode decides ({', '.join(modes)})"
    needed = deployment.placement.arena_bytes
    values = tuple(memory.name for memory in deployment.board.memories
                   if memory.name != deployment.arena and memory.size_bytes >= needed
                   and memory.role not in FLASH_ROLES)
    return "", values, "placement.arena: no other memory has room for the arena"


def _find_code(deployment: Deployment) -> Found:
    needed = deployment.runtime.code_bytes
    values = tuple(memory.name for memory in deployment.board.memories
                   if memory.name != deployment.code and memory.size_bytes >= needed
                   and memory.role in ("tcm", "sram", "itcm", *FLASH_ROLES))
    return "", values, "placement.code: no other memory has room for the kernels"


def _find_caches(deployment: Deployment) -> Found:
    off = [cache.name for cache in deployment.board.caches if not cache.enabled]
    if off:
        return f"caches.{off[0]}.enabled", ("true",), ""
    return "", (), "caches: all caches of the board are on, or it has none"


def _find_dma(deployment: Deployment) -> Found:
    if deployment.accelerated:
        return "", (), (f"placement.weights_via: {deployment.runtime.identity} brings weights by "
                        "itself")
    values = tuple(dma.name for dma in deployment.board.dma if dma.name != deployment.weights_via)
    return "", values, f"placement.weights_via: {deployment.board.name} states no DMA controller"


def _find_runtimes(deployment: Deployment) -> Found:
    values = []
    for name in list_each_runtime(deployment.board):
        runtime = load_runtime(name)
        if runtime.identity == deployment.runtime.identity:
            continue
        try:
            check_network(deployment.graph, runtime)
        except TwinError:
            continue
        values.append(name)
    return "", tuple(values), "runtime: no other library runs the network on this board"


def _find_host(deployment: Deployment) -> Found:
    if not deployment.accelerated:
        return "", (), (f"offload.host: {deployment.runtime.identity} runs everything on the core "
                        "already")
    reasons = deployment.plan.reasons
    values = dict.fromkeys(layer.op for layer, reason in zip(
        deployment.executed.layers, reasons, strict=False) if not reason)
    return "", tuple(values), "offload.host: every layer is on the host already"


def _find_weight_bits(deployment: Deployment) -> Found:
    if not deployment.accelerated:
        return "", (), "placement.weight_bits: no accelerator reads them; see network.weights"
    return "", () if deployment.weight_bits == 4 else ("4",), "placement.weight_bits: 4 already"


def _find_modes(deployment: Deployment) -> Found:
    if not deployment.accelerated:
        return "", (), f"npu.memory_mode: {deployment.runtime.identity} compiles for no NPU"
    npu = deployment.board.accelerator
    values = tuple(mode for mode in deployment.runtime.compiler.list_places(npu)
                   if mode != npu.memory_mode)
    return "", values, f"npu.memory_mode: {deployment.runtime.identity} has one way to use memory"


_SETTINGS: tuple[tuple[str, str, str, str, Callable[[Deployment], Found]], ...] = (
    ("clocks.CPU.frequency_hz", "a frequency", "CPU clock, at the lowest voltage that allows it",
     "setting", _find_clocks),
    ("clocks.NPU.frequency_hz", "a frequency", "clock of the NPU", "setting", _find_npu_clock),
    ("placement.weights", "a memory", "where the weights are", "setting", _find_weights),
    ("placement.arena", "a memory", "where the arena is", "setting", _find_arena),
    ("placement.code", "a memory", "where the kernels are", "setting", _find_code),
    ("caches.NAME.enabled", "true, false", "whether the cache is used", "setting", _find_caches),
    ("npu.memory_mode", "a mode of the NPU's compiler", "memories constants and arena are in",
     "rebuild", _find_modes),
    ("placement.weights_via", "a DMA controller", "weights are copied layer by layer while others "
     "are computed", "rebuild", _find_dma),
    ("runtime", "a runtime", "kernel library", "rebuild", _find_runtimes),
    ("offload.host", "operators", "what is kept on the host core", "rebuild", _find_host),
    ("placement.weight_bits", "4, 8", "width of convolution weights in the accelerator's memory; "
     "accuracy is not asked", "conversion", _find_weight_bits),
)
"""Path, accepted values, what it does, effort, and what finds values worth trying."""
