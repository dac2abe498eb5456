"""Arm CMSIS-NN int8 kernels: how each operator becomes instructions and accesses.

Operators that are not here have no CMSIS-NN function; a runtime falls back to its portable
reference kernels for them, as TFLite Micro does.
"""

from __future__ import annotations

from collections.abc import Mapping

from twin.runtimes.cmsis_nn.conv import lower_conv, scratch_bytes_conv
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
from twin.runtimes.cmsis_nn.softmax import lower_softmax
from twin.runtimes.lowering import Lowering, no_scratch

LIBRARY: Mapping[str, Lowering] = {
    "add": Lowering(lower=lower_add, scratch_bytes=no_scratch),
    "average_pool_2d": Lowering(
        lower=lower_average_pool, scratch_bytes=scratch_bytes_average_pool),
    "batch_matmul": Lowering(lower=lower_batch_matmul, scratch_bytes=no_scratch),
    "conv_2d": Lowering(lower=lower_conv, scratch_bytes=scratch_bytes_conv),
    "depthwise_conv_2d": Lowering(lower=lower_depthwise, scratch_bytes=scratch_bytes_depthwise),
    "fully_connected": Lowering(
        lower=lower_fully_connected, scratch_bytes=scratch_bytes_fully_connected),
    "max_pool_2d": Lowering(lower=lower_max_pool, scratch_bytes=no_scratch),
    "mul": Lowering(lower=lower_mul, scratch_bytes=no_scratch),
    "softmax": Lowering(lower=lower_softmax, scratch_bytes=no_scratch),
}
"""Lowering by canonical operator."""
