"""The process an interpreter runs a network in: what a file does to it ends with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodels.files import JsonObject
from hwmodels.processes import serve
from twin.studies.accuracy import open_litert, open_onnx, store_input

MEMORY_BYTES = 1 << 30


def count_right(asked: tuple[str, bytes, Any, Any]) -> JsonObject:
    """Return how many answers to data are right, and what gave them.

    Parameters
    ----------
    asked : tuple of (str, bytes, Data, Tensor)
        "onnx" or "tflite", the file's content, the data, and the input of a .tflite file.
    """
    kind, content, data, entry = asked
    if kind == "onnx":
        run, by, entry = open_onnx(content)
    else:
        run, by = open_litert(content)
    return {"by": by, "right": sum(int(np.argmax(run(store_input(one, entry)))) == int(label)
                                   for one, label in zip(data.inputs, data.labels, strict=True))}


if __name__ == "__main__":
    serve(count_right, MEMORY_BYTES)
