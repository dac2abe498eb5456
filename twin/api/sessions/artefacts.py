"""What stands between a model file and its bill, as JSON: graph, placement, kernels, counts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from hwmodels.files import JsonObject
from twin.deployment.core import lower_network
from twin.pricing.prediction import Prediction
from twin.program.image.compile.store import keep_image
from twin.program.image.target import Image

MOST_VALUES = 64
"""Of an array that are written out; of a longer one its hash stands there."""


def list_artefacts(prediction: Prediction) -> JsonObject:
    """Return the files of a prediction's steps, in the order they are made.

    Returns
    -------
    dict of str to JSON value or bytes
        "graph.json" (as executed), "placement.json" (offsets in bytes), "kernels.json" (what the
        core runs; not where an accelerator runs the layers), "counts.json" (events by layer), and
        "image.elf" of a runtime that is compiled.
    """
    deployment = prediction.deployment
    found: JsonObject = {
        "graph.json": plain(deployment.executed),
        "placement.json": {"weights": deployment.weights, "arena": deployment.arena,
                      "code": deployment.code, "plan": plain(deployment.placement)}}
    if not deployment.accelerated:
        found["kernels.json"] = [
            {"layer": layer.name, "kernels": plain(kernels)} for layer, kernels in zip(
                deployment.executed.layers, lower_network(deployment), strict=True)]
    found["counts.json"] = [{"layer": layer.name, "counts": plain(layer.counts.lines)}
                       for layer in prediction.layers]
    if isinstance(deployment.target, Image):
        found["image.elf"] = keep_image(deployment).path.read_bytes()
    return found


def plain(value: Any) -> Any:
    """Return a noun as JSON has it: its public fields, long arrays as their shape and hash."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name))
                for field in fields(value) if not field.name.startswith("_")}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _array(value: np.ndarray) -> Any:
    if value.size <= MOST_VALUES:
        return plain(value.tolist())
    content = np.ascontiguousarray(value)
    return {"shape": list(value.shape), "dtype": str(value.dtype),
            "sha256": hashlib.sha256(content.tobytes()).hexdigest()}
