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

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    MVE,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
)
from twin.runtimes.cmsis_nn.libc import copy_blocks, copy_moves, fill_blocks, fill_moves
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.lowering import Site

_CAUSE = "data_copy"

_ELEMENT = {
    "thumb2": "ldrb r3, [r1]; adds r2, #1; strb r3, [r0], #1; add r1, r6; cmp r2, r5; bne 0b",
    "thumb1": "ldrb r3, [r1]; adds r2, #1; strb r3, [r0]; adds r0, #1; adds r1, r1, r6;"
              "cmp r2, r5; bne 0b",
    "rv32": "lbu a3, 0(a1); addi a2, a2, 1; sb a3, 0(a0); addi a0, a0, 1; add a1, a1, a6;"
            "bne a2, a5, 0b",
}
_ELEMENT["dsp"] = _ELEMENT["thumb2"]


def _runs(dialect: str, size_bytes: int, count: int) -> tuple[Block, ...]:
    """Blocks of `count` copies with the loop around them."""
    return (block("run", join(bookkeeping(dialect, 3, 1, 6), BRANCH[dialect]), count,
                  min(1, count), _CAUSE), *copy_blocks(dialect, size_bytes, count))


def lower_copy(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a copy or a reshape that cannot share memory: one memcpy."""
    dialect = choose_dialect(site.isa)
    size_bytes = graph.tensors[layer.outputs[0]].size_bytes
    return (build_kernel(
        "arm_reshape_s8", "data_movement", site,
        (entry(dialect, 20, 1), *copy_blocks(dialect, size_bytes, 1)),
        resolve(*copy_moves(dialect, size_bytes, load("input", 1), store("output", 1))),
        assumed=site.isa == MVE),)


def lower_concatenation(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a concatenation: of each input, one run of bytes per outer index.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `concatenation` with option `axis`.
    site : Site
        Operands: input, input2, ..., output.
    """
    dialect = choose_dialect(site.isa)
    output = graph.tensors[layer.outputs[0]]
    axis = layer.option("axis", len(output.shape) - 1)
    outer = math.prod(output.shape[:axis])
    stride = math.prod(output.shape[axis:])
    blocks: list[Block] = [entry(dialect, 30, len(layer.inputs))]
    drafts: list[Any] = []
    start = 0
    for place, tensor_id in enumerate(layer.inputs):
        run = math.prod(graph.tensors[tensor_id].shape[axis:])
        name = "input" if place == 0 else f"input{place + 1}"
        blocks += _runs(dialect, run, outer)
        drafts.append(repeat("outer", outer, *copy_moves(
            dialect, run, load(name, 1, outer=run), store("output", 1, start, outer=stride))))
        start += run
    suffix = "wxyz"[(axis - len(output.shape)) % 4] if len(output.shape) <= 4 else "w"
    return (build_kernel(f"arm_concatenation_s8_{suffix}", "data_movement", site, tuple(blocks),
                         resolve(*drafts), assumed=site.isa == MVE),)


def lower_pad(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower padding: rows of the input copied, everything around them filled.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `pad` with option `paddings`, (before, after) by axis.
    site : Site
        Operands: input, output.
    """
    dialect = choose_dialect(site.isa)
    source, target = (graph.tensors[i].shape for i in (layer.inputs[0], layer.outputs[0]))
    paddings = layer.option("paddings", ((0, 0),) * len(source))
    whole = len(source)
    while whole > 1 and source[whole - 1] == target[whole - 1]:
        whole -= 1  # axes from `whole` on are contiguous in both
    run = math.prod(source[whole - 1:])
    outer = source[:whole - 1]
    steps_in, steps_out = _steps(source, whole - 1), _steps(target, whole - 1)
    first = sum(before * step for (before, _), step in zip(
        paddings, _all_steps(target), strict=True))
    names = [f"axis{i}" for i in range(len(outer))]
    draft: Any = copy_moves(
        dialect, run, load("input", 1, 0, **dict(zip(names, steps_in, strict=True))),
        store("output", 1, first, **dict(zip(names, steps_out, strict=True))))
    for name, extent in reversed(list(zip(names, outer, strict=True))):
        draft = (repeat(name, extent, *draft),)
    filled = math.prod(target) - math.prod(source)
    blocks = (entry(dialect, 60, 1), *_runs(dialect, run, math.prod(outer)),
              *fill_blocks(dialect, filled, 1 if filled else 0))
    around = fill_moves(dialect, filled, store("output", 1)) if filled else ()
    return (build_kernel("arm_pad_s8", "data_movement", site, blocks, resolve(*around, *draft),
                         assumed=site.isa == MVE),)


def _all_steps(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[i + 1:]) for i in range(len(shape))]


def _steps(shape: tuple[int, ...], count: int) -> list[int]:
    return _all_steps(shape)[:count]


def lower_transpose(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a transposition: output written in order, input read with strides, byte by byte.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `transpose` with option `perm`.
    site : Site
        Operands: input, output.
    """
    dialect = choose_dialect(site.isa)
    source, target = (graph.tensors[i].shape for i in (layer.inputs[0], layer.outputs[0]))
    perm = layer.option("perm", tuple(reversed(range(len(source)))))
    steps_in = [_all_steps(source)[axis] for axis in perm]
    names = [f"axis{i}" for i in range(len(target))]
    draft: Any = (load("input", 1, **dict(zip(names, steps_in, strict=True))),
                  store("output", 1, **dict(zip(names, _all_steps(target), strict=True))))
    for name, extent in reversed(list(zip(names, target, strict=True))):
        draft = (repeat(name, extent, *draft),)
    count = math.prod(target)
    rows = count // target[-1]
    blocks = (
        entry(dialect, 60, 1),
        block("row", join(bookkeeping(dialect, 3, 1, 5), BRANCH[dialect]), rows, 1, _CAUSE),
        block("element", _ELEMENT[dialect], count, rows, _CAUSE))
    return (build_kernel("arm_transpose_s8", "data_movement", site, blocks, resolve(*draft),
                         assumed=site.isa == MVE),)
