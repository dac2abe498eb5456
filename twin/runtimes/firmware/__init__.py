"""The kernels of firmware/: compiled, not lowered; their blocks come from the built image.

`twin.program.image.read` reads them. Here is what placing a network needs to know before that.
"""

from __future__ import annotations

from dataclasses import replace

from hwmodels.kernel import Lowered
from twin.errors import RuntimeRefusedError
from twin.network.graph import GraphLayer
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site


def is_pointwise(site: GraphLayer) -> bool:
    """Whether a convolution is a plain matrix product: 1x1, stride 1, no border."""
    window = site.layer.window
    return (window is not None and window.kernel == (1, 1) and window.stride == (1, 1)
            and not any(window.padding))


def convolution_scratch_bytes(site: Site) -> int:
    """Columns of a convolution: two windows of int8, one of float32; none when pointwise."""
    weights = site.weights
    if is_pointwise(site):
        return 0
    depth = weights.elements // weights.shape[0]
    return 4 * depth if weights.dtype == "float32" else 2 * depth


def tile_scratch(lowering: Lowering, windows: int) -> Lowering:
    """Return a convolution that copies so many windows at a time, of two as it stands.

    Any other lowering is returned as it is.
    """
    if lowering.scratch_bytes is not convolution_scratch_bytes:
        return lowering

    def scratch_bytes(site: Site) -> int:
        return convolution_scratch_bytes(site) // 2 * windows

    return replace(lowering, scratch_bytes=scratch_bytes)


def _refuse(site: Site) -> Lowered:
    raise RuntimeRefusedError("the firmware's kernels are compiled, not lowered: their blocks come "
                              "from the image")


_COMPILED: Codes = {"c": Lowering(lower=_refuse)}

KERNELS: Kernels = {
    "conv_2d": {"c": Lowering(lower=_refuse, scratch_bytes=convolution_scratch_bytes)},
    "add": _COMPILED,
    "average_pool_2d": _COMPILED,
    "concatenation": _COMPILED,
    "depthwise_conv_2d": _COMPILED,
    "dequantize": _COMPILED,
    "fully_connected": _COMPILED,
    "hard_swish": _COMPILED,
    "leaky_relu": _COMPILED,
    "logistic": _COMPILED,
    "max_pool_2d": _COMPILED,
    "mean": _COMPILED,
    "pad": _COMPILED,
    "quantize": _COMPILED,
    "relu": _COMPILED,
    "relu6": _COMPILED,
    "softmax": _COMPILED,
    "tanh": _COMPILED,
}
"""Operators by name: those `twin.program.image.compile.calls` writes."""

FAMILIES = {
    "conv_2d": "conv", "depthwise_conv_2d": "depthwise", "fully_connected": "fully_connected",
    "average_pool_2d": "pool", "max_pool_2d": "pool", "mean": "pool", "softmax": "softmax",
    "add": "elementwise", "pad": "data_movement", "concatenation": "data_movement",
    "quantize": "quantize", "dequantize": "quantize",
}
"""Family of an operator's kernel; of any other it is "activation"."""
