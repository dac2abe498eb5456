"""Read a model file, or build a zoo network by name, into a `Graph`.

read_model("kws.tflite")    read_model("net.onnx")    read_model("kws")    read_model("zoo:ic")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from hwmodels.errors import LONGEST_WORD
from hwmodels.files import names_file
from twin.errors import ModelError, UsageError
from twin.network.graph import Graph
from twin.network.model_file import CONTAINERS, MODELS, SUFFIXES, read_bytes

__all__ = ["SUFFIXES", "read_model"]

_ZOO_PREFIX = "zoo:"

_READERS = {".tflite": "tflite", ".onnx": "onnx", ".pte": "executorch", ".espdl": "espdl",
            ".json": "layer_list"}
"""Modules of this folder by the ending of what they read; loaded where a file is one."""


def read_model(path_or_name: str | Path, *, assume_unsupported: str | None = None) -> Graph:
    """Read a model file by its suffix, or build the zoo network of that name.

    Parameters
    ----------
    path_or_name : str or Path
        A .tflite, .onnx, .pte (ExecuTorch), .espdl (ESP-DL) or layer-list .json file, a file with
        a model inside (`container`), of several FILE:NAME, or a zoo name ("kws", "zoo:kws").
    assume_unsupported
        "copy" turns every operator this does not know into an assumed memory copy; by default
        they are refused.

    Returns
    -------
    Graph
        Verified: shapes, types and connections agree.

    Raises
    ------
    ModelError
        When the file is missing, malformed, or holds what this cannot read; names the file and,
        where it applies, operator and tensor.
    UsageError
        When `assume_unsupported` is not "copy".
    ToolMissingError
        When reading .onnx without the `onnx` extra.
    """
    if assume_unsupported not in (None, "copy"):
        raise UsageError(f"assume_unsupported {assume_unsupported!r} means nothing; accepted: copy")
    text = str(path_or_name)
    if not text.lower().endswith(SUFFIXES):
        from twin.network import zoo

        if zoo.is_known(text):
            return _build_zoo(text)
    if not names_file(text) and names_file(text.rpartition(":")[0]):
        return _read_contained(text, assume_unsupported) or _build_zoo(text)
    if os.path.exists(text):
        from twin.network.readers.other_formats import refuse_other_formats

        refuse_other_formats(text)
    suffix = Path(text).suffix.lower()
    if suffix not in CONTAINERS and names_file(text) and os.path.getsize(text):
        suffix = _recognise(text) or suffix
    if suffix in _READERS:
        graph = _find_reader(suffix)(text, assume_unsupported=assume_unsupported)
        if all(graph.tensors[i].shape[:1] <= (1,) for i in graph.inputs):
            return graph
        from twin.network.shapes import check_batch

        return check_batch(graph)
    return _read_contained(text, assume_unsupported) or _build_zoo(text)


def _recognise(path: str) -> str:
    """Return the ending of what a file's first bytes say it is; "" where they are no mark."""
    head = read_bytes(path)[:8]
    if head[4:6] == b"ET" and head[6:].isdigit():
        return ".pte"
    # ModelProto: ir_version (field 1) of 3 or more, then another field, by its tag.
    onnx = head[:1] == b"\x08" and len(head) == 8 and 3 <= head[1] < 32 and head[2] in _ONNX_TAGS
    return ".onnx" if onnx else ".tflite" if head[4:] == b"TFL3" else (
        ".espdl" if head[:4] == b"EDL2" else "")


_ONNX_TAGS = b"\x12\x1a\x22\x28\x32\x3a\x42"
"""Of the fields that follow: names of the producer, versions, texts, the graph, operator sets."""


def _find_reader(suffix: str) -> Callable[..., Graph]:
    name = _READERS[suffix]
    reader: Callable[..., Graph] = getattr(
        import_module(f"twin.network.readers.{name}"), f"read_{name}")
    return reader


def _read_contained(text: str, assume_unsupported: str | None) -> Graph | None:
    from twin.network.readers.container import open_container

    found = open_container(text)
    if found is None:
        return None
    graph = _find_reader(found.suffix)(text, assume_unsupported=assume_unsupported,
                                       content=found.content)
    note = f"model: {found.place} in {found.file}, {len(found.content):,} bytes"
    return replace(graph, name=found.name, notes=(note, *graph.notes))


def _build_zoo(text: str) -> Graph:
    from twin.network import zoo

    name = text.removeprefix(_ZOO_PREFIX)
    if zoo.is_known(name):
        return zoo.build(name)
    if not text.startswith(_ZOO_PREFIX) and (os.path.exists(text) or "/" in text):
        what = ("a directory" if os.path.isdir(text) else "no such file" if not os.path.exists(text)
                else "not a kind of model file this reads")
        raise ModelError(f"{text}: {what}; accepted: files ending {', '.join(MODELS)}, "
                         f"an archive, C array or program with one inside, or a zoo name "
                         f"({', '.join(zoo.NAMES)})")
    near = get_close_matches(name[:LONGEST_WORD], zoo.NAMES, n=1)
    raise ModelError(f"{text}: no zoo network has that name and no model file ends so; "
                     f"accepted: files ending {', '.join(MODELS)}, or a zoo name "
                     f"({', '.join(zoo.NAMES)})" + (f"; did you mean {near[0]}?" if near else ""))
