"""Reference networks built in code: known architectures with seeded random int8 weights.

build("kws")    build("mobilenet_v2_0.35_96")    build("squeezenet1.1_128")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module

from hwmodels.errors import did_you_mean
from twin.errors import ModelError
from twin.network.graph import Graph
from twin.network.zoo import networks


def _lazily(module: str, function: str, *kinds: type) -> Callable[..., Graph]:
    """Return a function of a module of the zoo that few networks need."""
    def make(name: str, *values: str) -> Graph:
        build = getattr(import_module(f"twin.network.zoo.{module}"), function)
        return build(name, *(kind(value) for kind, value in zip(kinds, values, strict=True)))

    return make


_FIXED: Mapping[str, Callable[[str], Graph]] = {
    "kws": networks.ds_cnn, "ic": networks.resnet8, "vww": networks.visual_wake_words,
    "ad": networks.autoencoder, "sww": networks.streaming_wakeword,
    "ds_cnn": networks.ds_cnn, "resnet8": networks.resnet8, "autoencoder": networks.autoencoder,
    "kwt1": _lazily("sequences", "keyword_transformer"), "lstm": _lazily("sequences", "lstm"),
}

_FAMILIES: Mapping[str, tuple[re.Pattern[str], Callable[..., Graph]]] = {
    "mobilenet_v1_WIDTH_RESOLUTION": (
        re.compile(r"mobilenet_v1_(\d+(?:\.\d+)?)_(\d+)"),
        lambda name, width, resolution: networks.mobilenet_v1(name, float(width),
                                                              int(resolution))),
    "mobilenet_v2_WIDTH_RESOLUTION": (
        re.compile(r"mobilenet_v2_(\d+(?:\.\d+)?)_(\d+)"),
        lambda name, width, resolution: networks.mobilenet_v2(name, float(width),
                                                              int(resolution))),
    "squeezenet1.1_RESOLUTION": (
        re.compile(r"squeezenet1\.1(?:_(\d+))?"),
        lambda name, resolution: networks.squeezenet(name, int(resolution or 224))),
    "efficientnet_lite0_RESOLUTION": (
        re.compile(r"efficientnet_lite0(?:_(\d+))?"),
        lambda name, resolution: networks.efficientnet_lite(name, int(resolution or 224))),
    "ssd_mobilenet_v1_WIDTH_RESOLUTION": (
        re.compile(r"ssd_mobilenet_v1_(\d+(?:\.\d+)?)_(\d+)"),
        _lazily("detectors", "ssd_mobilenet_v1", float, int)),
    "ssdlite_mobilenet_v2_WIDTH_RESOLUTION": (
        re.compile(r"ssdlite_mobilenet_v2_(\d+(?:\.\d+)?)_(\d+)"),
        _lazily("detectors", "ssdlite_mobilenet_v2", float, int)),
}

NAMES = (*_FIXED, "mobilenet_v1_0.25_224", "mobilenet_v1_1.0_224", "mobilenet_v2_0.35_96",
         "mobilenet_v2_1.0_224", "squeezenet1.1", "efficientnet_lite0",
         "ssd_mobilenet_v1_1.0_300", "ssdlite_mobilenet_v2_1.0_320")
"""Networks by name; MobileNets and their detectors at any width and resolution, SqueezeNet and
EfficientNet-Lite0 at any resolution."""

FAMILIES = tuple(_FAMILIES)
"""Patterns of the parametric names."""

RESOLUTIONS = (32, 1024)
"""Smallest and largest input side in pixels: five halvings need 32."""

WIDTHS = (0.05, 4.0)
"""Smallest and largest channel multiplier."""


def is_known(name: str) -> bool:
    """Whether `build` knows the name's form."""
    return name in _FIXED or any(pattern.fullmatch(name) for pattern, _ in _FAMILIES.values())


@lru_cache(maxsize=32)
def build(name: str) -> Graph:
    """Build a network of the zoo, once a process.

    Parameters
    ----------
    name
        One of `NAMES`, or of the form of one of `FAMILIES`.

    Returns
    -------
    Graph
        With int8 weights that depend on the name only.

    Raises
    ------
    ModelError
        When no network has that name, or its width or resolution is out of range.

    Notes
    -----
    kws, ic, vww, ad and sww have the architecture of MLPerf Tiny's reference files (equal
    `architecture_id`), vww also their dead channels; ds_cnn, resnet8 and autoencoder are the
    same networks under their own names.
    """
    if name in _FIXED:
        return _FIXED[name](name)
    for pattern, make in _FAMILIES.values():
        match = pattern.fullmatch(name)
        if match:
            _check_range(name, match.groups())
            return make(name, *match.groups())
    raise ModelError(f"{name}: no zoo network has that name; {did_you_mean(name, NAMES)} "
                     f"or of the form {', '.join(FAMILIES)}")


def _check_range(name: str, values: tuple[str | None, ...]) -> None:
    limits = (WIDTHS, RESOLUTIONS) if len(values) == 2 else (RESOLUTIONS,)
    for value, (low, high) in zip(values, limits, strict=True):
        if value is not None and not low <= float(value) <= high:
            raise ModelError(f"{name}: {value} is out of range; accepted: {low} to {high}")
