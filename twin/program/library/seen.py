"""Layers of programs beside the layers of networks: what each is learnt from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.frozen import frozen, list_fields
from hwmodels.isa.instruction import Instruction
from hwmodels.quantities import sum_by_key
from twin.deployment.core import named_tensors
from twin.deployment.placement import layer_dtype
from twin.network.graph import Graph, GraphLayer, Layer
from twin.program.elf import Elf
from twin.program.library.blocks import Code, Counts, Run, cut_runs
from twin.program.library.matching import Ran, match_layers
from twin.runtimes.counted.mixture import CLASSES
from twin.runtimes.counted.shapes import count_terms, measure_shape, tell_features

LEAST_MARK_BYTES = 16
"""A constant shorter than this is found anywhere."""


@frozen
class Touched:
    """What a layer did with an operand: accesses, bytes moved, its extent, and sweeps over it."""

    size_bytes: int
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    sweeps: int


_TOUCHED = tuple(field.name for field in fields(Touched))


@frozen
class Seen:
    """A layer of a network, as a program ran it.

    Parameters
    ----------
    op, dtype, name
        Operator, type of activations, and the function it is a call of.
    features, terms, shape
        Of its shape: `twin.runtimes.counted.shapes`.
    runs : mapping of str to (int, int, int)
        By the run's name: how often it ran, followed itself, was left by its branch.
    blocks : mapping of str to (int, int)
        The same of basic blocks: `twin.program.library.blocks.cut_runs`.
    operands
        By the operand's name.
    """

    op: str
    dtype: str
    name: str
    network: str
    index: int
    features: Mapping[str, str]
    terms: Mapping[str, float]
    shape: Mapping[str, float]
    runs: Mapping[str, tuple[int, int, int]]
    blocks: Mapping[str, Counts]
    operands: Mapping[str, Touched]


def class_of(one: Instruction) -> str:
    """Return the class of `CLASSES` an instruction is counted in."""
    if one.vector:
        return "vector"
    if one.timing == "div":
        return "div"
    if one.timing.startswith("f_") and one.kind not in ("load", "store"):
        return "fp"
    named = {"mac": "mul", "call": "branch"}.get(one.kind, one.kind)
    return named if named in CLASSES else "alu"


def find_marks(elf: Elf, graph: Graph) -> tuple[tuple[int, int, int], ...]:
    """Return where a program keeps constants of a network: tensor, first address and end.

    Parameters
    ----------
    graph
        Its constants, as the file has them: what a library reorders is not found.
    """
    found = []
    for number, tensor in enumerate(graph.tensors):
        if tensor.data is None or tensor.size_bytes < LEAST_MARK_BYTES:
            continue
        content = tensor.data.tobytes()
        for _, address, piece in elf.pieces:
            place = piece.find(content)
            if place >= 0:
                found.append((number, address + place, address + place + len(content)))
                break
    return tuple(found)


def match_program(document: Mapping[str, Any], graph: Graph,
                  where: str) -> tuple[tuple[Seen, ...], dict[str, Run]]:
    """Return the layers of a network a program ran, and the code they are made of.

    Parameters
    ----------
    document
        Of `twin.program.observing`.
    graph
        The network, as its library runs it.
    where
        File of the program.

    Raises
    ------
    NotTheSameError
        Where they do not go together.
    """
    layers, runs = document["layers"], {}
    counts: list[dict[str, tuple[int, int, int]]] = []
    for layer in layers:
        counts.append({})
        for one in layer["blocks"]:
            name = f"{one['function']}+0x{one['start']:x}"
            runs[name] = Run(function=one["function"], start=one["start"],
                             sizes=tuple(one["sizes"]), code=one["code"],
                             cause=one["cause"], target=one["target"])
            counts[-1][name] = tuple(one["counts"])
    codes, blocks = cut_runs(runs, counts)
    ran = []
    multiplies = any(code.mac_lanes for code in codes.values())
    for layer, ran_in in zip(layers, blocks, strict=True):
        heavy = sum_by_key((codes[name].function, trips * codes[name].instructions)
                           for name, (trips, _) in ran_in.items())
        ran.append(Ran(name=layer["name"], functions=tuple(sorted(heavy, key=lambda one: -heavy[
            one])), macs=sum(
                trips * (codes[name].mac_lanes if multiplies else codes[name].products)
                for name, (trips, _) in ran_in.items())))
    pairs = match_layers(graph, ran, where)
    producers = {graph.layers[place].target_id: at for place, at in pairs}
    seen = []
    for place, at in pairs:
        layer = graph.layers[place]
        own = GraphLayer(graph, layer)
        seen.append(Seen(
            op=layer.op, dtype=layer_dtype(graph, layer), name=ran[at].name, network=graph.name,
            index=layer.index, features=tell_features(own),
            terms=count_terms(own), shape=measure_shape(own),
            runs=counts[at], blocks={},
            operands=_name_operands(graph, layer, layers[at]["operands"], producers)))
    return tuple(seen), runs


def _name_operands(graph: Graph, layer: Layer, accesses: Iterable[Mapping[str, Any]],
                   producers: Mapping[int, int]) -> dict[str, Touched]:
    """Return what was touched by the names a layer's operands have."""
    tensors = {tensor: name for name, _, tensor in reversed(named_tensors(graph, layer))}
    found: dict[str, list[Touched]] = {}
    has_input = any(one["role"] == "input" for one in accesses)
    sizes = {name: graph.tensors[tensor].size_bytes for tensor, name in tensors.items()}
    marked = any(one["role"] == "marked" and tensors.get(one["number"]) == "weights"
                 for one in accesses)
    for one in accesses:
        name = one["role"]
        touched = Touched(**{key: one[key] for key in _TOUCHED})
        if name == "stack":
            continue
        if name == "marked":
            name = tensors.get(one["number"], "parameters")
        elif name == "input":
            name = next((tensors[tensor] for tensor in layer.inputs
                         if producers.get(tensor) == one["number"] and tensor in tensors), "input")
        elif name == "constants":
            large = touched.size_bytes >= sizes.get("weights", 1 << 40) / 2
            name = "weights" if large and not marked else "parameters"
        elif name == "before":
            large = touched.size_bytes >= sizes.get("input", 1 << 40) / 3
            name = "input" if large and not has_input else "parameters"
        found.setdefault(name.rstrip("0123456789"), []).append(touched)
    return {name: Touched(**{key: sum(getattr(one, key) for one in several)
                             for key in _TOUCHED})
            for name, several in found.items()}


def cut_layers(seen: Sequence[Seen], runs: Mapping[str, Run]
               ) -> tuple[tuple[Seen, ...], dict[str, Code]]:
    """Return layers with their basic blocks, and those."""
    codes, counts = cut_runs(runs, [one.runs for one in seen])
    return tuple(replace(one, blocks=blocks)
                 for one, blocks in zip(seen, counts, strict=True)), codes


_RUN = ("function", "start", "sizes", "code", "cause", "target")


def to_observed(seen: Sequence[Seen], runs: Mapping[str, Run]) -> JsonObject:
    """Return layers and code as a file keeps them."""
    numbers = {name: number for number, name in enumerate(runs)}
    return {
        "code": [[list(value) if isinstance(value, tuple) else value for value in (
            getattr(run, key) for key in _RUN)] for run in runs.values()],
        "layers": [{
            **list_fields(one, "op", "dtype", "name", "network", "index"),
            "features": dict(one.features), "shape": dict(one.shape), "terms": dict(one.terms),
            "runs": [[numbers[name], *counts] for name, counts in one.runs.items()],
            "operands": {name: [getattr(touched, key) for key in _TOUCHED]
                         for name, touched in one.operands.items()}} for one in seen]}


def from_observed(document: Mapping[str, Any]) -> tuple[tuple[Seen, ...], dict[str, Run]]:
    """Return layers and code of a file.

    Raises
    ------
    KeyError, TypeError, ValueError
        When it says something else.
    """
    runs = [Run(**{**dict(zip(_RUN, values, strict=True)), "sizes": tuple(values[2])})
            for values in document["code"]]
    names = [f"{run.function}+0x{run.start:x}" for run in runs]
    return tuple(Seen(**{
        **one, "blocks": {}, "runs": {names[number]: tuple(counts)
                                      for number, *counts in one["runs"]},
        "operands": {name: Touched(**dict(zip(_TOUCHED, values, strict=True)))
                     for name, values in one["operands"].items()}})
        for one in document["layers"]), dict(zip(names, runs, strict=True))


def digest(document: Any) -> str:
    """Return a hash of plain data."""
    import json

    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
