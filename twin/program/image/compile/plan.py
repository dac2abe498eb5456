"""Where a network's data live in our firmware: the arena plan and the image of its constants."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hwmodels.frozen import entity
from hwmodels.isa import load_isa
from twin.deployment.memories import align
from twin.deployment.placement import Placement, requantisation_bytes
from twin.network.arithmetic import parameters
from twin.network.arithmetic.requantisation import weighted
from twin.network.graph import Graph, GraphLayer
from twin.network.operators import Form, is_alias, traits
from twin.runtimes import Runtime, load_runtime
from twin.runtimes.firmware import is_pointwise

KERNELS = ("own", "cmsis-nn")
"""Whose kernels the image calls."""


FIRMWARE: Runtime = load_runtime("firmware")
"""Runtime of the firmware."""


@entity
class Image:
    """The constants of a network as one block of bytes.

    Parameters
    ----------
    content
        Constants at the offsets of the placement, then requantisation parameters, then what the
        plan does not know: tables, and biases that layers share.
    planned_bytes
        Of these, what the placement predicts.
    bias, parameters, table
        Offsets by layer position.
    """

    content: bytes
    planned_bytes: int
    weights: dict[int, int]
    bias: dict[int, int]
    parameters: dict[int, int]
    table: dict[int, int]


def lay_out_constants(graph: Graph, placement: Placement, *, kernels: str = "own",
                      isa: str = "") -> Image:
    """Write the constants of a network as the firmware's kernels want them.

    Parameters
    ----------
    placement
        Of our firmware, or of CMSIS-NN.
    kernels
        "own": biases carry the input's zero point; "cmsis-nn": as the file has them.
    isa
        CMSIS-NN for MVE wants that sum, too, where a layer has one requantisation in all.

    Returns
    -------
    Image
        Little endian.
    """
    offsets = dict(placement.weight_offsets)
    total = sum(requantisation_bytes(graph, layer) for layer in graph.layers)
    # A plan may keep the parameters in the arena; the image always brings them.
    constants_bytes = max((offset + align(graph.tensors[i].size_bytes, 16)
                           for i, offset in offsets.items()), default=0)
    content = bytearray(constants_bytes + total)
    for tensor, offset in offsets.items():
        data = graph.tensors[tensor].data
        assert data is not None, f"{graph.tensors[tensor].name} is not a constant"
        raw = np.ascontiguousarray(data).tobytes()
        content[offset:offset + len(raw)] = raw
    image = Image(content=b"", planned_bytes=placement.weights_bytes, weights=offsets, bias={},
                  parameters={}, table={})
    parameter_offset = constants_bytes
    readers = Counter(tensor for layer in graph.layers for tensor in layer.inputs)
    for position, layer in enumerate(graph.layers):
        if is_alias(layer):
            continue
        operator, step = traits(layer), GraphLayer(graph, layer)
        if operator.filters is not None:
            plain = kernels == "cmsis-nn" and not _wants_sums(step, isa)
            _write_bias(step, position, image, content, readers, plain)
        if requantisation_bytes(graph, layer):
            _write_parameters(step, position, image, content, parameter_offset)
            parameter_offset += requantisation_bytes(graph, layer)
        elif operator.form is Form.REDUCE and step.source.dtype == "int8":
            requantisation, _, _ = parameters.averaging(step)
            image.table[position] = _append(content, np.concatenate(
                [requantisation.multipliers, requantisation.shifts]))
        table = parameters.find_table(step)
        if table is not None:
            image.table[position] = _append(content, table)
    return Image(content=bytes(content), planned_bytes=image.planned_bytes, weights=offsets,
                 bias=image.bias, parameters=image.parameters, table=image.table)


def _wants_sums(step: GraphLayer, isa: str) -> bool:
    """Whether CMSIS-NN reads the sums of the weights' rows beside the bias."""
    if "mve" not in load_isa(isa).extensions or step.source.dtype != "int8":
        return False
    product = traits(step.layer).form is Form.PRODUCT or is_pointwise(step)
    return product and len(weighted(step).multipliers) == 1


def _append(content: bytearray, values: np.ndarray) -> int:
    """Add values at the next multiple of 16; return their offset."""
    content.extend(bytes(align(len(content), 16) - len(content)))
    offset = len(content)
    content.extend(np.ascontiguousarray(values).tobytes())
    return offset


def _write_bias(step: GraphLayer, position: int, image: Image, content: bytearray,
                readers: dict[int, int], plain: bool) -> None:
    if step.source.dtype == "float32":
        from twin.network.arithmetic.floating import float_bias

        values = float_bias(step)
    elif traits(step.layer).is_depthwise or plain:
        values = parameters.bias_values(step)
    else:
        values = parameters.folded_bias(step)
    tensor = step.layer.bias
    if tensor < 0 or readers[tensor] > 1:
        image.bias[position] = _append(content, values)
        return
    offset = image.weights[tensor]
    content[offset:offset + values.nbytes] = values.tobytes()
    image.bias[position] = offset


def _write_parameters(step: GraphLayer, position: int, image: Image, content: bytearray,
                      offset: int) -> None:
    requantisation = weighted(step)
    values = np.concatenate([requantisation.multipliers, requantisation.shifts])
    content[offset:offset + values.nbytes] = values.tobytes()
    image.parameters[position] = offset
