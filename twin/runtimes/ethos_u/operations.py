"""Operations of an Ethos-U: shapes, blocks and formats, read from the registers they start with."""

from __future__ import annotations

from hwmodels.frozen import frozen
from twin.network.graph import RowsColumns
from twin.runtimes.ethos_u.commands import Command

BRICK = 16
"""Channels of a brick of the format NHCWB16."""

SUM = 2
"""Mode of a pooling that sums over depth, as a convolution does."""

_MICROBLOCKS = ((1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 4))
"""Height and width by the code of the register, Ethos-U85."""

_UNARY = (5, 6, 7, 36)
"""Element-wise modes of one operand: leaky ReLU, absolute value, leading zeros, not."""

_CHAINED, _NONE = 2, 3
_SCALAR_U55, _SCALAR_U85 = 0x80, 8

Shape = tuple[int, int, int]
"""Height, width and depth."""


@frozen
class Operand:
    """A feature map as an operation walks it.

    Parameters
    ----------
    region
        Base pointer it is relative to.
    shape
        Height, width, depth.
    bricks
        Whether it is in bricks of 16 channels (NHCWB16); otherwise NHWC.
    in_memory
        Whether it is read or written at all; a scalar, and what is chained, is not.
    apart
        Whether its pixels do not follow one another: it is some channels of a wider one.
    chained
        Whether it is read as the operation before writes it, from inside.
    """

    region: int
    shape: Shape
    bits: int
    bricks: bool
    in_memory: bool = True
    apart: bool = False
    chained: bool = False

    def count_bytes(self, height: int, width: int, depth: int) -> int:
        """Return the bytes of a part of it, whole bricks where it is in bricks."""
        deep = -(-depth // BRICK) * BRICK if self.bricks else depth
        return height * width * deep * self.bits // 8


@frozen
class Copy:
    """A copy of the DMA controller; a destination of None is inside the NPU."""

    offset: int
    source: int
    sink: int | None
    size_bytes: int


@frozen
class Operation:
    """What one operation asks of the NPU.

    Parameters
    ----------
    kind
        "conv", "depthwise", "pool", "elementwise" or "resize".
    mode, offset
        As of a `Command`.
    output
        Feature map it writes.
    inputs
        Those it reads, one or two.
    kernel, stride, dilation : tuple of (int, int)
        Height and width.
    padding : tuple of (int, int)
        Above and left.
    upscale
        1 or 2: how often an input row and column is taken.
    block, microblock
        Of the output; the depth of a microblock is that of one core.
    kernel_first
        Whether weights are ordered by kernel element before depth ("part kernel first").
    wide
        Whether sums have 40 or 48 bits.
    table
        Whether a look-up table follows.
    weight_region, scale_region
        Where both are read.
    weight_bytes, scale_bytes
        In one pass, compressed.
    blockdep
        Blocks of the operation before that may be unfinished when it starts.
    """

    kind: str
    mode: int
    offset: int
    output: Operand
    inputs: tuple[Operand, ...]
    kernel: RowsColumns
    stride: RowsColumns
    dilation: RowsColumns
    padding: RowsColumns
    upscale: int
    block: Shape
    microblock: Shape
    kernel_first: bool
    wide: bool
    table: bool
    weight_region: int
    scale_region: int
    weight_bytes: int
    scale_bytes: int
    blockdep: int

    @property
    def multiplies(self) -> bool:
        """Whether it takes weights."""
        return self.kind in ("conv", "depthwise")

    @property
    def over_depth(self) -> bool:
        """Whether an output element needs all channels of the input."""
        return self.kind == "conv" or (self.kind == "pool" and self.mode == SUM)

    @property
    def reach(self) -> RowsColumns:
        """Rows and columns a kernel spans."""
        return ((self.kernel[0] - 1) * self.dilation[0] + 1,
                (self.kernel[1] - 1) * self.dilation[1] + 1)

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        if not self.multiplies:
            return 0
        height, width, depth = self.output.shape
        taken = self.inputs[0].shape[2] if self.over_depth else 1
        return height * width * depth * self.kernel[0] * self.kernel[1] * taken


def read_copy(command: Command) -> Copy:
    """Return a copy as its registers state it."""
    get = command.get
    source, sink = get("dma0_src_region"), get("dma0_dst_region")
    size = get("dma0_len")
    for dimension in range(source >> 9 & 3):  # One and two more dimensions, Ethos-U65 and U85.
        size *= get(f"dma0_size{dimension}") or 1
    return Copy(offset=command.offset, source=source & 7, size_bytes=size,
                sink=None if sink >> 8 & 1 else sink & 7)


def read_operation(command: Command, config: str) -> Operation:
    """Return an operation as its registers state it.

    Parameters
    ----------
    command
        Any but a DMA.
    config
        "ethos-u55-128", ...
    """
    get, recent = command.get, config.startswith("ethos-u85")
    strides = get("kernel_stride")
    windowed = command.kind not in ("elementwise", "resize")
    kernel = (get("kernel_height_m1") + 1, get("kernel_width_m1") + 1) if windowed else (1, 1)
    stride = ((strides >> 1 & 1 | (strides >> 9 & 7) << 1) + 1,
              (strides & 1 | (strides >> 6 & 7) << 1) + 1) if windowed else (1, 1)
    dilation = ((strides >> 4 & 1) + 1, (strides >> 3 & 1) + 1) if windowed else (1, 1)
    output = _read_output(command, recent)
    upscale = 2 if get("ifm_upscale") & 3 else 1
    inputs = (_read_pair(command, output, recent) if command.kind == "elementwise" else (
        _read_input(command, output, kernel, stride, dilation, upscale, recent),))
    streams = ["weight_length", "weight1_length", *(
        ("length_93", "weight3_length") if recent else ())]
    scales = ["scale_length", *(() if recent else ("length_93",))]
    weighted = command.kind in ("conv", "depthwise")
    return Operation(
        kind=command.kind, mode=command.mode, offset=command.offset, output=output, inputs=inputs,
        kernel=kernel, stride=stride, dilation=dilation, upscale=upscale,
        padding=(get("ifm_pad_top"), get("ifm_pad_left")) if windowed else (0, 0),
        block=(get("ofm_blk_height_m1") + 1, get("ofm_blk_width_m1") + 1,
               get("ofm_blk_depth_m1") + 1),
        microblock=_read_microblock(command, config, output, kernel),
        kernel_first=bool(strides >> 2 & 1), wide=get("acc_format") & 3 == 1,
        table=get("activation") & 0x1F >= (1 if recent else 3),
        weight_region=get("weight_region") & 7, scale_region=get("scale_region") & 7,
        weight_bytes=sum(get(name) for name in streams) if weighted else 0,
        scale_bytes=sum(get(name) for name in scales) if weighted else 0,
        blockdep=get("blockdep"))


def _read_output(command: Command, recent: bool) -> Operand:
    get, precision = command.get, command.get("ofm_precision")
    return Operand(
        region=get("ofm_region") & 7, bits=8 << (precision >> 1 & 3),
        shape=(get("ofm_height_m1") + 1, get("ofm_width_m1") + 1, get("ofm_depth_m1") + 1),
        bricks=bool(precision >> 6 & 1),
        in_memory=not (recent and precision >> 14 in (_CHAINED, _NONE)),
        apart=_is_apart(command, "ofm", get("ofm_depth_m1") + 1, precision >> 1 & 3))


def _is_apart(command: Command, name: str, depth: int, precision: int) -> bool:
    return command.get(f"{name}_stride_x") not in (0, depth << precision)


def _is_chained(precision: int, recent: bool) -> bool:
    return recent and precision >> 14 == _CHAINED


def _read_input(command: Command, output: Operand, kernel: RowsColumns,
                stride: RowsColumns, dilation: RowsColumns, upscale: int,
                recent: bool) -> Operand:
    get, precision = command.get, command.get("ifm_precision")
    padding = (get("ifm_pad_top") + get("ifm_pad_bottom"),
               get("ifm_pad_left") + get("ifm_pad_right"))
    rows, columns = (
        -(-((size - 1) * step + (taps - 1) * apart + 1 - pad) // upscale) for
        size, step, taps, apart, pad in zip(output.shape, stride, kernel, dilation, padding,
                                            strict=False))
    if command.kind == "resize":
        rows, columns = get("ifm_height0_m1") + 1, get("ifm_width0_m1") + 1
    return Operand(
        region=get("ifm_region") & 7, shape=(max(1, rows), max(1, columns),
                                             get("ifm_depth_m1") + 1),
        bits=8 << (precision >> 2 & 3), bricks=bool(precision >> 6 & 1),
        in_memory=not _is_chained(precision, recent), chained=_is_chained(precision, recent),
        apart=_is_apart(command, "ifm", get("ifm_depth_m1") + 1, precision >> 2 & 3))


def _read_pair(command: Command, output: Operand, recent: bool) -> tuple[Operand, ...]:
    """Return the operands of an element-wise operation, which may be broadcast."""
    scalar = _SCALAR_U85 if recent else _SCALAR_U55
    found = []
    for name in ("ifm",) if command.mode in _UNARY else ("ifm", "ifm2"):
        precision = command.get(f"{name}_precision")
        wide = command.get(f"{name}_broadcast") if recent or name == "ifm2" else 0
        alone = wide & scalar != 0
        height, width, depth = (1 if wide >> bit & 1 and not alone else size
                                for bit, size in enumerate(output.shape))
        found.append(Operand(
            region=command.get(f"{name}_region") & 7, shape=(height, width, depth),
            bits=8 << (precision >> 2 & 3), bricks=bool(precision >> 6 & 1),
            in_memory=not (alone or _is_chained(precision, recent)),
            chained=not alone and _is_chained(precision, recent)))
    return tuple(found)


def _read_microblock(command: Command, config: str, output: Operand, kernel: RowsColumns) -> Shape:
    """Return the microblock: the U85's register says it, others have one by size.

    A U55 or U65 with two rows takes four columns of one row instead where the output has no other.
    """
    macs = int(config.rpartition("-")[2])
    if config.startswith("ethos-u85"):
        height, width = _MICROBLOCKS[min(command.get("acc_format") >> 8 & 7, 5)]
        return height, width, max(1, macs // 8 // (height * width))
    macs = min(macs, 256)  # Two cores of the U65 share the depth of a block.
    height, width = {32: (1, 1), 64: (1, 1), 128: (1, 2)}.get(macs, (2, 2))
    flat = output.shape[0] == 1 and output.shape[1] % 2 == 0 and kernel[0] == 1
    depth = macs // 8 // (height * width)
    return (1, 4, depth) if height == 2 and command.kind == "conv" and flat else (
        height, width, depth)
