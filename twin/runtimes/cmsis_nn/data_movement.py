"""Operators that only move int8 data: runs of contiguous bytes through memcpy, or one by one.

On a core with MVE the scalar copies stand in for the vector ones, and the kernels say assumed.

References
----------
ARM-software/CMSIS-NN 6.0, Source: ConcatenationFunctions, PadFunctions/arm_pad_s8.c,
ReshapeFunctions/arm_reshape_s8.c, TransposeFunctions/arm_transpose_s8.c.
"""

from __future__ import annotations

import math
from typing import Any

from hwmodels.kernel import Blocks, Lowered
from twin.runtimes.cmsis_nn.sequences import CODE, bookkeeping, entry
from twin.runtimes.lowering import Kernels, Lowering, Site, has_extension
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join, plain
from twin.runtimes.lowering.libc import (
    copy_blocks,
    copy_moves,
    fill_blocks,
    fill_moves,
    run_drafts,
    split_runs,
)
from twin.runtimes.lowering.nests import by_axis, closing, load, over_axes, store, strides

_CODE = CODE["data_movement"]

_CAUSE = "data_copy"


def _build(name: str, site: Site, *drafts: Any) -> Lowered:
    return (draft_kernel(name, "data_movement", site, *drafts,
                         assumed=has_extension(site.isa, "mve")),)


def _runs(dialect: str, size_bytes: int, count: int) -> Blocks:
    """Blocks of `count` copies with the loop around them."""
    return (block("run", join(bookkeeping(dialect, 3, 1, 6), BRANCH[dialect]), count,
                  min(1, count), _CAUSE), *copy_blocks(dialect, size_bytes, count))


def _lower_copy(site: Site) -> Lowered:
    """Lower a copy or a reshape that cannot share memory: one memcpy."""
    dialect = site.dialect
    size_bytes = site.output.size_bytes
    return _build("arm_reshape_s8", site,
                  entry(dialect, 20, 1), *copy_blocks(dialect, size_bytes, 1),
                  *copy_moves(dialect, size_bytes, load("input", 1), store("output", 1)))


def _lower_concatenation(site: Site) -> Lowered:
    """Lower a concatenation: of each input, one run of bytes per outer index."""
    dialect = site.dialect
    output = site.shape
    axis = site.layer.option("axis", len(output) - 1)
    parts = [tensor.shape for tensor in site.reads]
    outer, runs = split_runs(parts, output, axis)
    blocks = [entry(dialect, 30, len(parts))]
    for run in runs:
        blocks += _runs(dialect, run, outer)
    suffix = "wxyz"[(axis - len(output)) % 4] if len(output) <= 4 else "w"
    return _build(f"arm_concatenation_s8_{suffix}", site, *blocks,
                  *run_drafts(dialect, outer, runs, joined=True))


def _lower_pad(site: Site) -> Lowered:
    """Lower padding: rows of the input copied, everything around them filled."""
    dialect = site.dialect
    source, target = (tensor.shape for tensor in site.ends)
    paddings = site.layer.option("paddings", ((0, 0),) * len(source))
    whole = len(source)
    while whole > 1 and source[whole - 1] == target[whole - 1]:
        whole -= 1  # axes from `whole` on are contiguous in both
    run, outer = math.prod(source[whole - 1:]), source[:whole - 1]
    first = sum(before * step for (before, _), step in zip(paddings, strides(target), strict=True))
    filled = math.prod(target) - math.prod(source)
    return _build(
        "arm_pad_s8", site,
        entry(dialect, 60, 1), *_runs(dialect, run, math.prod(outer)),
        *fill_blocks(dialect, filled, 1 if filled else 0),
        *(fill_moves(dialect, filled, store("output", 1)) if filled else ()),
        *over_axes(outer, *copy_moves(dialect, run, load("input", 1, **by_axis(strides(source))),
                                      store("output", 1, first, **by_axis(strides(target))))))


def _lower_transpose(site: Site) -> Lowered:
    """Lower a transposition: output written in order, input read with strides, byte by byte."""
    dialect = site.dialect
    source, target = (tensor.shape for tensor in site.ends)
    perm = site.layer.option("perm", tuple(reversed(range(len(source)))))
    steps = strides(source)
    rows = math.prod(target[:-1])
    return _build(
        "arm_transpose_s8", site,
        entry(dialect, 60, 1),
        block("row", join(bookkeeping(dialect, 3, 1, 5), BRANCH[dialect]), rows, 1, _CAUSE),
        *over_axes(target, closing("element", _CODE.element[plain(dialect)], _CAUSE),
                   load("input", 1, **by_axis(steps[axis] for axis in perm)),
                   store("output", 1, **by_axis(strides(target)))))


KERNELS: Kernels = {
    "concatenation": {"c": Lowering(lower=_lower_concatenation)},
    "copy": {"c": Lowering(lower=_lower_copy)},
    "pad": {"c": Lowering(lower=_lower_pad)},
    "reshape": {"c": Lowering(lower=_lower_copy)},
    "transpose": {"c": Lowering(lower=_lower_transpose)},
}
