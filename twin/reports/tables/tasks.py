"""The report of an accelerator's profiler as text, of a side whose parts are its tasks."""

from __future__ import annotations

from twin.attribution.predicted import profile_tasks, profile_whole, side_of_prediction
from twin.attribution.side import Side
from twin.network.graph import Tensor
from twin.pricing.prediction import Prediction
from twin.reports.tables.parts import Content, Group, Text, spaced


def tasks_report(prediction: Prediction) -> Content:
    """Return the tasks of a prediction with an accelerator, below what its profiler says first."""
    return spaced([Group(*map(Text, _header_lines(prediction))),
                   tasks_part(side_of_prediction(prediction))])


def _header_lines(prediction: Prediction) -> list[str]:
    """Return the initial part of the profiler's report: inputs and outputs, nodes, device."""
    deployment, graph = prediction.deployment, prediction.deployment.graph
    board = deployment.board
    ends = [(letter, place + 1, len(ids), graph.tensors[i])
            for letter, ids in (("I", graph.inputs), ("O", graph.outputs))
            for place, i in enumerate(ids)]
    clocks = ",".join(f"{clock.name}_freq={clock.frequency_hz * 1e-6:g}MHz"
                      for clock in board.clocks)
    return [
        f"Summary '{graph.name}' - predicted, no device was asked",
        *(f"{letter}[{place}/{count}] '{tensor.name}' : {_describe_tensor(tensor)}, activations"
          for letter, place, count, tensor in ends),
        f"n_nodes          : {len(prediction.tasks)}",
        f"activations      : {deployment.placement.arena_bytes}",
        f"tools            : {deployment.runtime.identity}",
        f"device.desc      : {board.soc} on {board.name}, {board.core.model}",
        f"device.attrs     : {clocks}"]


def _describe_tensor(tensor: Tensor) -> str:
    """Return type, shape, size and scale of a tensor, as ST's tools write them."""
    quantization = tensor.quantization
    scale = "" if quantization is None else (
        f", QLinear({quantization.scales[0]:.9f},{quantization.zero_points[0]},{tensor.dtype})")
    return (f"{tensor.dtype}[{','.join(map(str, tensor.shape))}], {tensor.size_bytes} Bytes{scale}")


def tasks_part(side: Side) -> Content:
    """Return every task and the whole model, line by line as the profiler prints them."""
    return spaced([*(Group(Text(head, style="bold"), *map(Text, lines))
                     for head, *lines in profile_tasks(side)),
                   Group(*map(Text, profile_whole(side)))])
