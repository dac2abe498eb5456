"""Structured pruning as a change one can ask for; `width` says how channels are chosen."""

from __future__ import annotations

from functools import partial

from twin.network.rewrites.rewrite import Rewrite, read_share
from twin.network.rewrites.width import prune_channels

REWRITE = Rewrite(
    name="network.prune", accepted="a share of the channels, above 0 and below 1",
    does="that share of the channels of every layer goes, the least in L1 norm first",
    effort="retraining", costs="accuracy not known until it is measured or fine-tuned", stage=21,
    rounds="what stays is rounded up to whole channels", neutral=0.0,
    values=lambda graph: ("0.1", "0.25", "0.5"),
    read=partial(read_share, "network.prune"), apply=prune_channels)
