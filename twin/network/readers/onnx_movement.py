"""ONNX operators that move data without computing: joined, cut, padded, reordered."""

from __future__ import annotations

from twin.network.graph import Options, Shape, options_of_slice
from twin.network.readers.onnx_layout import (
    CHANNELS_LAST,
    PLAIN,
    keeps_order,
    permutation,
    stored_axes,
    stored_shape,
)
from twin.network.readers.onnx_reader import OnnxReader
from twin.network.readers.refusal import UnsupportedError


def convert_concat(reader: OnnxReader) -> None:
    """Concat."""
    inputs, layout = reader.operands()
    reader.emit("concatenation", inputs, layout,
                axis=reader.stored_axis(reader.node.attributes["axis"], layout))


def convert_split(reader: OnnxReader) -> None:
    """Split: sizes follow from the outputs."""
    layout = reader.source_layout
    reader.emit("split", [reader.data(layout)], layout, outputs=reader.node.outputs,
                axis=reader.stored_axis(reader.node.option("axis", 0), layout))


def convert_identity(reader: OnnxReader) -> None:
    """Identity, and what is one here: the same values under another name."""
    layout = reader.source_layout
    reader.alias(reader.data(layout), layout)


def convert_gather(reader: OnnxReader) -> None:
    """Gather: indices of one dimension keep the layout."""
    node = reader.node
    moves = len(reader.kernel_shape) == 1 and not reader.is_constant(node.source)
    layout = reader.source_layout if moves else PLAIN
    indices = reader.plain(node.inputs[1])
    reader.emit("gather", [reader.data(layout), indices], layout,
                axis=reader.stored_axis(node.option("axis", 0), layout))


def convert_scattered(reader: OnnxReader, op: str) -> None:
    """Gather and scatter: reads or writes elements at places the data name."""
    others = [reader.plain(name) for name in reader.node.inputs[1:]]
    reader.emit(op, [reader.data(PLAIN), *others], PLAIN)


def convert_repetition(reader: OnnxReader, op: str) -> None:
    """Tile, Expand: repeats its input; nothing where it is one time."""
    shape, made = reader.source_shape, reader.result_shape
    if shape == made:
        convert_identity(reader)
        return
    layout = reader.source_layout if len(shape) == len(made) else PLAIN
    reader.emit(op, [reader.data(layout)], layout)


def convert_blocks(reader: OnnxReader, op: str) -> None:
    """SpaceToDepth, DepthToSpace: moves blocks of pixels into channels, or back."""
    node = reader.node
    options: Options = {"order": "crd"} if node.option("mode") == "CRD" else {}
    reader.emit(op, [reader.data(CHANNELS_LAST)], CHANNELS_LAST,
                block=node.attributes["blocksize"], **options)


def convert_slice(reader: OnnxReader) -> None:
    """Slice with constant bounds; nothing where all is taken."""
    shape = reader.source_shape
    if shape == reader.result_shape and min(reader.integers(4, "steps") or [1]) > 0:
        convert_identity(reader)
        return
    layout = reader.source_layout
    starts = reader.integers(1, "starts") or []
    axes = reader.integers(3, "axes") or list(range(len(starts)))
    steps = reader.integers(4, "steps") or [1] * len(starts)
    cuts = {reader.stored_axis(axis, layout):
            (min(max(start + shape[axis] * (start < 0), 0), shape[axis] - 1), step)
            for start, axis, step in zip(starts, axes, steps, strict=True)}
    rank = len(stored_axes(len(shape), layout))
    reader.emit("slice", [reader.data(layout)], layout, **options_of_slice(rank, cuts))


def convert_pad(reader: OnnxReader) -> None:
    """Pad by constant amounts."""
    node = reader.node
    rank = reader.rank
    layout = reader.source_layout
    amounts = reader.integers(1, "pads") or []
    axes = reader.integers(3, "") or list(range(rank))
    if any(amount < 0 for amount in amounts):
        raise UnsupportedError("negative amounts")
    paddings = [(0, 0)] * len(stored_axes(rank, layout))
    for number, axis in enumerate(axes):
        place = reader.stored_axis(axis, layout)
        paddings[place] = (amounts[number], amounts[number + len(axes)])
    mode = node.option("mode", "constant")
    given = reader.model.constants.get(node.input(2)) if node.input(2) else None
    value = node.option("value", 0.0) if given is None else float(given.reshape(-1)[0])
    reader.emit("pad", [reader.data(layout)], layout, value=float(value),
                paddings=tuple(paddings), mode="constant" if mode == "constant" else "mirror")


def convert_reshape(reader: OnnxReader) -> None:
    """Reshape, Flatten, Squeeze, Unsqueeze: an alias unless channels have to move first."""
    shape, made = reader.source_shape, reader.result_shape
    source = reader.source_layout
    if source == CHANNELS_LAST and not _same_order(shape, CHANNELS_LAST, PLAIN):
        if len(made) == 2 and made[0] == 1 and reader.feeds_products_only(reader.group.output):
            reader.set_flattened(shape[1:])
        else:
            source = PLAIN
    target = PLAIN
    if len(made) == 4 and _same_order(made, PLAIN, CHANNELS_LAST):
        target = CHANNELS_LAST
    data = reader.data(source)
    if stored_shape(shape, source) == stored_shape(made, target):
        reader.alias(data, target)
    else:
        reader.emit("reshape", [data], target)


def _same_order(shape: Shape, before: str, after: str) -> bool:
    if len(shape) not in (3, 4):
        return True
    bare = tuple(shape[axis] for axis in stored_axes(len(shape), before) if axis >= 0)
    return keeps_order(bare, permutation(shape, before, after))


def convert_transpose(reader: OnnxReader) -> None:
    """Transpose: nothing where stored channels last makes it so, an alias, or a real one."""
    shape, made, rank = reader.source_shape, reader.result_shape, reader.rank
    perm = reader.node.option("perm", list(range(rank))[::-1])
    source = reader.source_layout
    data = reader.data(source)
    before = [axis for axis in stored_axes(rank, source) if axis >= 0]
    bare = tuple(shape[axis] for axis in before)
    wanted = {layout: tuple(before.index(perm[axis]) for axis in stored_axes(rank, layout)
                            if axis >= 0)
              for layout in ((PLAIN, CHANNELS_LAST) if rank in (3, 4) else (PLAIN,))}
    for layout, order in wanted.items():
        if keeps_order(bare, order) and stored_shape(made, layout) == stored_shape(shape, source):
            reader.alias(data, layout)
            return
    for layout, order in wanted.items():
        if keeps_order(bare, order):
            reader.emit("reshape", [data], layout)
            return
    if source == CHANNELS_LAST and rank == 3:
        source = PLAIN
        data = reader.data(PLAIN)
        wanted[PLAIN] = tuple(perm)
    reader.emit("transpose", [data], source, perm=wanted[source])
