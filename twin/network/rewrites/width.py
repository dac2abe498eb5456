"""Fewer channels in every layer: a width multiplier, or structured pruning by L1 norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from hwmodels.frozen import frozen
from hwmodels.quantities import list_by_key
from twin.errors import AlreadySoError, NotApplicableError
from twin.network.graph import Graph, Tensor, TensorIds
from twin.network.rewrites.channels import Channels, drop_channels, trace_channels
from twin.network.rewrites.rewrite import MOST_KEPT, Rewrite, read_share

DIVISOR = 8
"""Widths are multiples of it, as the MobileNet papers round theirs."""


def scale_width(graph: Graph, share: float) -> Graph:
    """Keep a share of the channels of every layer, in multiples of eight.

    Parameters
    ----------
    graph
        With constant weights.
    share
        Of the channels that stay, between 0 and 1.

    Returns
    -------
    Graph
        Same layers at the same indices, narrower.

    Raises
    ------
    NotApplicableError
        When no channel can go.

    Notes
    -----
    A width w becomes the multiple of 8 nearest to share x w, at least 8 and at least 90 % of
    share x w; a width below 8 stays. Which stay is decided as in `prune_channels`; a network
    trained at that width has the same shapes and other weights.

    References
    ----------
    Sandler et al., MobileNetV2, 2018: the rounding (make_divisible) of the reference code.
    """
    def keep(block: Block) -> int:
        width, wanted = block.channels, share * block.channels
        rounded = max(DIVISOR, int(wanted + DIVISOR / 2) // DIVISOR * DIVISOR)
        return min(width, rounded + DIVISOR if rounded < 0.9 * wanted else rounded)

    return narrow_blocks(graph, f"network.width={share:g}", keep, DIVISOR)


def prune_channels(graph: Graph, share: float) -> Graph:
    """Remove a share of the channels of every layer: those of the least L1 norm.

    Parameters
    ----------
    graph
        With constant weights.
    share
        Of the channels that go, between 0 and 1; what stays is rounded up to whole channels.

    Raises
    ------
    NotApplicableError
        When no channel can go.

    Notes
    -----
    Channels that sums, depthwise filters or concatenations tie together go together; their norm
    is the sum of the absolute weights of all filters that write them. Inputs and outputs of the
    network keep theirs.

    References
    ----------
    Li et al., Pruning Filters for Efficient ConvNets, 2017.
    """
    return narrow_blocks(graph, f"network.prune={share:g}", lambda block: max(
        1, math.ceil((1 - share) * block.channels - 1e-9)))


@frozen
class Block:
    """Channels that can go, and the layers that write them together.

    Parameters
    ----------
    layers
        Whose filters write each of them, by index; sums tie several together.
    roots
        One for each channel, as `trace_channels` numbers them, those of the least L1 norm first.
    """

    layers: tuple[int, ...]
    roots: TensorIds

    @property
    def channels(self) -> int:
        """How many there are."""
        return len(self.roots)


def list_blocks(graph: Graph) -> tuple[Block, ...]:
    """Return the blocks of channels of a network that can be narrowed, in the order of layers."""
    return _trace_blocks(graph)[1]


@lru_cache(maxsize=MOST_KEPT)
def _trace_blocks(graph: Graph) -> tuple[Channels, tuple[Block, ...]]:
    """Return the channels of a network and their blocks, once for all changes of it."""
    channels = trace_channels(graph)
    norms, writers = dict[int, float](), dict[int, set[int]]()
    for layer in graph.layers:
        if layer.index in channels.columns:
            roots = channels.roots(channels.numbers[layer.target_id]).tolist()
            for root, norm in zip(roots, _filter_norms(graph.input(layer, 1)), strict=True):
                norms[root] = norms.get(root, 0.0) + norm
                writers.setdefault(root, set()).add(layer.index)
    fixed = channels.fixed()
    found = list_by_key((frozenset(layers), root) for root, layers in writers.items()
                        if not fixed[root])
    return channels, tuple(sorted((
        Block(layers=tuple(sorted(layers)), roots=tuple(sorted(
            roots, key=lambda root: (norms[root], root))))
        for layers, roots in found.items()), key=lambda one: one.layers))


def narrow_blocks(graph: Graph, path: str, keep: Callable[[Block], int], least: int = 1) -> Graph:
    """Remove channels of the least L1 norm from each block.

    Parameters
    ----------
    graph
        With constant weights.
    path
        What was asked for, to name in an error.
    keep
        How many channels of a block stay.
    least
        Fewest that may.

    Raises
    ------
    AlreadySoError
        When all channels stay, though some could go.
    NotApplicableError
        When no channel can go.
    """
    channels, blocks = _trace_blocks(graph)
    gone = {root for block in blocks for root in block.roots[:block.channels - keep(block)]}
    if any(block.channels > least for block in blocks) and not gone:
        raise AlreadySoError(f"{path}: rounds to all channels of {graph.name}")
    if not gone:
        raise NotApplicableError(f"{path}: no channel of {graph.name} can go: " + (
            "its layers are as narrow as they get" if blocks else
            "none is written by a filter of its own and read by layers that could do without"))
    return drop_channels(channels, gone)


def _filter_norms(weights: Tensor) -> list[float]:
    """Return the sum of absolute weights of each filter, in real numbers."""
    assert weights.data is not None
    flat = np.abs(weights.data.astype(np.float64)).reshape(weights.shape[0], -1).sum(axis=1)
    scale = weights.quantization
    if scale is not None:
        flat = flat * (np.asarray(scale.scales) if scale.axis == 0 else scale.scales[0])
    return list(flat.tolist())


REWRITE = Rewrite(
    name="network.width", accepted="a share of the channels, above 0 and below 1",
    does="every layer keeps that share of its channels, in multiples of eight",
    effort="retraining", costs="accuracy not known until it is trained at that width", stage=20,
    rounds="channels of a layer are rounded to multiples of eight, at least eight",
    neutral=1.0,
    values=lambda graph: ("0.75", "0.5", "0.25"),
    read=partial(read_share, "network.width"), apply=scale_width)
