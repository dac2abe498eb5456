"""Another resolution of the input image."""

from __future__ import annotations

import re

from twin.errors import NotApplicableError, UsageError
from twin.network.graph import Graph, RowsColumns
from twin.network.rewrites.rewrite import Rewrite
from twin.network.shapes import infer_shapes

MOST = 4096
"""Pixels of a side at most."""

_SIZE = re.compile(r"(\d{1,9})(?:x(\d{1,9}))?")
_SHARE = re.compile(r"(\d{1,3})%")


def change_resolution(graph: Graph, height: int, width: int) -> Graph:
    """Return a network whose images have other sides.

    Parameters
    ----------
    graph
        With one input of batch, height, width and channels.
    height, width
        In pixels.

    Raises
    ------
    NotApplicableError
        When its input is not an image, or a layer fits the old resolution only.
    """
    text = f"network.resolution={height}x{width}"
    images = [i for i in graph.inputs if len(graph.tensors[i].shape) == 4]
    if len(images) != 1:
        raise NotApplicableError(f"{text}: {graph.name} has no input that is one image (batch, "
                                 "height, width, channels)")
    batch, _, _, channels = graph.tensors[images[0]].shape
    return infer_shapes(graph, {images[0]: (batch, height, width, channels)}, text)


def _read(text: str) -> int | RowsColumns:
    """Read a percentage of the sides, or height and width."""
    share = _SHARE.fullmatch(text.replace(" ", ""))
    if share and 1 <= int(share[1]) <= 100:
        return int(share[1])
    found = _SIZE.fullmatch(text.lower().replace(" ", ""))
    sides = tuple(int(side) for side in found.groups() if side) if found else ()
    if not sides or not all(1 <= side <= MOST for side in sides):
        raise UsageError(f"network.resolution: {text!r}; accepted: a side in pixels such as 96, "
                         f"height x width such as 96x64, at most {MOST}, or a share of the sides "
                         "there are such as 75%")
    return sides[0], sides[-1]


def _apply(graph: Graph, asked: int | RowsColumns) -> Graph:
    if not isinstance(asked, int):
        return change_resolution(graph, *asked)
    own = find_sides(graph)
    if own is None:
        raise NotApplicableError(f"network.resolution={asked}%: {graph.name} has no input that "
                                 "is one image (batch, height, width, channels)")
    return graph if asked == 100 else change_resolution(graph, *scale_sides(own, asked / 100))


def _values(graph: Graph) -> tuple[str, ...]:
    """Return three quarters and half of the sides."""
    own = find_sides(graph)
    if own is None or min(own) < 16:
        return ()
    return tuple(f"{height}x{width}" if height != width else f"{height}"
                 for height, width in (scale_sides(own, share) for share in (0.75, 0.5)))


def find_sides(graph: Graph) -> RowsColumns | None:
    """Return height and width of the first image that comes in."""
    return next((graph.tensors[i].shape[1:3] for i in graph.inputs
                 if len(graph.tensors[i].shape) == 4), None)  # type: ignore[return-value]


def scale_sides(sides: RowsColumns, share: float) -> RowsColumns:
    """Return a share of two sides, in multiples of eight, at least eight."""
    height, width = (max(8, round(share * side / 8) * 8) for side in sides)
    return height, width


REWRITE = Rewrite(
    name="network.resolution", accepted="a side in pixels such as 96, height x width, or 75%",
    does="inputs come in with other rows and columns: pixels of an image, frames and bands of a "
         "spectrogram", effort="retraining",
    costs="accuracy not known until it is trained or measured at that resolution",
    stage=10,
    rounds="a share of a side is rounded to a multiple of eight pixels",
    values=_values, read=_read, apply=_apply, whole=True)
