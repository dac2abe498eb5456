"""Detectors of the zoo: a backbone, predictors on maps of several sizes, boxes thinned."""

from __future__ import annotations

import math

import numpy as np

from twin.network.graph import Graph
from twin.network.zoo.builder import PROBABILITY, Builder
from twin.network.zoo.networks import MOBILENET_V1_BLOCKS, add_mobilenet_v2, start

CLASSES = 91
"""Of COCO as TensorFlow's object detection numbers them, background included."""

DETECTIONS = 10
"""Boxes that are reported."""

_ANCHORS = (3, 6, 6, 6, 6, 6)
"""Default boxes a position, by map."""


def ssd_mobilenet_v1(name: str, width: float, resolution: int) -> Graph:
    """SSD on MobileNetV1 at any width and resolution, with its post-processing.

    References
    ----------
    Howard et al., MobileNets, 2017, table 13; Liu et al., SSD, 2016; the pipeline
    ssd_mobilenet_v1_coco of tensorflow/models, research/object_detection.
    """
    net = start(name)
    x = net.conv(net.input((1, resolution, resolution, 3)), max(8, int(32 * width)), 3, 2,
                 activation="relu6")
    maps = []
    for number, (stride, channels) in enumerate(MOBILENET_V1_BLOCKS):
        x = net.depthwise(x, 3, stride, activation="relu6")
        x = net.conv(x, max(8, int(channels * width)), 1, activation="relu6")
        if number in (10, 12):
            maps.append(x)
    for depth in (512, 256, 256, 128):
        x = net.conv(x, _thin(depth // 2, width), 1, activation="relu6")
        x = net.conv(x, _thin(depth, width), 3, 2, activation="relu6")
        maps.append(x)
    boxes = [net.conv(x, 4 * count, 1, activation=None)
             for x, count in zip(maps, _ANCHORS, strict=True)]
    scores = [net.conv(x, CLASSES * count, 1, activation=None)
              for x, count in zip(maps, _ANCHORS, strict=True)]
    return _finish(net, boxes, scores)


def ssdlite_mobilenet_v2(name: str, width: float, resolution: int) -> Graph:
    """SSDLite on MobileNetV2: predictors and further maps are separable.

    References
    ----------
    Sandler et al., MobileNetV2, 2018, section 6.2.
    """
    net = start(name)
    expanded, x = add_mobilenet_v2(net, width, resolution)
    maps = [expanded[13], x]  # The expansion of block 13, counted from 0, at a sixteenth.
    for depth in (512, 256, 256, 128):
        x = net.conv(x, _thin(depth // 2, width), 1, activation="relu6")
        x = net.depthwise(x, 3, 2, activation="relu6")
        x = net.conv(x, _thin(depth, width), 1, activation="relu6")
        maps.append(x)

    def predict(x: int, channels: int) -> int:
        return net.conv(net.depthwise(x, 3, activation="relu6"), channels, 1, activation=None)

    boxes = [predict(x, 4 * count) for x, count in zip(maps, _ANCHORS, strict=True)]
    scores = [predict(x, CLASSES * count) for x, count in zip(maps, _ANCHORS, strict=True)]
    return _finish(net, boxes, scores)


def _finish(net: Builder, boxes: list[int], scores: list[int]) -> Graph:
    """Put the predictions of all maps behind each other, and thin the boxes out."""
    places = [_flat(net, x, 4) for x in boxes]
    values = [_flat(net, x, CLASSES) for x in scores]
    count = sum(net.shape(x)[1] for x in places)
    whole = net.layer("concatenation", places, (1, count, 4), axis=1,
                      quantization=net.quantization(places[0]))
    joined = net.layer("concatenation", values, (1, count, CLASSES), axis=1,
                       quantization=net.quantization(values[0]))
    likely = net.layer("logistic", (joined,), (1, count, CLASSES), quantization=PROBABILITY)
    anchors = net.tensor("anchors", (count, 4), "float32", None,
                         data=np.full((count, 4), 0.5, np.float32))
    found = net.layers("detection_postprocess", (whole, likely, anchors),
                       [(1, DETECTIONS, 4), (1, DETECTIONS), (1, DETECTIONS), (1,)],
                       classes=CLASSES - 1, detections=DETECTIONS, regular=False)
    return net.finish(*found)


def _thin(channels: int, width: float) -> int:
    """Channels of a further map, at least 16."""
    return max(16, int(channels * width))


def _flat(net: Builder, source: int, width: int) -> int:
    shape = (1, math.prod(net.shape(source)) // width, width)
    return net.layer("reshape", (source,), shape, quantization=net.quantization(source))
