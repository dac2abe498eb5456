"""Normalisation of rows: softmax, its logarithm, unit length.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: softmax.h, log_softmax.h,
l2normalization.h; quantization_util.cc, CalculateInputRadius.
"""

from __future__ import annotations

import math

from twin.network.graph import GraphLayer, Tensor
from twin.network.operators import Form, list_form
from twin.runtimes.counted.work import Terms, Work

REACH = 31.0
"""Difference of logits the fixed-point exponential of 8-bit softmax represents at most (5 bits)."""

LEVELS = 255
"""Steps between the least and the largest 8-bit logit."""


def describe_rows(step: GraphLayer) -> Work:
    """Return the work of normalising each row of the last dimension."""
    source, target = step.ends
    types = source.dtype if source.dtype == target.dtype else f"{source.dtype} {target.dtype}"
    rows, width = source.rows, source.channels
    share, share_error = find_near_share(source, float(step.option("beta", 1.0))) \
        if step.op == "softmax" else (1.0, True)
    near = rows * (1 + (width - 1) * share)
    guessed = "" if share_error else "logits taken to be even below the largest"
    return Work(variant=types, guessed=guessed, terms={
        "call": 1, "row": rows, "element": source.elements, "near": near,
        "dimension": len(source.shape)})


def find_near_share(logits: Tensor, beta: float) -> tuple[float, bool]:
    """Return how many logits lie near enough to the largest to count, and whether all must.

    Notes
    -----
    8-bit softmax skips logits further below the largest than its exponential represents: 31 times
    the mantissa, in [0.5, 1), of the scale. Within 255 steps none can be; beyond, the share is
    that of logits spread evenly below the largest (assumed: it depends on the data).
    """
    if logits.dtype not in ("int8", "uint8") or logits.quantization is None:
        return 1.0, True
    scale = logits.quantization.scales[0] * beta
    reach = REACH * math.frexp(scale)[0] / scale
    return (1.0, True) if reach >= LEVELS else (reach / LEVELS, False)


FAMILY = "softmax"

TERMS: Terms = dict.fromkeys(list_form(Form.ROWS), describe_rows)
