"""Which runtime a network gets when none is asked for, and what must be said of the choice."""

from __future__ import annotations

from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph, Layer
from twin.runtimes.runtime import Runtime, load_runtime

WEIGHTED = ("conv_2d", "depthwise_conv_2d", "transpose_conv_2d", "fully_connected",
            "batch_matmul", "svdf", "lstm", "gru", "rnn")
"""Operators whose second input is weights."""

INTEGERS = ("int4", "int8", "uint8", "int16")

SHOWN = 8
"""Float layers a note names one by one."""


def choose_runtime(graph: Graph, name: str | None) -> tuple[Runtime, tuple[str, ...]]:
    """Return the runtime asked for, or the default one with what must be said of it.

    Raises
    ------
    RuntimeRefusedError
        When it is not known, or no runtime runs a layer of the network.
    """
    check_layers(graph)
    if name:
        return _check_types(graph, load_runtime(name)), ()
    runtime = default_runtime(graph)
    return runtime, note_float_island(graph, runtime)


def default_runtime(graph: Graph) -> Runtime:
    """Return the runtime that suits the model: CMSIS-NN for integers, plain C for float."""
    floating = len(float_layers(graph))
    return load_runtime("float-reference" if floating and floating >= len(computing_layers(graph))
                        else "tflm-cmsis-nn")


def computing_layers(graph: Graph) -> list[Layer]:
    """Return the layers that do more than change a type."""
    return [layer for layer in graph.layers if layer.op not in ("quantize", "dequantize")]


def _check_types(graph: Graph, runtime: Runtime) -> Runtime:
    """Refuse a runtime none of whose types a network computes in."""
    types = {graph.tensors[layer.outputs[0]].dtype: layer for layer in computing_layers(graph)}
    if types and not set(types) & set(runtime.dtypes):
        dtype, layer = next(iter(types.items()))
        raise RuntimeRefusedError(
            f"runtime {runtime.identity} does not run {dtype} {layer.op}; it runs "
            f"{', '.join(runtime.dtypes)}; see `twin runtimes`")
    return runtime


def check_layers(graph: Graph) -> None:
    """Refuse layers no kernel library here runs: of a batch, of integer weights and float values.

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
        weights = [graph.tensors[index] for index in layer.inputs[1:] if index >= 0]
        if layer.op not in WEIGHTED or not weights or not weights[0].is_constant:
            continue
        activations = graph.tensors[layer.inputs[0]]
        place = f"{graph.source}: layer {layer.index} {layer.op} {layer.name!r}"
        if layer.window is not None and activations.shape[0] != 1:
            raise RuntimeRefusedError(f"{place}: a batch of {activations.shape[0]}; accepted: "
                                      "batch 1, dilation stated by the convolution itself")
        if activations.dtype == "float32" and weights[0].dtype in INTEGERS:
            raise RuntimeRefusedError(
                f"{place}: {weights[0].dtype} weights with float32 activations (dynamic-range "
                "quantisation) run on no kernel library here; accepted: activations quantised too, "
                "or all of it float32")


def float_layers(graph: Graph) -> list[Layer]:
    """Return the layers that compute float values; turning integers to float is no computing."""
    return [layer for layer in graph.layers if layer.op != "dequantize"
            and graph.tensors[layer.outputs[0]].dtype == "float32"]


def note_float_island(graph: Graph, runtime: Runtime) -> tuple[str, ...]:
    """Say which layers of a network of integers compute in float, and what they run on.

    Parameters
    ----------
    graph : Graph
        The network.
    runtime : Runtime
        What `default_runtime` chose.

    Returns
    -------
    tuple of str
        One note, or none where all layers compute in one type.
    """
    floating = float_layers(graph)
    computing = computing_layers(graph)
    if not floating or len(floating) >= len(computing):
        return ()
    shown = ", ".join(f"{layer.index} {layer.op}" for layer in floating[:SHOWN])
    more = f" and {len(floating) - SHOWN} more" if len(floating) > SHOWN else ""
    return (f"runtime: {len(floating)} of {len(computing)} layers compute in float32 ({shown}"
            f"{more}): they run on portable float kernels beside {runtime.identity}, assumed",)
