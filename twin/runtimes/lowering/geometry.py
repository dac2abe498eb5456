"""Shapes of a layer as kernels see them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hwmodels.frozen import frozen
from twin.network.graph import GraphLayer, Layer, Shape, Window
from twin.runtimes.lowering.nests import Bound, Move, bound, load, repeat


@frozen
class Geometry:
    """Extents of a windowed operator in NHWC: input, output, window.

    Parameters
    ----------
    window
        Kernel, stride, dilation, padding.
    has_bias
        Whether a bias is read.
    """

    batches: int
    input_rows: int
    input_columns: int
    input_channels: int
    output_rows: int
    output_columns: int
    output_channels: int
    window: Window
    has_bias: bool

    @property
    def pixels(self) -> int:
        """Output positions of one batch."""
        return self.output_rows * self.output_columns

    @property
    def kernel_rows(self) -> int:
        """Rows of the window."""
        return self.window.kernel[0]

    @property
    def kernel_columns(self) -> int:
        """Columns of the window."""
        return self.window.kernel[1]

    @property
    def window_taps(self) -> int:
        """Elements of the window in one channel."""
        return self.kernel_rows * self.kernel_columns

    @property
    def row_taps(self) -> tuple[int, ...]:
        """Window rows inside the input, by output row."""
        return list_taps(self.window, (0, self.input_rows), (0, self.output_rows), 0)

    @property
    def column_taps(self) -> tuple[int, ...]:
        """Window columns inside the input, by output column."""
        return list_taps(self.window, (0, 0, self.input_columns), (0, 0, self.output_columns), 1)

    @property
    def taps_inside(self) -> int:
        """Window positions inside the input over all output positions of one batch."""
        return sum(self.row_taps) * sum(self.column_taps)

    @property
    def taps(self) -> int:
        """Window positions over all output positions of one batch, padding included."""
        return self.pixels * self.window_taps

    @property
    def window_rows(self) -> int:
        """Window rows inside the input over all output positions of one batch."""
        return sum(self.row_taps) * self.output_columns

    @property
    def positions(self) -> int:
        """Output positions of all batches."""
        return self.pixels * self.batches

    @property
    def taps_run(self) -> int:
        """Window positions inside the input over all output positions of all batches."""
        return self.taps_inside * self.batches

    @property
    def rows_run(self) -> int:
        """Window rows inside the input over all output positions of all batches."""
        return self.window_rows * self.batches

    @property
    def outputs(self) -> int:
        """Numbers of the output."""
        return self.positions * self.output_channels

    @property
    def products(self) -> int:
        """Window positions inside the input over all numbers of the output."""
        return self.taps_run * self.output_channels

    @property
    def is_pointwise(self) -> bool:
        """Whether the window is one position without padding or dilation."""
        window = self.window
        return (window.kernel == (1, 1) and window.dilation == (1, 1)
                and window.padding[0] == 0 and window.padding[2] == 0)


@lru_cache(maxsize=1024)
def list_taps(window: Window, source: Shape, target: Shape, axis: int) -> tuple[int, ...]:
    """Return how many taps lie inside the image, by row (axis 0) or column (1) of the output."""
    kernel, stride = window.kernel[axis], window.stride[axis]
    dilation, before = window.dilation[axis], window.padding[2 * axis]
    return tuple(sum(0 <= place * stride - before + tap * dilation < source[axis + 1]
                     for tap in range(kernel)) for place in range(target[axis + 1]))


def read_rows(site: GraphLayer) -> tuple[int, int, int]:
    """Return vectors of a fully connected layer's input, and rows and columns of its weights."""
    rows, columns = site.weights.shape[-2:]
    return site.source.elements // columns, rows, columns


def read_geometry(site: GraphLayer) -> Geometry:
    """Return the extents of a windowed layer.

    Parameters
    ----------
    site
        Convolution, pooling or another NHWC operator; lower ranks are padded with ones in front.
    """
    batches, rows, columns, channels = shape_nhwc(site.source.shape)
    _, output_rows, output_columns, output_channels = shape_nhwc(site.shape)
    return Geometry(
        batches=batches, input_rows=rows, input_columns=columns, input_channels=channels,
        output_rows=output_rows, output_columns=output_columns, output_channels=output_channels,
        window=site.layer.window or Window(kernel=(1, 1)), has_bias=has_bias(site.layer))


def has_one_scale(site: GraphLayer) -> bool:
    """Whether weights have one scale, not one for each channel."""
    quantization = site.weights.quantization
    return quantization is None or len(quantization.scales) == 1


def has_bias(layer: Layer) -> bool:
    """Whether a weighted layer has a bias tensor."""
    return len(layer.inputs) > 2 and layer.inputs[2] >= 0


def shape_nhwc(shape: Shape) -> tuple[int, int, int, int]:
    """Return four extents: leading ones added, leading extents beyond four merged."""
    if len(shape) > 4:
        merged = 1
        for extent in shape[:-3]:
            merged *= extent
        shape = (merged, *shape[-3:])
    padded = (1,) * (4 - len(shape)) + tuple(shape)
    return padded[0], padded[1], padded[2], padded[3]


def over_pixels(shape: Geometry, *body: Any) -> tuple[Any, ...]:
    """Return the loops over output positions, named batch, row and column."""
    return (repeat("batch", shape.batches, repeat("row", shape.output_rows, repeat(
        "column", shape.output_columns, *body))),)


def over_window(shape: Geometry, *body: Any) -> Any:
    """Return the loops over window positions, named ky and kx."""
    return repeat("ky", shape.kernel_rows, repeat("kx", shape.kernel_columns, *body))


def window_bounds(shape: Geometry) -> tuple[Bound, Bound]:
    """Return what keeps a window position inside the input: its row, then its column."""
    window = shape.window
    return (bound(-window.padding[0], shape.input_rows, row=window.stride[0],
                  ky=window.dilation[0]),
            bound(-window.padding[2], shape.input_columns, column=window.stride[1],
                  kx=window.dilation[1]))


def needed_bounds(shape: Geometry) -> tuple[Bound, ...]:
    """Return those of `window_bounds` that some window position violates."""
    row, column = window_bounds(shape)
    return ((row,) if sum(shape.row_taps) < shape.output_rows * shape.kernel_rows else ()) + (
        (column,) if sum(shape.column_taps) < shape.output_columns * shape.kernel_columns else ())


def window_load(shape: Geometry, bounds: tuple[Bound, ...], width_bytes: int = 1,
                element_bytes: int = 1, /, **inner_bytes: int) -> Move:
    """Return the load of the first channel at a window position of an output position.

    Parameters
    ----------
    width_bytes, element_bytes
        Of the access, and of one channel.
    inner_bytes
        Steps of further loops, in bytes by loop name.
    """
    window, pixel = shape.window, shape.input_channels * element_bytes
    line = shape.input_columns * pixel
    return load("input", width_bytes, -window.padding[0] * line - window.padding[2] * pixel,
                batch=shape.input_rows * line, row=window.stride[0] * line,
                column=window.stride[1] * pixel, ky=window.dilation[0] * line,
                kx=window.dilation[1] * pixel, **inner_bytes)._replace(bounds=bounds)


def output_steps(shape: Geometry, element_bytes: int = 1) -> dict[str, int]:
    """Return the steps of an output position in bytes by loop name."""
    pixel = shape.output_channels * element_bytes
    return {"batch": shape.pixels * pixel, "row": shape.output_columns * pixel, "column": pixel}
