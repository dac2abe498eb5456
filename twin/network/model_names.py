"""Endings of the files networks are read from, and what a network is called."""

from __future__ import annotations

from pathlib import PurePath

MODELS = (".tflite", ".onnx", ".json", ".pte", ".espdl")
"""Endings of the files this reads; .json is a layer list (`twin.network.readers.layer_list`)."""

CONTAINERS = (".zip", ".eim", ".elf", ".axf", ".out", ".bin", ".c", ".cc", ".cpp", ".h", ".hpp",
              ".ino", ".lite", ".gz", ".tgz", ".tar")
"""Endings of files a model may be inside (`twin.network.readers.container`)."""

SUFFIXES = MODELS + CONTAINERS
"""Endings of all files a network is read from."""


def name_model(model: str) -> str:
    """Return what a model is called: a zoo name, or the stem of its file or of its member."""
    file, _, member = model.rpartition(":")
    file = member if file.lower().endswith(CONTAINERS) else model
    return PurePath(file).stem.removesuffix(".mltk") if file.lower().endswith(SUFFIXES) else file
