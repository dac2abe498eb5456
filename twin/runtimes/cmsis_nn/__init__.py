"""Arm CMSIS-NN int8 kernels: how each operator becomes instructions and accesses."""

from __future__ import annotations

from collections.abc import Mapping

from twin.runtimes.cmsis_nn.conv import lower_conv, scratch_bytes_conv
from twin.runtimes.cmsis_nn.depthwise import lower_depthwise, scratch_bytes_depthwise
from twin.runtimes.lowering import Lowering

LIBRARY: Mapping[str, Lowering] = {
    "conv_2d": Lowering(lower=lower_conv, scratch_bytes=scratch_bytes_conv),
    "depthwise_conv_2d": Lowering(
        lower=lower_depthwise, scratch_bytes=scratch_bytes_depthwise),
}
"""Lowering by canonical operator."""
