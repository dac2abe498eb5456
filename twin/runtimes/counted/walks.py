"""Accesses of a kernel that was read from a program: turns of one loop, and what each turn reads.

In each turn an operand is read from its start to its end, or as much of it as lies along the turn:
its share of the weights, the windows of its pixels, its outputs. That is enough to tell how often
lines leave a cache: how often what is re-read, and what was read in between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hwmodels.kernel import Nests, Operand
from twin.network.graph import GraphLayer
from twin.runtimes.counted.learnt import LearntKernel, LearntOperand, total
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.nests import Move, bound, guarded, load, repeat, resolve, store

PIXELS, CHANNELS = "pixels", "channels"
WHOLE = 0.4
"""Sweeps of a turn from which an operand is read whole in each (assumed)."""

AGAIN = 1.5
"""Sweeps of a turn from which it has parts, each of some of the channels (assumed)."""

_WIDTHS = (1, 2, 4, 8, 16)
_CHUNK_BYTES = 32
_ROLES = ("weights", "bias", "parameters", "input", "scratch", "output")


def walk(kernel: LearntKernel, site: Site, terms: Mapping[str, float]) -> Nests:
    """Return the accesses of a layer.

    Parameters
    ----------
    kernel
        What was read of the kernel that runs it.
    terms
        Of its shape.
    """
    turns = max(1, round(total(kernel.turns, terms)))
    window = site.layer.window is not None and len(site.shape) == 4
    pixels = _Turns(site, turns) if window and kernel.along == PIXELS else None
    largest = max((one.size_bytes for one in site.operands), default=1)
    if pixels is None and kernel.along == PIXELS:
        turns = max(turns, min(4096, largest // _CHUNK_BYTES))
    parts = 1
    weights = kernel.operand("weights")
    if pixels is not None and weights is not None and weights.sweeps >= AGAIN:
        parts = max(1, round(weights.sweeps * turns / pixels.turns))
    body: list[Any] = []
    for operand in sorted(site.operands, key=lambda one: _order(one.name)):
        touched = kernel.operand(operand.name) or kernel.operand(operand.name.rstrip("0123456789"))
        if touched is None:
            continue
        times = pixels.turns if pixels else turns
        reads = touched.each * operand.size_bytes * times or total(touched.reads, terms)
        for write, accesses in ((False, reads), (True, total(touched.writes, terms))):
            if accesses >= 1:
                body += _access(operand, touched, accesses / times, times, parts, pixels, write)
    body = [repeat("part", parts, *body)]
    loops = pixels.loops if pixels is not None else (("turn", turns),)
    for name, extent in reversed(loops):
        body = [repeat(name, extent, *body)]
    return resolve(*body)


def _order(name: str) -> int:
    """Return an operand's turn: inputs and weights are read before outputs are written."""
    stem = name.rstrip("0123456789")
    return _ROLES.index(stem) if stem in _ROLES else 0


class _Turns:
    """Turns over the pixels of an output, several at a time."""

    def __init__(self, step: GraphLayer, turns: int) -> None:
        source, target = step.ends
        self.window, self.source = step.layer.sliding_window, source.shape
        self.target = target.shape
        lines, width = target.shape[1], target.shape[2]
        at_once = max(1, round(lines * width / turns))
        self.across = min(width, at_once)
        self.down = max(1, min(lines, at_once // width))
        self.loops = (("y", -(-lines // self.down)), ("x", -(-width // self.across)))
        self.turns = math.prod(extent for _, extent in self.loops)

    def read_window(self, operand: Operand, accesses: float, width: int, parts: int) -> list[Any]:
        """Return the reads of one turn's windows, rows and columns outside of the input omitted.

        Parameters
        ----------
        parts
            Of a turn, each of some of the channels.
        """
        window, (_, rows, columns, depth) = self.window, self.source
        size = max(1, operand.size_bytes // max(1, rows * columns * depth))
        high = (self.down - 1) * window.stride[0] + window.kernel[0]
        wide = (self.across - 1) * window.stride[1] + window.kernel[1]
        high, wide = min(high, rows), min(wide, columns)
        pixel = depth * size
        sweeps = max(1, round(accesses * width / (high * wide * pixel)))
        each = max(1, round(accesses / (sweeps * high * wide * parts)))
        share = max(1, pixel // parts)
        step = max(1, share // each)
        each, width = min(each, share // step), min(width, step)
        y_step, x_step = self.down * window.stride[0], self.across * window.stride[1]
        first = -(window.padding[0] * columns + window.padding[2]) * pixel
        move = load(operand.name, _fit(width), first,
                    y=y_step * columns * pixel, x=x_step * pixel, ky=columns * pixel, kx=pixel,
                    element=step, part=share if share * parts <= pixel else 0)
        move = guarded(
            move, bound(-window.padding[0], rows, y=y_step, ky=1),
            bound(-window.padding[2], columns, x=x_step, kx=1))
        return [repeat("again", sweeps, repeat("ky", high, repeat(
            "kx", wide, repeat("element", each, move))))]


def _access(operand: Operand, learnt: LearntOperand, each: float, turns: int, parts: int,
            pixels: _Turns | None, write: bool) -> list[Any]:
    """Return one operand's reads or writes of one turn, `each` in all of its parts."""
    width = _fit(learnt.write_bytes if write else learnt.read_bytes)
    stem = operand.name.rstrip("0123456789")
    whole = turns == 1 or stem == "scratch" or (not write and learnt.sweeps >= WHOLE)
    if pixels is not None and stem == "input" and not write and not whole:
        return pixels.read_window(operand, each, width, parts)
    extent = operand.size_bytes if whole else max(1, operand.size_bytes // turns)
    strided = whole and parts > 1 and stem == "weights"
    sweeps, each = 1, each / parts
    if not strided:
        extent = max(1, extent // parts)
        if whole and parts == 1 and not write and stem != "scratch":
            # Started again oftener than its bytes are read: once, from several places in turn.
            often = each * width / max(1, extent)
            sweeps = max(1, round(learnt.sweeps)) if learnt.sweeps <= often + WHOLE else 1
    count = max(1, min(round(each / sweeps), extent // min(width, extent)))
    step = max(1, extent // count)
    width = _fit(min(width, step, operand.size_bytes))
    count = min(count, max(1, (extent - width) // step + 1))
    # A part of weights is some channels of every tap, of all else a piece of its own.
    steps = {"element": step, "part": (step - width) // max(1, parts - 1) if strided else extent}
    if extent * parts > operand.size_bytes and not strided:
        steps["part"] = 0
    along = operand.size_bytes // turns
    if not whole and along < extent * parts:
        steps["part"] = 0
    if not whole and pixels is not None:
        steps |= {"y": along * pixels.loops[1][1], "x": along}
    elif not whole:
        steps["turn"] = along
    make = store if write else load
    move: Move = make(operand.name, width, 0, **steps)
    again = max(1, round(each / (sweeps * count)))  # At one place: registers are few.
    return [repeat("sweep", sweeps, repeat("element", count, repeat("again", again, move)))]


def _fit(width: float) -> int:
    """Return the width of an access: the largest there is up to it."""
    return max((one for one in _WIDTHS if one <= width + 0.5), default=1)
