"""`twin accuracy`: how often a network is right, before and after changes."""

from __future__ import annotations

from os import fspath
from pathlib import Path

from twin.api.requests import prediction as request
from twin.api.requests import takes
from twin.network.readers import read_model
from twin.studies.accuracy import Accuracy, change_network, measure_accuracy
from twin.studies.labelled import read_data


@takes(request.Accuracy)
def accuracy(asked: request.Accuracy) -> tuple[Accuracy, Accuracy | None]:
    """Measure how often a network is right on data of one's own.

    As it is, and changed, on the same inputs; a .tflite file is run by LiteRT, an .onnx file by
    ONNX Runtime, what is changed by LiteRT.

    Raises
    ------
    TwinError
        For data of another shape, without an interpreter, or when a change does not apply.
    """
    from dataclasses import replace

    model, changes = fspath(asked.model), asked.changes
    graph, samples = read_model(model), read_data(fspath(asked.data))
    notes: tuple[str, ...] = ()
    changed = None
    if changes:
        changed, samples, notes = change_network(graph, changes, samples)
    file = model if Path(model).is_file() else None
    before = measure_accuracy(graph, samples, file)
    if changed is None:
        return before, None
    return before, replace(measure_accuracy(changed, samples), notes=notes)
