"""The core as a target: where a kernel's operands are, the kernels of a network, their price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import isclose
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hwmodels.board.facts import Board, Cache
from hwmodels.counts import Bill, Counts, Prices
from hwmodels.errors import KernelError, check_word, reworded
from hwmodels.isa import load_isa
from hwmodels.kernel import Lowered, Operand
from hwmodels.paths.ways import code_cache, data_cache
from hwmodels.prices import add_background
from hwmodels.quantities import format_frequency, sum_by_key
from twin.deployment.costs import Costs
from twin.deployment.deployment import Deployment, PriceOnCore
from twin.deployment.draft import Draft
from twin.deployment.kept_counts import read_core
from twin.deployment.memories import align, choose_memory, find_roomy
from twin.deployment.placement import (
    ArenaSlot,
    Plan,
    layer_dtype,
    reads_packed,
    requantisation_bytes,
)
from twin.errors import RuntimeRefusedError
from twin.network.graph import DTYPE_BITS, Graph, Layer
from twin.network.operators import is_alias, traits
from twin.runtimes import Runtime, list_compilers
from twin.runtimes.lowering import Lowering, Site

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from hwmodels.paths.traffic import KernelTraffic
    from twin.deployment.changes import WhatIf

_LINE_BYTES = 32

MOST_LOWERED = 1024
"""Layers of a network in all the places they are kept lowered for."""

_LOWERED: WeakKeyDictionary[Graph, dict[tuple[object, ...], Lowered]] = WeakKeyDictionary()


def lower_network(deployment: Deployment) -> tuple[Lowered, ...]:
    """Return the kernels of every layer, in execution order, as the runtime's target has them.

    Returns
    -------
    tuple of tuple of Kernel
        One tuple per layer of `deployment.executed`; of an alias none.

    Raises
    ------
    RuntimeRefusedError
        When the runtime has no kernel for an operator or its type.
    """
    return deployment.target.lower(deployment)


def list_caches(deployment: Deployment) -> tuple[Cache, ...]:
    """Return the caches that weights, arena or code are behind."""
    board = deployment.board
    placed = ((data_cache, deployment.weights), (data_cache, deployment.arena),
              (code_cache, deployment.code))
    found = dict.fromkeys(find(board, board.memory(name)) for find, name in placed)
    return tuple(cache for cache in found if cache is not None)


def lower_on_core(deployment: Deployment) -> tuple[Lowered, ...]:
    """Return what the runtime's library makes of every layer that runs on the core.

    Raises
    ------
    RuntimeRefusedError
        When it has no kernel for an operator or its type.
    """
    graph = deployment.executed
    core, accelerated = deployment.board.core, deployment.plan.fusion.accelerated
    if core.soft_float not in ("libgcc", f"{deployment.board.soc}-rom"):
        raise RuntimeRefusedError(
            f"{deployment.board.name}:cores.{core.name}.soft_float: {core.soft_float} is not on "
            f"the chip, {deployment.board.soc}; accepted: libgcc")
    _check_core(deployment.board)
    lowered: list[Lowered] = []
    weight_offsets = dict(deployment.placement.weight_offsets)
    addresses = list_parameter_addresses(deployment)
    for position, (layer, parameters) in enumerate(zip(graph.layers, addresses, strict=False)):
        if is_alias(layer) or position in accelerated:
            lowered.append(())
            continue
        operands = _operands(deployment, layer, position, weight_offsets, parameters)
        site = Site(graph=graph, layer=layer, isa=deployment.isa, fpu=core.fpu, operands=operands,
                    soft_float=core.soft_float)
        lowering = deployment.runtime.lowering(layer.op, layer_dtype(graph, layer), deployment.isa)
        with reworded(KernelError, RuntimeRefusedError,
                      f"{graph.source}: layer {layer.index} {layer.op} {layer.name!r} does not "
                      f"fit the kernels of {deployment.runtime.identity}: "):
            lowered.append(_lower_layer(position, lowering, site,
                                        deployment.runtime.splits_in_loops))
    return tuple(lowered)


def _check_core(board: Board) -> None:
    """Refuse a board whose core cannot be of its model, with the facts that contradict it."""
    core, widths = board.core, ("none", "single", "double")
    traits = read_core(board, core).traits
    able, widest = load_isa(traits.isa), traits.widest_fpu or traits.fpu or widths[-1]
    sets = (able.name, *able.without.values())
    for path, stated, accepted in (
            (f"cores.{core.name}.isa", core.isa, sets),
            (f"cores.{core.name}.fpu", core.fpu or "none", widths[:widths.index(widest) + 1])):
        check_word(f"{board.name}:{path}: no {core.model} has", stated, accepted,
                   RuntimeRefusedError)


def _lower_layer(position: int, lowering: Lowering, site: Site, in_loops: bool) -> Lowered:
    """Return a layer's kernels: the same ones each time, as what is known of them is found so."""
    kept = _LOWERED.setdefault(site.graph, {})  # no key holds the graph itself
    key = position, lowering, site.isa, site.fpu, site.operands, site.soft_float, in_loops
    kernels = kept.get(key)
    if kernels is None:
        if len(kept) >= MOST_LOWERED:
            kept.clear()
        kernels = kept[key] = _take_turns(site.layer, _doubt_packed(site, _run_lowering(
            lowering, site, in_loops)))
    return kernels


def _run_lowering(lowering: Lowering, site: Site, in_loops: bool) -> Lowered:
    if reads_packed(site.graph, site.layer):
        from twin.runtimes.lowering.packed import take_apart

        lowering = take_apart(lowering, site, in_loops=in_loops)
    if site.layer.window is not None and site.source.shape[0] > 1:
        from twin.runtimes.lowering.batches import lower_batch

        return lower_batch(lowering, site)
    return lowering.lower(site)


def _doubt_packed(site: Site, kernels: Lowered) -> Lowered:
    """Mark kernels on weights of less than a byte: taking them apart is not counted."""
    if all(tensor is None or DTYPE_BITS[tensor.dtype] >= 8
           for tensor in site.graph.layer_inputs(site.layer)):
        return kernels
    return tuple(replace(kernel, assumed=True) for kernel in kernels)


def _take_turns(layer: Layer, kernels: Lowered) -> Lowered:
    """Return the kernels as often as the layer's loop turns."""
    if layer.repeats == 1:
        return kernels
    from twin.runtimes.lowering.turns import repeat_kernel

    return tuple(repeat_kernel(kernel, layer.repeats) for kernel in kernels)


def code_address(deployment: Deployment) -> int:
    """First byte of the kernels' code."""
    return deployment.board.memory(deployment.code).address


def weights_address(deployment: Deployment) -> int:
    """First byte of the weights: behind the code where both share a memory."""
    base = deployment.board.memory(deployment.constants).address
    if deployment.constants == deployment.code:
        base += align(deployment.runtime.code_bytes, _LINE_BYTES)
    return base


def arena_address(deployment: Deployment, memory: str | None = None) -> int:
    """First byte of the arena, in one of its memories: behind weights and code that share it."""
    name = memory or deployment.arena
    base = deployment.board.memory(name).address
    if name == deployment.weights:
        base = weights_address(deployment) + align(_kept_weights(deployment), _LINE_BYTES)
    elif name == deployment.code:
        base += align(deployment.runtime.code_bytes, _LINE_BYTES)
    return base + align(deployment.plan.spilled.get(name, 0), _LINE_BYTES)


def _kept_weights(deployment: Draft) -> int:
    """Bytes of constants and parameters in the memory of the weights."""
    return deployment.placement.weights_bytes - sum(deployment.plan.spilled.values())


def _operands(deployment: Deployment, layer: Layer, position: int,
              weight_offsets: dict[int, int], parameters: int) -> tuple[Operand, ...]:
    graph = deployment.executed
    operands = [
        _tensor_operand(deployment, position, name, role, tensor_id, weight_offsets)
        for name, role, tensor_id in named_tensors(graph, layer)
    ]
    parameter_bytes = requantisation_bytes(graph, layer)
    if parameter_bytes:
        operands.append(Operand(
            name="parameters", role="parameters", address=parameters, size_bytes=parameter_bytes,
            memory=deployment.arena if deployment.runtime.parameters_in == "arena" else
            deployment.constants))
    scratch = deployment.placement.slot(-1 - position)
    if scratch is not None:
        memory, address = _locate(deployment, scratch)
        operands.append(Operand(name="scratch", role="scratch", memory=memory, address=address,
                                size_bytes=scratch.size_bytes))
    return tuple(operands)


def named_tensors(graph: Graph, layer: Layer) -> list[tuple[str, str, int]]:
    """(operand name, role, tensor index) of every tensor a layer touches."""
    names = traits(layer).operands or tuple(
        _numbered("input", place) for place in range(len(layer.inputs)))
    named = [(name, name.rstrip("0123456789"), tensor_id)
             for name, tensor_id in zip(names, layer.inputs, strict=False) if tensor_id >= 0]
    named += [(_numbered("output", place), "output", tensor_id)
              for place, tensor_id in enumerate(layer.outputs)]
    return named


def _numbered(name: str, place: int) -> str:
    return name if place == 0 else f"{name}{place + 1}"


def buffers_address(deployment: Deployment) -> int:
    """First byte of the buffers weights are copied to: behind the arena where they share RAM."""
    memory = deployment.tile_memory
    if memory.name != deployment.arena:
        return memory.address
    used = deployment.placement.first_bytes + deployment.placement.parameter_bytes
    return arena_address(deployment) + align(used, _LINE_BYTES)


def _tensor_operand(deployment: Deployment, position: int, name: str, role: str, tensor_id: int,
                    weight_offsets: dict[int, int]) -> Operand:
    tensor = deployment.executed.tensors[tensor_id]
    # Kernels read weights of four bits as bytes, into which a library takes them apart.
    size_bytes = max(tensor.size_bytes, tensor.elements)
    buffers = deployment.buffers
    if buffers is not None and (position, tensor_id) in buffers.offsets:
        return Operand(name=name, role=role, memory=deployment.tile_memory.name,
                       address=buffers_address(deployment) + buffers.offsets[position, tensor_id],
                       size_bytes=size_bytes)
    home = deployment.plan.homes.get(tensor_id)
    if home is not None:
        return Operand(name=name, role=role, memory=home.memory, address=home.address,
                       size_bytes=size_bytes)
    if tensor_id in weight_offsets:
        return Operand(name=name, role=role, memory=deployment.constants,
                       address=weights_address(deployment) + weight_offsets[tensor_id],
                       size_bytes=size_bytes)
    slot = deployment.placement.slot(tensor_id)
    assert slot is not None, f"{tensor.name} has no place"
    memory, address = _locate(deployment, slot)
    return Operand(name=name, role=role, memory=memory, address=address, size_bytes=size_bytes)


def _locate(deployment: Deployment, slot: ArenaSlot) -> tuple[str, int]:
    """Memory and first byte of a buffer of the arena."""
    home = deployment.plan.homes.get(slot.tensor)
    if home is not None:
        return home.memory, home.address
    offset, name = slot.offset_bytes, deployment.arena
    for further, size_bytes in zip(deployment.arena_spill, deployment.placement.parts_bytes,
                                   strict=False):
        if offset < size_bytes:
            break
        offset, name = offset - size_bytes, further
    return name, arena_address(deployment, name) + offset


def list_parameter_addresses(deployment: Deployment) -> Iterator[int]:
    """First byte of requantisation parameters of each layer: behind the arena or the weights."""
    graph = deployment.executed
    sizes = [requantisation_bytes(graph, layer) for layer in graph.layers]
    return accumulate(sizes, initial=(
        arena_address(deployment) + deployment.placement.first_bytes
        if deployment.runtime.parameters_in == "arena" else
        weights_address(deployment) + _kept_weights(deployment) - sum(sizes)))


def describe_clock(board: Board, hertz: float | None = None) -> tuple[str, ...]:
    """Say which clocks a board's core has, where this is none of them."""
    clock = board.core_clock
    hertz = hertz or clock.frequency_hz
    return () if not clock.settings_hz or any(
        isclose(hertz, one, rel_tol=0.03) for one in clock.settings_hz) else (
            f"{clock.name} at {format_frequency(hertz)} is no clock of the {board.soc}: it has "
            f"{', '.join(map(format_frequency, clock.settings_hz))}",)


class Core:
    """Kernels lowered by the runtime's library, one after another on the core.

    Other targets derive from it and replace what is different; `twin.deployment.deployment.Target`
    says what each part is asked for.
    """

    executes = False
    """Whether instructions are those that ran, not lowered ones."""
    borrowed = "its loops are taken to be those of CMSIS-NN"
    paths: tuple[WhatIf, ...] = ()

    def check(self, board: Board, runtime: Runtime) -> None:
        """Accept every board: each has a core."""

    def default_places(self, board: Board, runtime: Runtime) -> Mapping[str, str]:
        """Return the memories the board file names, or its RAM outside if the library wants it."""
        outside = [one.name for one in board.memories if one.role == "external_ram"]
        if runtime.prefers_external_ram and outside:
            return dict.fromkeys(("weights", "arena"), outside[0])
        places = dict(board.placement)
        return {what: choose_memory(board, places[what]).name for what in ("weights", "arena")}

    def own_ram(self, draft: Draft) -> Mapping[str, int]:
        """Nothing: a library's working memory is said in its file."""
        return {}

    def constants(self, deployment: Draft) -> str:
        """Return the memory of the weights."""
        return deployment.weights

    def rewrite(self, graph: Graph, deployment: Draft) -> Graph:
        """Return the graph as it is."""
        return graph

    def plan(self, deployment: Draft) -> Plan:
        """Return the plan of a core."""
        if not (deployment.arena_spill or deployment.weights_spill):
            return Plan()
        from twin.deployment.split import SplitPlan

        return SplitPlan(
            graph=deployment.executed, board=deployment.board, runtime=deployment.runtime,
            weights=(deployment.weights, *deployment.weights_spill),
            arena=(deployment.arena, *deployment.arena_spill), code=deployment.code)

    def settle(self, draft: Draft, *, asked: bool) -> tuple[str, tuple[str, ...]]:
        """Choose a memory with room where none was asked for."""
        if asked:
            return draft.arena, ()
        return find_roomy(draft.board, draft.arena, draft.working_ram_bytes)

    def needs(self, draft: Draft) -> dict[str, int]:
        """Arena and weights in one memory each, or in those they are split between."""
        further, spilled = draft.placement.parts_bytes[1:], draft.plan.spilled
        return sum_by_key((
            (draft.arena, draft.working_ram_bytes - sum(further)),
            *zip(draft.arena_spill, further, strict=True),
            (draft.weights, draft.linked_bytes - sum(spilled.values())), *spilled.items()))

    def check_fit(self, draft: Draft, needs: dict[str, int]) -> None:
        """Nothing more has to fit than what `needs` says."""

    def lower(self, deployment: Deployment) -> tuple[Lowered, ...]:
        """Return the library's kernels of every layer."""
        return lower_on_core(deployment)

    def content(self, deployment: Deployment) -> str:
        """Nothing: a library's kernels follow from the deployment."""
        return ""

    def price(self, deployment: Deployment, prices: Prices, price_on_core: PriceOnCore, *,
              cold: bool) -> Costs:
        """Price every layer on the core, with what being powered costs meanwhile."""
        costs = price_on_core(deployment, partial(deployment.target.lower, deployment), prices,
                              cold=cold)
        return tuple(replace(cost, bill=add_background(cost.bill, deployment.board, prices))
                     for cost in costs), ()

    def executed_traffic(self, deployment: Deployment, *, cold: bool) -> tuple[KernelTraffic, ...]:
        """Nothing: what kernels do to memories follows from their lowering."""
        return ()

    def count_setup(self, deployment: Deployment) -> Counts:
        """Nothing is copied before the first inference."""
        return Counts()

    def name_kernels(self, deployment: Deployment) -> str:
        """Return that nothing is known of kernels but what a runtime says."""
        return ""

    def remarks(self, deployment: Deployment, temperature: str) -> Iterator[str]:
        """Say which accelerator is not used, where no cache is cold, and a clock no part has."""
        board = deployment.board
        yield from describe_clock(board)
        if temperature == "cold" and not list_caches(deployment):
            yield (f"cold is as warm here: weights in {deployment.weights}, arena in "
                   f"{deployment.arena} and code in {deployment.code} are behind no cache")
        if board.npu is not None:
            able = list_compilers(board.npu.family)
            yield (f"the {board.npu.family} NPU of {board.name} is not used: "
                   f"{deployment.runtime.identity} runs on the {board.core.model}; "
                   + (f"--runtime {' or '.join(able)} uses it" if able else
                      "no runtime here compiles for it"))

    def estimate_energy(self, board: Board, bill: Bill) -> tuple[float, Interval] | None:
        """There is no accelerator that draws anything."""
        return None
