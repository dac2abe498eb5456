"""Files of other tools that hold a network this does not read: what makes one that is read."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from hwmodels.file_cache import read_yaml_once
from hwmodels.files import LARGEST_BYTES, open_regular
from twin.errors import ModelError

_HEAD_BYTES = 1 << 16

_SUFFIXES = {".mlmodel": "a Core ML model", ".mlpackage": "a Core ML model"}
"""Of formats whose content has no mark."""


def refuse_other_formats(path: str) -> None:
    """Refuse a file of another tool's format, known by its content.

    Raises
    ------
    ModelError
        Saying which command of which tool makes a file that is read.
    """
    file = Path(path)
    try:
        kind = _find_kind(file) or (_SUFFIXES.get(file.suffix.lower()) if file.exists() else None)
    except (OSError, ValueError, EOFError, tarfile.TarError, zipfile.BadZipFile):
        return  # its reader says what is wrong with it
    if kind is not None:
        advice = read_yaml_once(Path(__file__).with_suffix(".yaml"))[kind]
        raise ModelError(f"{path}: {kind}, which this does not read; {advice}")


def _find_kind(file: Path) -> str | None:
    if (file / "saved_model.pb").is_file():
        return "a SavedModel"
    if not file.is_file():
        return None
    with open_regular(file, LARGEST_BYTES) as stream:
        head = stream.read(_HEAD_BYTES)
        if head[:4] == b"PK\3\4":
            with zipfile.ZipFile(stream) as archive:
                return _find_zipped({name.rpartition("/")[2] for name in archive.namelist()})
        if head[257:262] == b"ustar":
            stream.seek(0)
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                names = {archive_name.removeprefix("./") for archive_name in archive.getnames()}
            found = "metadata.json" in names and any(one.startswith("codegen") for one in names)
            return "a Model Library Format archive" if found else None
    if file.suffix.lower() == ".pb":
        # First fields: the nodes of a GraphDef; version and meta graphs of a SavedModel.
        return "a TensorFlow graph" if head[:1] == b"\x0a" else (
            "a SavedModel" if head[:3] == b"\x08\x01\x12" else "a protobuf that is not a network")
    if head[:8] == b"\x89HDF\r\n\x1a\n":
        return "weights of a Keras model" if file.name.endswith(".weights.h5") else "a Keras model"
    if head.startswith(b"version https://git-lfs"):
        return "a pointer of Git LFS"
    if head[:4] in (b"EDL1", b"PDL1", b"PDL2"):
        return "an ESP-DL model of another form"
    if head[:2] == b"\x80\2" and file.suffix.lower() in (".pt", ".pth", ".bin"):
        return "a PyTorch model or its weights"
    if head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < LARGEST_BYTES:
        return "weights without layers"
    return "C code of ST Edge AI" if any(
        mark in head for mark in (
            b"AI_TENSOR_OBJ_DECLARE(", b"stai_network_run", b"AST Embedded Analytics")) else None


def _find_zipped(names: set[str]) -> str | None:
    if {"config.json", "metadata.json"} <= names and "model.weights.h5" in names:
        return "a Keras model"
    if "archive_format" in names or "serialized_exported_program.json" in names:
        return "a PyTorch exported program"
    if "saved_model.pb" in names:
        return "a SavedModel"
    return "a PyTorch model or its weights" if "data.pkl" in names else None
