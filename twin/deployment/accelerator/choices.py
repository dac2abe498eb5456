"""What a deployment may choose about its accelerator, by dotted path."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from hwmodels.errors import did_you_mean
from twin.errors import UsageError
from twin.network.operators import OPERATORS

if TYPE_CHECKING:
    from twin.deployment.deployment import Deployment

KEYS = {"offload.host": "offload.host", "placement.weight_bits": "placement.weight_bits",
        "offload.weight_bits": "placement.weight_bits"}
"""Paths, and what they are called."""


def take_offload(deployment: Deployment, overrides: dict[str, object]) -> Deployment:
    """Apply the paths of `KEYS`, and take them out of the overrides.

    Raises
    ------
    UsageError
        For a value that cannot be, or a runtime that does not offload.
    """
    settings = {name: overrides.pop(path) for path, name in KEYS.items() if path in overrides}
    if settings and deployment.runtime.offload is None:
        raise UsageError(f"{next(iter(settings))}: runtime {deployment.runtime.identity} does not "
                         "offload; accepted with a runtime that does, such as neural-art")
    if "offload.host" in settings:
        kept = tuple(name.strip() for name in str(settings["offload.host"]).split(",")
                     if name.strip())
        known = [str(layer.index) for layer in deployment.graph.layers]
        for name in kept:
            if name not in OPERATORS and name not in known:
                raise UsageError(f"offload.host: {name!r} is no operator and no layer; "
                                 + did_you_mean(name, OPERATORS))
        deployment = dataclasses.replace(deployment, host=kept)
    if "placement.weight_bits" in settings:
        bits = str(settings["placement.weight_bits"])
        if bits not in ("4", "8"):
            raise UsageError(f"placement.weight_bits: {bits!r}; accepted: 4, 8")
        deployment = dataclasses.replace(deployment, weight_bits=int(bits))
    return deployment
