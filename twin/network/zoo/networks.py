"""The zoo's architectures, each a function from its parameters to a graph."""

from __future__ import annotations

import zlib
from pathlib import Path

from hwmodels.file_cache import read_yaml_once
from twin.network.graph import Graph
from twin.network.zoo.builder import Builder

VWW_LIVE_CHANNELS = (60, 106, 57, 30, 19, 17, 27, 31, 22)
"""Output channels with any weight left in the last nine pointwise layers (operators 10, 12 ... 26)
of MLPerf Tiny's vww_96_int8.tflite; counted in the file, whose other channels are all zero."""

MOBILENET_V1_BLOCKS, MOBILENET_V2_BLOCKS, _EFFICIENTNET_BLOCKS = read_yaml_once(
    Path(__file__).with_name("blocks.yaml")).values()

MOBILENET_V1_DEPTHS = (5, 13)
"""Fewest and most separable blocks: all, or without those that write the shape they read."""


def start(name: str) -> Builder:
    """Return an empty network whose weights depend on its name."""
    return Builder(name, zlib.crc32(name.encode()))


def ds_cnn(name: str = "kws", channels: int = 64) -> Graph:
    """Keyword spotting: a 10x4 convolution and four depthwise-separable blocks of 64 channels.

    References
    ----------
    MLPerf Tiny, benchmark/training/keyword_spotting; Zhang et al., Hello Edge, 2017.
    """
    net = start(name)
    x = net.conv(net.input((1, 49, 10, 1)), channels, (10, 4), 2)
    for _ in range(4):
        x = net.conv(net.depthwise(x, 3), channels, 1)
    return _classify(net, x, 12)


def resnet8(name: str = "ic") -> Graph:
    """Image classification: three residual stacks of 16, 32 and 64 channels on 32x32x3.

    References
    ----------
    MLPerf Tiny, benchmark/training/image_classification.
    """
    net = start(name)
    x = net.conv(net.input((1, 32, 32, 3)), 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(net.conv(x, channels, 3, stride), channels, 3, activation=None)
        if stride > 1:
            x = net.conv(x, channels, 1, stride, activation=None)
        x = net.add(x, y, "relu")
    return _classify(net, x, 10)


def autoencoder(name: str = "ad") -> Graph:
    """Anomaly detection: a fully connected autoencoder, 640-128-8-128-640.

    References
    ----------
    MLPerf Tiny, benchmark/training/anomaly_detection.
    """
    net = start(name)
    x = net.input((1, 640))
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.fully_connected(x, units, "relu")
    return net.finish(net.fully_connected(x, 640))


def streaming_wakeword(name: str = "sww") -> Graph:
    """Streaming wakeword: four one-dimensional depthwise-separable blocks over 30 frames.

    References
    ----------
    MLPerf Tiny, benchmark/training/streaming_wakeword.
    """
    net = start(name)
    x = net.input((1, 30, 1, 40))
    for length, channels in ((3, 128), (5, 128), (10, 128), (15, 32)):
        x = net.depthwise(x, (length, 1), padding="valid", activation=None)
        x = net.conv(x, channels, 1, padding="valid")
    return net.finish(net.softmax(net.fully_connected(net.flatten(x), 3)))


def mobilenet_v1(name: str, width: float, resolution: int, classes: int = 1000, *,
                 activation: str = "relu6", live: tuple[int, ...] = (),
                 blocks: int = len(MOBILENET_V1_BLOCKS)) -> Graph:
    """MobileNetV1 at any width, resolution and depth.

    Parameters
    ----------
    name
        Of the graph; seeds its weights.
    width
        Multiplier of channels, which stay at least 8.
    resolution
        Height and width of the input in pixels.
    classes
        Outputs.
    live
        Live output channels of the last pointwise layers; others have zero weights.
    blocks
        Separable ones, within `MOBILENET_V1_DEPTHS`: of those that write the shape they read the
        last go first.

    References
    ----------
    Howard et al., MobileNets, 2017.
    """
    net = start(name)
    alike = [number for number, block in enumerate(MOBILENET_V1_BLOCKS)
             if number and block == [1, MOBILENET_V1_BLOCKS[number - 1][1]]]
    left_out = alike[::-1][:len(MOBILENET_V1_BLOCKS) - blocks]
    x = net.conv(net.input((1, resolution, resolution, 3)), max(8, int(32 * width)), 3, 2,
                 activation=activation)
    first_pruned = len(MOBILENET_V1_BLOCKS) - len(live)
    for number, (stride, channels) in enumerate(MOBILENET_V1_BLOCKS):
        if number in left_out:
            continue
        x = net.depthwise(x, 3, stride, activation=activation)
        kept = live[number - first_pruned] if number >= first_pruned else None
        x = net.conv(x, max(8, int(channels * width)), 1, activation=activation, live=kept)
    return _classify(net, x, classes)


def _classify(net: Builder, source: int, classes: int) -> Graph:
    """Finish with an average over the image, a fully connected layer and softmax."""
    _, height, columns, _ = net.shape(source)
    pooled = net.pool("average_pool_2d", source, (height, columns))
    return net.finish(net.softmax(net.fully_connected(net.flatten(pooled), classes)))


def visual_wake_words(name: str = "vww") -> Graph:
    """Person detection: MobileNetV1 0.25 on 96x96x3, with the reference file's dead channels.

    References
    ----------
    MLPerf Tiny, benchmark/training/visual_wake_words.
    """
    return mobilenet_v1(name, 0.25, 96, classes=2, activation="relu", live=VWW_LIVE_CHANNELS)


def mobilenet_v2(name: str, width: float, resolution: int) -> Graph:
    """MobileNetV2 at any width and resolution.

    Notes
    -----
    Channels are rounded to multiples of 8, never below 90 % of what the width asks; the last
    convolution does not shrink below 1280 channels.

    References
    ----------
    Sandler et al., MobileNetV2, 2018.
    """
    net = start(name)
    _, x = add_mobilenet_v2(net, width, resolution)
    return net.finish(net.softmax(net.fully_connected(net.mean(x), 1000)))


def add_mobilenet_v2(net: Builder, width: float, resolution: int) -> tuple[list[int], int]:
    """Add MobileNetV2 up to its last convolution; returns the expansion of each block, and it."""
    x = net.conv(net.input((1, resolution, resolution, 3)), round_channels(32 * width), 3, 2,
                 activation="relu6")
    expanded = []
    for expansion, channels, repeats, first_stride in MOBILENET_V2_BLOCKS:
        for repeat in range(repeats):
            wide, x = _invert_residual(net, x, expansion, round_channels(channels * width),
                                       first_stride if repeat == 0 else 1)
            expanded.append(wide)
    return expanded, net.conv(x, max(1280, round_channels(1280 * width)), 1, activation="relu6")


def _invert_residual(net: Builder, source: int, expansion: int, channels: int, stride: int,
                     kernel: int = 3) -> tuple[int, int]:
    """Add an inverted residual block; returns its expansion and its output."""
    wide = source
    if expansion > 1:
        wide = net.conv(source, net.shape(source)[3] * expansion, 1, activation="relu6")
    x = net.depthwise(wide, kernel, stride, activation="relu6")
    x = net.conv(x, channels, 1, activation=None)
    if stride == 1 and net.shape(x) == net.shape(source):
        x = net.add(source, x)
    return wide, x


def efficientnet_lite(name: str, resolution: int) -> Graph:
    """EfficientNet-Lite0 at any resolution: no squeezing, relu6, the stem and head unscaled.

    References
    ----------
    tensorflow/tpu, models/official/efficientnet/lite; Tan and Le, EfficientNet, 2019, table 1.
    """
    net = start(name)
    x = net.conv(net.input((1, resolution, resolution, 3)), 32, 3, 2, activation="relu6")
    for expansion, channels, repeats, first_stride, kernel in _EFFICIENTNET_BLOCKS:
        for repeat in range(repeats):
            _, x = _invert_residual(net, x, expansion, channels,
                                    first_stride if repeat == 0 else 1, kernel)
    x = net.conv(x, 1280, 1, activation="relu6")
    return _classify(net, x, 1000)


def squeezenet(name: str, resolution: int, classes: int = 1000) -> Graph:
    """SqueezeNet 1.1 at any resolution.

    References
    ----------
    Iandola et al., SqueezeNet, 2016, and version 1.1 in the authors' repository.
    """
    net = start(name)
    x = net.conv(net.input((1, resolution, resolution, 3)), 64, 3, 2, padding="valid")
    for squeeze, repeats in ((16, 2), (32, 2), (48, 2), (64, 2)):
        if squeeze != 64:
            x = net.pool("max_pool_2d", x, 3, 2)
        for _ in range(repeats):
            x = net.conv(x, squeeze, 1, padding="valid")
            x = net.concatenate(net.conv(x, 4 * squeeze, 1, padding="valid"),
                                net.conv(x, 4 * squeeze, 3))
    x = net.conv(x, classes, 1, padding="valid")
    return net.finish(net.softmax(net.mean(x)))


def round_channels(channels: float) -> int:
    """Return the nearest multiple of 8, never below 90 % of what is asked."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest
