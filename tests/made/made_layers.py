"""Networks of one layer, of each operator a library lowers and each type it computes in."""

from __future__ import annotations

import numpy as np

from twin.network.graph import Graph, Layer, Tensor, Window

SAME = Window(kernel=(3, 3), padding=(1, 1, 1, 1))
POOL = Window(kernel=(3, 3), stride=(2, 2), padding=(1, 0, 1, 0))


def make(op: str, inputs: list, output: tuple, dtype: str = "int8", out_dtype: str = "",
         **fields) -> tuple[Graph, Layer]:
    """A one-layer graph; inputs as shape, or (shape, dtype) for constants."""
    tensors = []
    for place, entry in enumerate(inputs):
        constant = isinstance(entry[0], tuple)
        shape, kind = entry if constant else (entry, dtype)
        tensors.append(Tensor(name=f"t{place}", shape=shape, dtype=kind,
                              data=np.zeros(shape, kind) if constant else None))
    tensors.append(Tensor(name="y", shape=output, dtype=out_dtype or dtype))
    layer = Layer(index=0, name="y", op=op, inputs=tuple(range(len(inputs))),
                  outputs=(len(inputs),), **fields)
    return Graph(name=op, source="test", sha256="", tensors=tuple(tensors), layers=(layer,),
                 inputs=(0,), outputs=(len(inputs),)), layer


def weighted(op: str, rows: int, columns: int, channels: int, outputs: int, dtype: str = "int8",
             window: Window = SAME) -> tuple[Graph, Layer]:
    real = "float32" if dtype == "float32" else "int8"
    bias = {"float32": "float32", "int16": "int64"}.get(dtype, "int32")
    first, last = (1, outputs) if op == "depthwise_conv_2d" else (outputs, channels)
    groups = channels if op == "depthwise_conv_2d" else 1
    return make(op, [(1, rows, columns, channels), ((first, *window.kernel, last), real),
                     ((outputs,), bias)], (1, rows, columns, outputs), dtype, window=window,
                groups=groups)


def example(op: str, dtype: str = "int8") -> tuple[Graph, Layer]:
    real = "float32" if dtype == "float32" else "int8"
    bias = {"float32": "float32", "int16": "int64"}.get(dtype, "int32")
    image, line = (1, 6, 5, 4), (1, 120)
    if op in ("conv_2d", "depthwise_conv_2d"):
        return weighted(op, 6, 5, 4, 4, dtype)
    built = {
        "transpose_conv_2d": dict(inputs=[image, ((3, 2, 2, 4), real), ((3,), bias)],
                                  output=(1, 12, 10, 3), window=Window(kernel=(2, 2),
                                                                      stride=(2, 2))),
        "fully_connected": dict(inputs=[line, ((7, 120), real), ((7,), bias)], output=(1, 7)),
        "batch_matmul": dict(inputs=[(2, 3, 8), (2, 8, 5)], output=(2, 3, 5)),
        "average_pool_2d": dict(inputs=[image], output=(1, 3, 3, 4), window=POOL),
        "max_pool_2d": dict(inputs=[image], output=(1, 3, 3, 4), window=POOL),
        "mean": dict(inputs=[image], output=(1, 4), options=(("axes", (1, 2)),)),
        "reduce_max": dict(inputs=[image], output=(1, 6, 4), options=(("axes", (2,)),)),
        "concatenation": dict(inputs=[image, image], output=(1, 6, 5, 8),
                              options=(("axis", 3),)),
        "slice": dict(inputs=[image], output=(1, 3, 5, 2),
                      options=(("begin", (0, 1, 0, 2)), ("strides", (1, 2, 1, 1)))),
        "pad": dict(inputs=[image], output=(1, 8, 8, 4),
                    options=(("paddings", ((0, 0), (1, 1), (2, 1), (0, 0))),)),
        "transpose": dict(inputs=[image], output=(1, 4, 6, 5),
                          options=(("perm", (0, 3, 1, 2)),)),
        "resize_nearest": dict(inputs=[image], output=(1, 12, 10, 4)),
        "resize_bilinear": dict(inputs=[image], output=(1, 12, 10, 4)),
        "prelu": dict(inputs=[image, ((4,), real)], output=image),
        "quantize": dict(inputs=[image], output=image, out_dtype="int8"),
        "dequantize": dict(inputs=[image], output=image, out_dtype="float32"),
        "svdf": dict(inputs=[(1, 10), ((8, 10), real), ((8, 5), real)], output=(1, 4)),
        "lstm": dict(inputs=[(1, 5, 6), ((16, 6), real), ((16, 4), real)], output=(1, 5, 4)),
        "gru": dict(inputs=[(1, 5, 6), ((12, 6), real), ((12, 4), real)], output=(1, 5, 4)),
        "rnn": dict(inputs=[(1, 5, 6), ((4, 6), real), ((4, 4), real)], output=(1, 5, 4)),
        "detection_postprocess": dict(inputs=[(1, 30, 4), (1, 30, 6), ((30, 4), real)],
                                      output=(1, 5, 4)),
        "signal_filter_bank": dict(inputs=[(1, 120), ((60,), "int16")], output=(1, 30)),
        "non_max_suppression": dict(inputs=[(1, 30, 4), (1, 6, 30)], output=(12, 3)),
    }
    if op in ("add", "sub", "mul", "maximum", "minimum"):
        return make(op, [image, image], image, dtype)
    return make(op, dtype=dtype, **built.get(op, dict(inputs=[image], output=image)))
