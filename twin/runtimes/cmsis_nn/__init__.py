"""Arm CMSIS-NN int8 kernels: how each operator becomes instructions and accesses.

Operators that are not here have no CMSIS-NN function; a runtime falls back to its portable
reference kernels for them, as TFLite Micro does.
"""

from __future__ import annotations

from collections.abc import Mapping

from twin.runtimes.cmsis_nn.conv import lower_conv, scratch_bytes_conv
from twin.runtimes.cmsis_nn.data_movement import (
    lower_concatenation,
    lower_copy,
    lower_pad,
    lower_transpose,
)
from twin.runtimes.cmsis_nn.depthwise import lower_depthwise, scratch_bytes_depthwise
from twin.runtimes.cmsis_nn.elementwise import lower_add, lower_mul
from twin.runtimes.cmsis_nn.fully_connected import (
    lower_batch_matmul,
    lower_fully_connected,
    scratch_bytes_fully_connected,
)
from twin.runtimes.cmsis_nn.pool import (
    lower_average_pool,
    lower_max_pool,
    scratch_bytes_average_pool,
)
from twin.runtimes.cmsis_nn.recurrent import (
    lower_lstm,
    lower_svdf,
    scratch_bytes_lstm,
    scratch_bytes_svdf,
)
from twin.runtimes.cmsis_nn.softmax import lower_softmax
from twin.runtimes.cmsis_nn.transpose_conv import (
    lower_transpose_conv,
    scratch_bytes_transpose_conv,
)
from twin.runtimes.lowering import Lowering, no_scratch

LIBRARY: Mapping[str, Lowering] = {
    "add": Lowering(lower=lower_add, scratch_bytes=no_scratch),
    "average_pool_2d": Lowering(
        lower=lower_average_pool, scratch_bytes=scratch_bytes_average_pool),
    "batch_matmul": Lowering(lower=lower_batch_matmul, scratch_bytes=no_scratch),
    "concatenation": Lowering(lower=lower_concatenation, scratch_bytes=no_scratch),
    "conv_2d": Lowering(lower=lower_conv, scratch_bytes=scratch_bytes_conv),
    "copy": Lowering(lower=lower_copy, scratch_bytes=no_scratch),
    "depthwise_conv_2d": Lowering(lower=lower_depthwise, scratch_bytes=scratch_bytes_depthwise),
    "fully_connected": Lowering(
        lower=lower_fully_connected, scratch_bytes=scratch_bytes_fully_connected),
    "gru": Lowering(lower=lower_lstm, scratch_bytes=scratch_bytes_lstm),
    "lstm": Lowering(lower=lower_lstm, scratch_bytes=scratch_bytes_lstm),
    "max_pool_2d": Lowering(lower=lower_max_pool, scratch_bytes=no_scratch),
    "mul": Lowering(lower=lower_mul, scratch_bytes=no_scratch),
    "pad": Lowering(lower=lower_pad, scratch_bytes=no_scratch),
    "reshape": Lowering(lower=lower_copy, scratch_bytes=no_scratch),
    "softmax": Lowering(lower=lower_softmax, scratch_bytes=no_scratch),
    "svdf": Lowering(lower=lower_svdf, scratch_bytes=scratch_bytes_svdf),
    "transpose": Lowering(lower=lower_transpose, scratch_bytes=no_scratch),
    "transpose_conv_2d": Lowering(
        lower=lower_transpose_conv, scratch_bytes=scratch_bytes_transpose_conv),
}
"""Lowering by canonical operator."""
