"""ONNX operators that move data without computing: joined, cut, padded, reordered."""

from __future__ import annotations

from typing import Any

from twin.network.graph import Shape
from twin.network.readers.onnx_fusion import Group
from twin.network.readers.onnx_layout import (
    CHANNELS_LAST,
    PLAIN,
    keeps_order,
    permutation,
    stored_axes,
    stored_axis,
    stored_shape,
)
from twin.network.readers.onnx_values import OnnxReader
from twin.network.readers.refusal import UnsupportedError


def convert_concat(reader: OnnxReader, group: Group) -> None:
    """Concat."""
    node = group.node
    rank = len(reader.shape(group.output))
    computed = [name for name in node.inputs if not reader.is_constant(name)]
    last = any(reader.layout(name) == CHANNELS_LAST for name in computed)
    layout = CHANNELS_LAST if last else PLAIN
    inputs = [reader.operand(group, place, layout, rank) for place in range(len(node.inputs))]
    reader.emit(group, "concatenation", inputs, layout,
                axis=stored_axis(node.attributes["axis"], rank, layout))


def convert_split(reader: OnnxReader, group: Group) -> None:
    """Split: sizes follow from the outputs."""
    node = group.node
    layout = reader.layout(node.source)
    rank = len(reader.shape(node.source))
    reader.emit(group, "split", [reader.data(group, 0, layout)], layout, outputs=node.outputs,
                axis=stored_axis(node.option("axis", 0), rank, layout))


def convert_identity(reader: OnnxReader, group: Group) -> None:
    """Identity, and what is one here: the same values under another name."""
    layout = reader.layout(group.node.source)
    reader.alias(group, reader.data(group, 0, layout), layout)


def convert_gather(reader: OnnxReader, group: Group) -> None:
    """Gather: indices of one dimension keep the layout."""
    node = group.node
    rank, picks = (len(reader.shape(name)) for name in node.inputs[:2])
    layout = reader.layout(node.source) if picks == 1 else PLAIN
    axis = node.option("axis", 0)
    if reader.is_constant(node.source):
        layout = PLAIN
    indices = reader.plain(node.inputs[1])
    reader.emit(group, "gather", [reader.data(group, 0, layout), indices], layout,
                axis=stored_axis(axis, rank, layout))


def convert_scattered(reader: OnnxReader, group: Group, op: str) -> None:
    """Gather and scatter: reads or writes elements at places the data name."""
    others = [reader.plain(name) for name in group.node.inputs[1:]]
    reader.emit(group, op, [reader.data(group, 0, PLAIN), *others], PLAIN)


def convert_repetition(reader: OnnxReader, group: Group, op: str) -> None:
    """Tile, Expand: repeats its input; nothing where it is one time."""
    name = group.node.source
    shape, made = reader.shape(name), reader.shape(group.output)
    if shape == made:
        convert_identity(reader, group)
        return
    layout = reader.layout(name) if len(shape) == len(made) else PLAIN
    reader.emit(group, op, [reader.data(group, 0, layout)], layout)


def convert_blocks(reader: OnnxReader, group: Group, op: str) -> None:
    """SpaceToDepth, DepthToSpace: moves blocks of pixels into channels, or back."""
    node = group.node
    options: dict[str, Any] = {"order": "crd"} if node.option("mode") == "CRD" else {}
    reader.emit(group, op, [reader.data(group, 0, CHANNELS_LAST)], CHANNELS_LAST,
                block=node.attributes["blocksize"], **options)


def convert_slice(reader: OnnxReader, group: Group) -> None:
    """Slice with constant bounds; nothing where all is taken."""
    node = group.node
    shape = reader.shape(node.source)
    if shape == reader.shape(group.output) and min(reader.integers(node, 4, "steps") or [1]) > 0:
        convert_identity(reader, group)
        return
    layout = reader.layout(node.source)
    starts = reader.integers(node, 1, "starts") or []
    axes = reader.integers(node, 3, "axes") or list(range(len(starts)))
    steps = reader.integers(node, 4, "steps") or [1] * len(starts)
    begin = [0] * len(stored_axes(len(shape), layout))
    strides = [1] * len(begin)
    for start, axis, step in zip(starts, axes, steps, strict=True):
        size = shape[axis]
        start = start + size if start < 0 else start
        place = stored_axis(axis, len(shape), layout)
        begin[place], strides[place] = min(max(start, 0), size - 1), step
    reader.emit(group, "slice", [reader.data(group, 0, layout)], layout, begin=tuple(begin),
                strides=tuple(strides))


def convert_pad(reader: OnnxReader, group: Group) -> None:
    """Pad by constant amounts."""
    node = group.node
    rank = len(reader.shape(node.source))
    layout = reader.layout(node.source)
    amounts = reader.integers(node, 1, "pads") or []
    axes = reader.integers(node, 3, "") or list(range(rank))
    if any(amount < 0 for amount in amounts):
        raise UnsupportedError("negative amounts")
    paddings = [(0, 0)] * len(stored_axes(rank, layout))
    for number, axis in enumerate(axes):
        place = stored_axis(axis, rank, layout)
        paddings[place] = (amounts[number], amounts[number + len(axes)])
    mode = node.option("mode", "constant")
    given = reader.model.constants.get(node.input(2)) if node.input(2) else None
    value = node.option("value", 0.0) if given is None else float(given.reshape(-1)[0])
    reader.emit(group, "pad", [reader.data(group, 0, layout)], layout, value=float(value),
                paddings=tuple(paddings), mode="constant" if mode == "constant" else "mirror")


def convert_reshape(reader: OnnxReader, group: Group) -> None:
    """Reshape, Flatten, Squeeze, Unsqueeze: an alias unless channels have to move first."""
    name = group.node.source
    shape, made = reader.shape(name), reader.shape(group.output)
    source = reader.layout(name)
    if source == CHANNELS_LAST and not _same_order(shape, CHANNELS_LAST, PLAIN):
        if len(made) == 2 and made[0] == 1 and reader.feeds_products_only(group.output):
            reader.set_flattened(group, shape[1:])
        else:
            source = PLAIN
    target = PLAIN
    if len(made) == 4 and _same_order(made, PLAIN, CHANNELS_LAST):
        target = CHANNELS_LAST
    data = reader.data(group, 0, source)
    if stored_shape(shape, source) == stored_shape(made, target):
        reader.alias(group, data, target)
    else:
        reader.emit(group, "reshape", [data], target)


def _same_order(shape: Shape, before: str, after: str) -> bool:
    if len(shape) not in (3, 4):
        return True
    bare = tuple(shape[axis] for axis in stored_axes(len(shape), before) if axis >= 0)
    return keeps_order(bare, permutation(shape, before, after))


def convert_transpose(reader: OnnxReader, group: Group) -> None:
    """Transpose: nothing where stored channels last makes it so, an alias, or a real one."""
    name = group.node.source
    shape, made = reader.shape(name), reader.shape(group.output)
    rank = len(shape)
    perm = group.node.option("perm", list(range(rank))[::-1])
    source = reader.layout(name)
    data = reader.data(group, 0, source)
    before = [axis for axis in stored_axes(rank, source) if axis >= 0]
    bare = tuple(shape[axis] for axis in before)
    wanted = {layout: tuple(before.index(perm[axis]) for axis in stored_axes(rank, layout)
                            if axis >= 0)
              for layout in ((PLAIN, CHANNELS_LAST) if rank in (3, 4) else (PLAIN,))}
    for layout, order in wanted.items():
        if keeps_order(bare, order) and stored_shape(made, layout) == stored_shape(shape, source):
            reader.alias(group, data, layout)
            return
    for layout, order in wanted.items():
        if keeps_order(bare, order):
            reader.emit(group, "reshape", [data], layout)
            return
    if source == CHANNELS_LAST and rank == 3:
        source = PLAIN
        data = reader.data(group, 0, PLAIN)
        wanted[PLAIN] = tuple(perm)
    reader.emit(group, "transpose", [data], source, perm=wanted[source])
