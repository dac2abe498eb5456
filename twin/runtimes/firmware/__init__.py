"""The kernels of firmware/: compiled, not lowered; their blocks come from the built image.

`twin.image.read` reads them. What is here is what placing a network needs to know before that.
"""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.kernel import Kernel
from twin.errors import RuntimeRefusedError
from twin.network.arithmetic.parameters import LOOKUPS
from twin.network.graph import Graph, Layer
from twin.runtimes.lowering import Lowering, Site, no_scratch


def is_pointwise(graph: Graph, layer: Layer) -> bool:
    """Whether a convolution is a plain matrix product: 1x1, stride 1, no border."""
    window = layer.window
    return (window is not None and window.kernel == (1, 1) and window.stride == (1, 1)
            and not any(window.padding))


def convolution_scratch_bytes(graph: Graph, layer: Layer, isa: str) -> int:
    """Columns of a convolution: two windows of int8, one of float32; none when pointwise.

    Parameters
    ----------
    isa : str
        Makes no difference: every instruction set copies the same columns.
    """
    weights = graph.tensors[layer.inputs[1]]
    if is_pointwise(graph, layer):
        return 0
    depth = weights.elements // weights.shape[0]
    return 4 * depth if weights.dtype == "float32" else 2 * depth


def _refuse(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    raise RuntimeRefusedError("the firmware's kernels are compiled, not lowered: their blocks come "
                              "from the image")


_COMPILED = Lowering(lower=_refuse, scratch_bytes=no_scratch)

LIBRARY: Mapping[str, Lowering] = {
    "conv_2d": Lowering(lower=_refuse, scratch_bytes=convolution_scratch_bytes),
    **dict.fromkeys((
        "add", "average_pool_2d", "concatenation", "depthwise_conv_2d", "dequantize",
        "fully_connected", "max_pool_2d", "mean", "pad", "softmax", *LOOKUPS), _COMPILED),
}
"""Operators by name: those `twin.image.compile.calls` writes."""
