"""Counted rows: one operator, its shapes, its build, and what the second call executed.

Counted with an instruction-accurate emulator on code compiled from public sources: tflite-micro
90b983c2b3f1, CMSIS-NN 4ab83cc3cc98, GCC 12.2.1, kernels at -O2 or all at -Os, with assertions
("O2-dcheck") or without. Instructions and bytes are exact; on the Cortex-M55 classes were not
counted and `loads`, `stores` hold each element of a vector access, so bytes are compared there.
Inputs are random; what data steer (softmax) varies by some percent.
"""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hwmodels.frozen import frozen
from twin.network.graph import DTYPE_BITS, Graph, Layer, Quantization, Tensor, Window

FOLDER = Path(__file__).parent / "data"

CLASSES = ("alu", "load", "store", "branch", "mul", "div", "fp", "vector")


@frozen
class Counted:
    """One row.

    Parameters
    ----------
    model : str
        Name of its graph.
    kernels : str
        "reference" or "cmsis-nn".
    core, level : str
        "cortex-m4"; "O2", "Os" or "O2-dcheck".
    instructions, loads, stores, load_bytes, store_bytes : int
        Of one call.
    classes : mapping of str to int
        Instructions by class; empty where they were not told apart.
    use : str
        "fit"; "judge": nothing is fitted to it; "shape": counted with other inputs than rows of
        its code that are fitted to, so it tells which parts there are, and their proportions.
    """

    model: str
    kernels: str
    core: str
    level: str
    instructions: int
    loads: int
    stores: int
    load_bytes: int
    store_bytes: int
    classes: dict[str, int]
    use: str = "fit"


@cache
def read_rows() -> tuple[Counted, ...]:
    """Return all rows."""
    with gzip.open(FOLDER / "operators.csv.gz", "rt", encoding="utf-8") as file:
        return tuple(Counted(
            model=row["model"], kernels=row["kernels"], core=row["core"], level=row["level"],
            **{name: int(row[name]) for name in (
                "instructions", "loads", "stores", "load_bytes", "store_bytes")},
            classes={name: int(row[name]) for name in CLASSES if row[name]},
            use=row["use"])
            for row in csv.DictReader(file))


@cache
def read_graphs(file_name: str = "graphs.json.gz") -> dict[str, Graph]:
    """Return the graph of each row's model: shapes, types and options; constants are zero."""
    with gzip.open(FOLDER / file_name, "rt", encoding="utf-8") as file:
        return {name: make_graph(name, kept) for name, kept in json.load(file).items()}


def make_graph(name: str, kept: dict[str, Any]) -> Graph:
    """Return a graph from its kept form: one layer, or several under "layers"."""
    tensors = tuple(_make_tensor(place, *entry) for place, entry in enumerate(kept["tensors"]))
    layers = tuple(_make_layer(place, one) for place, one in enumerate(kept.get("layers", [kept])))
    written = {place for layer in layers for place in layer.outputs}
    return Graph(
        name=name, source=f"counted:{name}", sha256=f"{name:0>64}"[-64:], tensors=tensors,
        layers=layers, outputs=layers[-1].outputs,
        inputs=tuple(dict.fromkeys(
            place for layer in layers for place in layer.inputs
            if place >= 0 and place not in written and not tensors[place].is_constant)))


def _make_layer(place: int, kept: dict[str, Any]) -> Layer:
    window = kept["window"]
    return Layer(
        index=place, name="counted" if place == 0 else f"counted {place}", op=kept["op"],
        inputs=tuple(kept["inputs"]), outputs=tuple(kept["outputs"]),
        activation=kept["activation"], groups=kept["groups"],
        window=None if window is None else Window(
            kernel=tuple(window[0]), stride=tuple(window[1]), dilation=tuple(window[2]),
            padding=tuple(window[3])),
        options=tuple((key, _freeze(value)) for key, value in kept["options"]))


def _make_tensor(place: int, shape: list[int], dtype: str, constant: int, scales: int,
                 axis: int | None, scale: float = 0.5, zero_point: int = 0) -> Tensor:
    width = {"bool": "bool", "float32": "float32", "float16": "float16"}.get(
        dtype, f"{'u' if dtype.startswith('u') else ''}int{max(8, DTYPE_BITS[dtype])}")
    return Tensor(
        name=f"t{place}", shape=tuple(shape), dtype=dtype,
        data=np.zeros(shape, width) if constant else None,
        quantization=Quantization(scales=(scale,) * scales, zero_points=(zero_point,) * scales,
                                  axis=axis) if scales else None)


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
