"""Which layers ESP-DL divides between two cores (`RUNTIME_MODE_MULTI_CORE`), and where.

References
----------
espressif/esp-dl 12c0616d: ConvOpArgs of esp-dl/dl/base/dl_base.hpp; sums, products, pools and
activations get one task there ("todo: support two core"), rows of a matrix product are one line.
"""

from __future__ import annotations

from twin.network.graph import GraphLayer
from twin.network.operators import OPERATORS
from twin.runtimes.lowering.geometry import read_geometry

_WINDOWS = 4
"""Windows an input must be taller than."""


def share_rows(site: GraphLayer) -> float:
    """Return the larger part of a layer's output rows that one of two cores computes; 1: all."""
    if not OPERATORS[site.op].is_convolution:
        return 1.0
    shape = read_geometry(site)
    kernel, step = shape.kernel_rows, shape.window.dilation[0]
    if shape.input_rows <= _WINDOWS * step * kernel:
        return 1.0
    padded = shape.input_rows + sum(shape.window.padding[:2])
    first = (padded - step * (kernel - 1) - 1) // shape.window.stride[0] // 2 + 1
    return max(first, shape.output_rows - first) / shape.output_rows
