"""`twin accuracy`: how often a network is right, before and after changes."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path

from twin.network.accuracy import Accuracy, change_network, measure_accuracy
from twin.network.labelled import read_data
from twin.network.readers import read_model


def accuracy(model: str | PathLike[str], data: str | PathLike[str],
             changes: Mapping[str, object] | None = None) -> tuple[Accuracy, Accuracy | None]:
    """Measure how often a network is right on data of one's own.

    Parameters
    ----------
    model : str or path
        A .tflite file (run by LiteRT), an .onnx file (by ONNX Runtime) or a network of the zoo.
    data : str or path
        An .npz file: inputs as x, the right classes as y.
    changes : mapping of str to object, optional
        Changes of the network, as `transform` takes them; run by LiteRT.

    Returns
    -------
    (Accuracy, Accuracy or None)
        As it is, and changed; on the same inputs.

    Raises
    ------
    TwinError
        For data of another shape, without an interpreter, or when a change does not apply.
    """
    from dataclasses import replace

    graph, samples = read_model(fspath(model)), read_data(fspath(data))
    notes: tuple[str, ...] = ()
    changed = None
    if changes:
        changed, samples, notes = change_network(graph, changes, samples)
    file = fspath(model) if Path(fspath(model)).is_file() else None
    before = measure_accuracy(graph, samples, file)
    if changed is None:
        return before, None
    return before, replace(measure_accuracy(changed, samples), notes=notes)
