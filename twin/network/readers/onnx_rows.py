"""Operators of .onnx files by family: reader and writer derive from these rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hwmodels.file_cache import read_yaml_once


class Row(NamedTuple):
    """An operator: its name in the file, ours, its family, attributes that are options.

    `written` is whether files with it are written, too, in operator set 17.
    """

    name: str
    op: str
    family: str
    attributes: Mapping[str, float]
    written: bool


ROWS = tuple(
    Row(name, op, row["family"], row.get("attributes", {}), row.get("written", False))
    for row in read_yaml_once(Path(__file__).with_name("onnx_rows.yaml"))
    for name, op in row["ops"].items())
"""Operators of these families, by the file's name and by ours."""

RESIZES = {"nearest": "resize_nearest", "linear": "resize_bilinear"}
"""Operators by the `mode` of a Resize."""
