"""The width of one layer, and of those that sums tie to it."""

from __future__ import annotations

import re

from twin.errors import NotApplicableError, UsageError
from twin.network.graph import Graph
from twin.network.operators import layer_macs
from twin.network.rewrites.rewrite import Rewrite
from twin.network.rewrites.width import Block, list_blocks, narrow_blocks

NAME = "network.channels"

_FORM = re.compile(r"(\d{1,6}):(\d{1,6})")


def set_channels(graph: Graph, wanted: dict[int, int]) -> Graph:
    """Return a network of which some layers write fewer channels.

    Parameters
    ----------
    graph
        With constant weights.
    wanted
        Channels that stay, by index of a layer; layers that sums tie together have one width.
        As many as there are is no change.

    Raises
    ------
    UsageError
        For a layer whose width cannot be changed, with those whose can.
    """
    blocks = list_blocks(graph)
    kept: dict[Block, int] = {}
    for layer, count in wanted.items():
        block = find_block(blocks, layer)
        if block is None:
            known = ", ".join(f"{one.layers[0]}:{one.channels}" for one in blocks) or "none"
            raise (UsageError if blocks else NotApplicableError)(
                f"{NAME}: layer {layer} of {graph.name} has no channels that could go; accepted, "
                f"as LAYER:CHANNELS now: {known}")
        if not 1 <= count <= block.channels:
            raise UsageError(f"{NAME}: {layer}:{count}; accepted for this layer: 1 to "
                             f"{block.channels} channels")
        if kept.setdefault(block, count) != count:
            raise UsageError(f"{NAME}: {layer}:{count}; accepted: {kept[block]}, as of layer "
                             f"{block.layers[0]}, whose channels go with it")
    if all(count == block.channels for block, count in kept.items()):
        return graph
    return narrow_blocks(graph, NAME, lambda block: kept.get(block, block.channels))


def find_block(blocks: tuple[Block, ...], layer: int) -> Block | None:
    """Return the block a layer writes; of several, the first."""
    return next((one for one in blocks if layer in one.layers), None)


def format_channels(wanted: dict[int, int]) -> str:
    """Return widths by layer as the path takes them: "3:32/7:48"."""
    return "/".join(f"{layer}:{count}" for layer, count in wanted.items())


def read_channels(text: str) -> dict[int, int]:
    """Read widths by layer; raises `UsageError` for text that is none."""
    wanted: dict[int, int] = {}
    for part in text.replace(" ", "").split("/"):
        found = _FORM.fullmatch(part)
        if found is None or int(found[1]) in wanted:
            raise UsageError(f"{NAME}: {text!r}; accepted: a layer and the channels it keeps, such "
                             "as 3:32, of several layers 3:32/7:48")
        wanted[int(found[1])] = int(found[2])
    return wanted


def _halve_largest(graph: Graph) -> tuple[str, ...]:
    """Return half the channels of the layers with most multiply-accumulates."""
    macs = [layer_macs(graph, layer) for layer in graph.layers]
    block = max((one for one in list_blocks(graph) if one.channels > 1), default=None,
                key=lambda one: sum(macs[layer] for layer in one.layers))
    return () if block is None else (f"{block.layers[0]}:{block.channels // 2}",)


REWRITE = Rewrite(
    name="network.channels", accepted="LAYER:CHANNELS that stay, of several layers 3:32/7:48",
    does="these layers, and those that sums tie to them, write fewer channels",
    effort="retraining", costs="accuracy not known until it is trained at that width", stage=22,
    values=_halve_largest, read=read_channels, apply=set_channels)
