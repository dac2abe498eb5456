"""Node data for Model Explorer: what each node of the model's graph costs, laid over it.

References
----------
github.com/google-ai-edge/model-explorer, `node_data_builder.py`: data by name, each with `results`
by the name of a node's output tensor or its identifier, and a gradient.
"""

from __future__ import annotations

from collections.abc import Callable

from hwmodels.files import JsonObject
from twin.pricing.prediction import LayerPrediction, Prediction

GRADIENT = [{"stop": 0, "bgColor": "#FFFFFF"}, {"stop": 0.5, "bgColor": "#E69F00"},
            {"stop": 1, "bgColor": "#D55E00"}]
"""From nothing to the costliest node."""

CAUSE_COLOURS = {"compute": "#56B4E9", "memory": "#E69F00"}


def to_node_data(prediction: Prediction) -> JsonObject:
    """Write time, energy, cycles, MACs and what binds each layer, by its first output tensor.

    Parameters
    ----------
    prediction
        Of a model file, whose tensors the viewer knows by name.

    Notes
    -----
    Each key is one overlay to choose in the viewer. A layer's costs stand at each of its outputs;
    a tensor that fusion removed has no node data.
    """
    read: dict[str, Callable[[LayerPrediction], float | None]] = {
        "time, us": lambda layer: layer.time_us, "energy, uJ": lambda layer: layer.energy_uj,
        "MACs": lambda layer: float(layer.macs),
        "MAC per cycle": lambda layer: layer.macs / layer.cycles if layer.cycles else 0.0,
        "bytes alive": lambda layer: layer.live_bytes}
    overlays: JsonObject = {}
    for name, value in read.items():
        results = {tensor: {"value": amount} for tensor, layer in _nodes(prediction)
                   if (amount := value(layer)) is not None}
        if results:
            overlays[name] = {"results": results, "gradient": GRADIENT}
    overlays["bound by"] = {"results": {
        tensor: {"value": layer.bound, "bgColor": CAUSE_COLOURS[layer.bound]}
        for tensor, layer in _nodes(prediction) if layer.bound}}
    overlays["largest cause"] = {"results": {
        tensor: {"value": str(layer.largest_cause)} for tensor, layer in _nodes(prediction)}}
    return overlays


def _nodes(prediction: Prediction) -> list[tuple[str, LayerPrediction]]:
    graph = prediction.graph
    return [(graph.tensors[index].name, predicted)
            for layer, predicted in zip(graph.layers, prediction.layers, strict=True)
            for index in layer.outputs]
