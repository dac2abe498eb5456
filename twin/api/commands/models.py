"""`twin models`: the networks of the zoo, and writing one to a file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from twin.errors import UsageError
from twin.network import zoo
from twin.network.graph import Graph


def list_models() -> dict[str, Graph]:
    """Build every network of the zoo, by name."""
    return {name: zoo.build(name) for name in zoo.NAMES}


def export_model(name: str | Graph, file: str | PathLike[str]) -> Path:
    """Write a network of the zoo as a real .tflite or .onnx file.

    Parameters
    ----------
    name : str or Graph
        Of `list_models`, or a network `transform` made.
    file : str or path
        Where to: .tflite or .onnx.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        For another ending.
    """
    from twin.network.writers import SUFFIXES, write_model

    target = Path(file)
    if target.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{file}: a model file ends in .tflite or .onnx")
    write_model(name if isinstance(name, Graph) else zoo.build(name), target)
    return target
