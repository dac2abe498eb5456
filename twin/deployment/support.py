"""What a kernel library supports: layers, types and batches of a network, and parts it runs on."""

from __future__ import annotations

import re
from collections import Counter

from calibration.fitting.cell import list_measured
from hwmodels.board.facts import Board
from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph, Layer
from twin.network.operators import layer_macs, traits
from twin.runtimes.file import list_runtimes, load_runtime
from twin.runtimes.runtime import Runtime
from twin.runtimes.targets import load_target

INTEGERS = ("int4", "int8", "uint8", "int16")


def runs(graph: Graph, runtime: Runtime, board: Board) -> bool:
    """Whether a library runs a network on a board: its most common type, and every layer."""
    types = Counter(graph.output(layer).dtype for layer in computing_layers(graph))
    try:
        check_network(graph, runtime)
        check_part(runtime, board)
    except RuntimeRefusedError:
        return False
    return not types or types.most_common(1)[0][0] in runtime.dtypes


def check_network(graph: Graph, runtime: Runtime) -> None:
    """Refuse a network, changed since its runtime was chosen, that it has no kernels for.

    Raises
    ------
    RuntimeRefusedError
        Naming the layer and what the runtime runs.
    """
    check_layers(graph)
    check_types(graph, runtime)
    check_batch(graph, runtime)
    if runtime.unpacks_weights:
        return
    for layer in graph.layers:
        if (layer_macs(graph, layer) and len(layer.inputs) > 1 and layer.inputs[1] >= 0
                and graph.input(layer, 1).dtype == "int4"):
            raise RuntimeRefusedError(
                f"runtime {runtime.identity} has no kernel of {layer.op} on 4-bit weights; "
                "accepted with " + ", ".join(name for name in list_runtimes()
                                             if load_runtime(name).unpacks_weights))


def check_types(graph: Graph, runtime: Runtime) -> Runtime:
    """Refuse a runtime without kernels of a layer, or none of whose types a network computes in."""
    if runtime.is_alone:
        assert runtime.counted is not None
        from twin.runtimes.counted.lower import check_alone

        for layer in graph.layers:
            if not traits(layer).alias:
                check_alone(runtime.identity, *runtime.counted, layer.op)
    for layer in graph.layers:
        if traits(layer).code_of not in ("", runtime.name):
            raise RuntimeRefusedError(
                f"{graph.source}: layer {layer.index} {layer.op} is code for an accelerator, which "
                f"{runtime.identity} does not run; accepted: --runtime {traits(layer).code_of} on "
                "a board with one, or the file it was compiled from")
    types = {graph.output(layer).dtype: layer for layer in computing_layers(graph)}
    if types and not set(types) & set(runtime.dtypes):
        dtype, layer = next(iter(types.items()))
        raise RuntimeRefusedError(
            f"runtime {runtime.identity} does not run {dtype} {layer.op}; it runs "
            f"{', '.join(runtime.dtypes)}; see `twin runtimes`")
    return runtime


def check_batch(graph: Graph, runtime: Runtime) -> None:
    """Refuse several inputs at a time where a runtime takes one."""
    if not runtime.accelerated and not runtime.is_compiled:
        return
    for layer in graph.layers:
        if layer.window is not None and graph.input(layer).shape[0] > 1:
            raise RuntimeRefusedError(
                f"{graph.source}: layer {layer.index} {layer.op} {layer.name!r}: a batch of "
                f"{graph.input(layer).shape[0]}; runtime {runtime.identity} takes one "
                "input at a time; accepted: batch 1, or a runtime of kernels on the core")


def check_layers(graph: Graph) -> None:
    """Refuse layers no kernel library runs: a batch, uint16, integer weights and float values.

    Raises
    ------
    RuntimeRefusedError
        Naming file and layer.

    Notes
    -----
    Dynamic-range quantisation stores weights as integers and computes in float or in integers
    found at run time; kernels for microcontrollers do not. Layers between SPACE_TO_BATCH_ND and
    BATCH_TO_SPACE_ND, which old exporters write for dilated convolutions, see a batch.
    """
    for layer in graph.layers:
        if layer_macs(graph, layer) and graph.output(layer).dtype == "uint16":
            raise RuntimeRefusedError(
                f"{graph.source}: layer {layer.index} {layer.op} {layer.name!r}: uint16 "
                "activations run on no kernel library; accepted: int16, int8, uint8 or float32")
        weights = [graph.tensors[index] for index in layer.inputs[1:] if index >= 0]
        if not layer_macs(graph, layer) or not weights or not weights[0].is_constant:
            continue
        activations = graph.input(layer)
        place = f"{graph.source}: layer {layer.index} {layer.op} {layer.name!r}"
        batch = graph.entry.shape[:1] if graph.inputs else (1,)
        if layer.window is not None and activations.shape[0] not in (1, *batch):
            raise RuntimeRefusedError(f"{place}: a batch of {activations.shape[0]}; accepted: "
                                      "batch 1, dilation stated by the convolution itself")
        if activations.dtype == "float32" and weights[0].dtype in INTEGERS:
            raise RuntimeRefusedError(
                f"{place}: {weights[0].dtype} weights with float32 activations (dynamic-range "
                "quantisation) run on no kernel library here (TFLite Micro: \"Hybrid models are "
                "not supported\"); export with calibration data (representative_dataset, "
                "quantize_static) or in float32")


def check_part(runtime: Runtime, board: Board) -> None:
    """Refuse a library of another accelerator, or a closed one of other makers' parts."""
    load_target(runtime.target).check(board, runtime)
    if runtime.closed and (makers := list_other_makers(runtime, board)):
        named = " or ".join(f"{maker}..." for maker in makers)
        raise RuntimeRefusedError(
            f"{runtime.identity} is closed; {board.name} has {board.soc}, accepted: boards with "
            f"parts named {named}, by board.soc of their file")


def list_other_makers(runtime: Runtime, board: Board) -> list[str]:
    """Return the makers a library of assumed loops is for, where the part is of none; else nothing.

    Those whose parts it was measured on: nobody links a closed one elsewhere (`choose_runtime`
    refuses it), and nothing says what another takes there: it is not offered.
    """
    rows = list_measured() if runtime.structure == "assumed" else ()
    makers = {maker_of(row.soc) for row in rows if row.runtime.partition("@")[0] == runtime.name}
    return [] if maker_of(board.soc) in makers else sorted(makers)


def maker_of(soc: str) -> str:
    """Return the letters the names of one maker's parts begin with."""
    found = re.match("[a-z]+", soc.lower())
    return found[0] if found else soc


def computing_layers(graph: Graph) -> list[Layer]:
    """Return the layers that do more than change a type."""
    return [layer for layer in graph.layers if not traits(layer).converts]


def float_layers(graph: Graph) -> list[Layer]:
    """Return the layers that compute float values; turning integers to float is no computing."""
    return [layer for layer in computing_layers(graph) if graph.output(layer).dtype == "float32"]
