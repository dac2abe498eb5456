"""Portable reference kernels in plain C, int8 and float: how each operator becomes instructions.

Structure: TFLite Micro's reference kernels, one loop nest per operator and no use of packed or
vector instructions. Shapes are taken as local variables, as in a plain C function; TFLite Micro
re-reads them from memory where the compiler cannot prove them constant, which costs its
convolutions with few input channels up to 40 % more instructions.
"""

from __future__ import annotations

from collections.abc import Mapping

from twin.runtimes.lowering import Lowering, no_scratch
from twin.runtimes.reference.data_movement import (
    lower_concatenation,
    lower_copy,
    lower_pad,
    lower_resize_bilinear,
    lower_resize_nearest,
    lower_slice,
    lower_split,
    lower_transpose,
)
from twin.runtimes.reference.elementwise import (
    lower_add,
    lower_dequantize,
    lower_logistic,
    lower_maximum,
    lower_mul,
    lower_prelu,
    lower_quantize,
    lower_relu,
)
from twin.runtimes.reference.pool import (
    lower_average_pool,
    lower_max_pool,
    lower_mean,
    lower_reduce_max,
)
from twin.runtimes.reference.products import lower_batch_matmul, lower_fully_connected
from twin.runtimes.reference.recurrent import (
    lower_recurrent,
    lower_svdf,
    scratch_bytes_recurrent,
    scratch_bytes_svdf,
)
from twin.runtimes.reference.softmax import lower_softmax
from twin.runtimes.reference.transpose_conv import (
    lower_transpose_conv,
    scratch_bytes_transpose_conv,
)
from twin.runtimes.reference.windows import lower_conv, lower_depthwise

LIBRARY: Mapping[str, Lowering] = {
    name: Lowering(lower=lower, scratch_bytes=no_scratch) for name, lower in (
        ("add", lower_add), ("sub", lower_add), ("mul", lower_mul),
        ("maximum", lower_maximum), ("minimum", lower_maximum),
        ("average_pool_2d", lower_average_pool), ("max_pool_2d", lower_max_pool),
        ("mean", lower_mean), ("reduce_max", lower_reduce_max),
        ("batch_matmul", lower_batch_matmul), ("fully_connected", lower_fully_connected),
        ("concatenation", lower_concatenation), ("split", lower_split), ("slice", lower_slice),
        ("pad", lower_pad), ("transpose", lower_transpose), ("reshape", lower_copy),
        ("copy", lower_copy), ("resize_nearest", lower_resize_nearest),
        ("resize_bilinear", lower_resize_bilinear), ("conv_2d", lower_conv),
        ("depthwise_conv_2d", lower_depthwise), ("softmax", lower_softmax),
        ("relu", lower_relu), ("relu6", lower_relu), ("leaky_relu", lower_relu),
        ("prelu", lower_prelu), ("logistic", lower_logistic), ("tanh", lower_logistic),
        ("hard_swish", lower_logistic), ("quantize", lower_quantize),
        ("dequantize", lower_dequantize))
} | {
    "transpose_conv_2d": Lowering(
        lower=lower_transpose_conv, scratch_bytes=scratch_bytes_transpose_conv),
    "svdf": Lowering(lower=lower_svdf, scratch_bytes=scratch_bytes_svdf),
    "lstm": Lowering(lower=lower_recurrent, scratch_bytes=scratch_bytes_recurrent),
    "gru": Lowering(lower=lower_recurrent, scratch_bytes=scratch_bytes_recurrent),
}
"""Lowering by canonical operator; each accepts int8, int16 and float32 activations."""
