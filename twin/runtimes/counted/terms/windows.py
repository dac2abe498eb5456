"""Windows that slide over an image: convolution, depthwise and transposed, pooling.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: conv.h, depthwiseconv_uint8.h,
integer_ops/conv.h, integer_ops/depthwise_conv.h, pooling.h, transpose_conv.h.
"""

from __future__ import annotations

from twin.network.graph import Graph, Layer, Tensor, Window
from twin.runtimes.counted.copies import count_copies
from twin.runtimes.counted.work import Terms, Work


def _reached(size: int, outputs: int, kernel: int, stride: int, dilation: int, before: int) -> int:
    """Return how many taps of one dimension lie inside, over all outputs of that dimension."""
    return sum(1 for place in range(outputs) for tap in range(kernel)
               if 0 <= place * stride - before + tap * dilation < size)


def count_taps(window: Window, source: tuple[int, ...], target: tuple[int, ...]) -> int:
    """Return the window positions inside the image, over all output pixels."""
    rows = _reached(source[1], target[1], window.kernel[0], window.stride[0], window.dilation[0],
                    window.padding[0])
    columns = _reached(source[2], target[2], window.kernel[1], window.stride[1],
                       window.dilation[1], window.padding[2])
    return rows * columns


def describe_pool(graph: Graph, layer: Layer) -> Work:
    """Return the work of pooling."""
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    assert layer.window is not None
    taps = count_taps(layer.window, source.shape, target.shape)
    return Work(variant=source.dtype, terms={
        "call": 1, "pixel": target.shape[1] * target.shape[2], "output": target.elements,
        "tap": taps, "channel tap": taps * target.shape[3]})


def describe_convolution(graph: Graph, layer: Layer) -> Work:
    """Return the work of a convolution: outputs, taps, multiply-accumulates inside the image."""
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    weights, window = graph.tensors[layer.inputs[1]], layer.window
    assert window is not None
    pixels = target.shape[1] * target.shape[2]
    taps = count_taps(window, source.shape, target.shape)
    every = pixels * window.kernel[0] * window.kernel[1]
    depth, channels = weights.shape[3], target.shape[3]
    column = depth * window.kernel[0] * window.kernel[1]
    return Work(variant=source.dtype, path=_convolution_path(window, source, target), terms={
        "call": 1, "pixel": pixels, "channel": channels, "output": target.elements,
        "window tap": every, "inside tap": taps, "outside tap": every - taps,
        "output tap": every * channels, "mac": taps * depth * channels,
        "nominal mac": every * depth * channels, "rest": target.elements * (column % 4),
        "column": pixels * column, "column rest": pixels * (column % 4),
        "weight": weights.elements, **{
            f"gather {name}": count for name, count in count_copies(depth, taps).items()}})


def _convolution_path(window: Window, source: Tensor, target: Tensor) -> str:
    """Return what CMSIS-NN's wrapper chooses: by kernel, stride, height, whole words."""
    plain = window.dilation == (1, 1) and not any(window.padding)
    if window.kernel == (1, 1) and plain:
        return "1x1" if window.stride == (1, 1) else "1x1 strided"
    words = window.stride[1] * source.shape[3] % 4 == 0 and window.dilation[1] == 1
    return "1xn" if words and source.shape[1] == 1 and window.kernel[0] == 1 else "window"


def describe_depthwise(graph: Graph, layer: Layer) -> Work:
    """Return the work of a depthwise convolution."""
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    window = layer.window
    assert window is not None
    channels, multiplier = target.shape[3], target.shape[3] // source.shape[3]
    pixels = target.shape[1] * target.shape[2]
    taps = count_taps(window, source.shape, target.shape)
    every = pixels * window.kernel[0] * window.kernel[1]
    return Work(variant=source.dtype, path=_depthwise_path(window, multiplier), terms={
        "call": 1, "pixel": pixels, "output": target.elements, "input pixel": pixels
        * source.shape[3], "inside tap": taps, "outside tap": every - taps,
        "output tap": every * channels, "mac": taps * channels,
        "source tap": taps * source.shape[3], "rest": pixels * (channels % 4),
        "rest mac": taps * (channels % 4)})


def _depthwise_path(window: Window, multiplier: int) -> str:
    """Return what CMSIS-NN's wrapper chooses: by multiplier, dilation, kernel, padding."""
    dense = window.dilation == (1, 1)
    if multiplier == 1 and dense:
        narrow = window.padding[0] <= 1 and window.padding[2] <= 1
        return "3x3" if window.kernel == (3, 3) and narrow else "columns"
    return "by four" if multiplier % 4 == 0 and dense else "generic"


def describe_transpose_convolution(graph: Graph, layer: Layer) -> Work:
    """Return the work of a transposed convolution: every input spreads over its window."""
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    weights = graph.tensors[layer.inputs[1]]
    window = layer.window
    assert window is not None
    taps = source.shape[1] * source.shape[2] * weights.shape[1] * weights.shape[2]
    inside = _spread(source.shape[1], target.shape[1], window, 0) \
        * _spread(source.shape[2], target.shape[2], window, 1)
    depth, channels = weights.shape[3], weights.shape[0]
    turned = max(window.stride) <= 2 and depth > 16
    return Work(variant=source.dtype, path="turned" if turned else "", terms={
        "call": 1, "output": target.elements, "mac": inside * depth * channels,
        "nominal mac": taps * depth * channels, "inside tap": inside * depth,
        "output tap": inside * channels,
        "tap": taps * depth, "weight": weights.elements,
        "input": source.elements})


def _spread(size: int, outputs: int, window: Window, place: int) -> int:
    """Return how many taps of one dimension land inside the output, over all inputs."""
    before = window.padding[2 * place]
    return sum(1 for start in range(size) for tap in range(window.kernel[place])
               if 0 <= start * window.stride[place] - before + tap < outputs)


FAMILY = "pool"

TERMS: Terms = {
    "average_pool_2d": describe_pool, "max_pool_2d": describe_pool,
    "conv_2d": describe_convolution, "depthwise_conv_2d": describe_depthwise,
    "transpose_conv_2d": describe_transpose_convolution,
}
