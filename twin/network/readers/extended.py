"""Operators of files that an installed extension reads."""

from __future__ import annotations

from typing import Any

from hwmodels.extensions import find_entries, load_entry


def find_converter(table: str, name: str) -> Any:
    """Return how an extension makes a layer of an operator of a file; None where none does.

    Parameters
    ----------
    table
        "TFLITE" or "ONNX": the mapping of its module.
    name
        What the file calls the operator: "CUSTOM name" in a .tflite file, its type in .onnx.
    """
    for entry in find_entries("twin.operators"):
        found = getattr(load_entry("twin.operators", entry), table, {}).get(name)
        if found is not None:
            return found
    return None
