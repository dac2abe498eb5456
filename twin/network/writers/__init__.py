"""Write a `Graph` as a real model file that reads back to the same graph."""

from __future__ import annotations

from pathlib import Path

from twin.errors import ModelError
from twin.network.graph import Graph

SUFFIXES = (".tflite", ".onnx")
"""Of files that can be written."""


def write_model(graph: Graph, path: str | Path) -> None:
    """Write a graph to a file of the kind its suffix names.

    Parameters
    ----------
    path : str or Path
        Ending in .tflite or .onnx; replaced atomically.

    Raises
    ------
    ModelError
        When the format cannot say what the graph holds, or the file cannot be written.
    ToolMissingError
        When writing .onnx without the `onnx` extra.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".tflite":
        from twin.network.writers.tflite import write_tflite

        write_tflite(graph, path)
    elif suffix == ".onnx":
        from twin.network.writers.onnx import write_onnx

        write_onnx(graph, path)
    else:
        raise ModelError(f"{path}: cannot write files ending {suffix!r}; accepted: "
                         + ", ".join(SUFFIXES))
