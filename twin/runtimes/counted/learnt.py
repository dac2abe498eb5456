"""Kernels read from programs: blocks and operands, by how often a layer's loops turn.

Coefficients are those of counted kernels, kept for each block instead of each class of
instructions: a core schedules the library's own code. `twin.program.library` fits them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hwmodels.isa import read_name
from twin.network.graph import Graph, Layer
from twin.runtimes.counted.shapes import DECISIVE, FEATURES, measure_shape, tell_features
from twin.runtimes.lowering.blocks import count_instructions

Series = tuple[tuple[str, float], ...]
"""(term, coefficient): how often something happens is their sum over a layer's terms."""


def total(series: Series, terms: Mapping[str, float]) -> float:
    """Return how often something happens in a layer of these terms."""
    return math.fsum(often * terms.get(name, 0.0) for name, often in series)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntBlock:
    """A block of a library's code.

    Parameters
    ----------
    name, code : str
        Function and place in it, and instructions.
    cause : str or None
        As a kernel's block has it.
    loops : bool
        Whether its closing branch goes to its own start.
    trips, entries : Series
        How often it runs, and that its closing branch is not taken.
    """

    name: str
    code: str
    cause: str | None
    loops: bool
    trips: Series
    entries: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntOperand:
    """How an operand is accessed.

    Parameters
    ----------
    name : str
        As a layer's operands are called; those like "input2" go by "input".
    reads, writes : Series
        Accesses.
    each : float
        Of what turns read whole: reads of a byte of it in a turn, in place of `reads`.
    read_bytes, write_bytes : float
        Moved by one.
    sweeps : float
        How often it is read from its start in one turn: about 1 where each turn reads all of it.
    size : Series
        Bytes, of what a kernel keeps for itself.
    """

    name: str
    reads: Series
    writes: Series
    each: float
    read_bytes: float
    write_bytes: float
    sweeps: float
    size: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntKernel:
    """What runs an operator in layers of some kind.

    Parameters
    ----------
    op, dtype, name : str
        Operator, type of its activations, and the function most instructions are of.
    seen : tuple of mapping
        Features of the layers it was seen in.
    shapes : mapping of str to (float, float)
        Least and greatest sizes of layers its function ran.
    layers, distinct : int
        How many there were, and how many shapes its function ran.
    blocks : tuple of LearntBlock
        The code.
    rest : Series
        Instructions of blocks too rarely run to be kept.
    classes : mapping of str to float
        Shares of those by class.
    along : str
        What the outermost loop turns over: "pixels" or "channels".
    turns : Series
        How often.
    operands : tuple of LearntOperand
        What it touches.
    code_bytes : int
        Of its functions.
    residual : float
        Relative error of the instructions of a layer, root mean square.
    """

    op: str
    dtype: str
    name: str
    seen: tuple[Mapping[str, str], ...]
    shapes: Mapping[str, tuple[float, float]]
    layers: int
    distinct: int
    blocks: tuple[LearntBlock, ...]
    rest: Series
    classes: Mapping[str, float]
    along: str
    turns: Series
    operands: tuple[LearntOperand, ...]
    code_bytes: int
    residual: float

    def operand(self, name: str) -> LearntOperand | None:
        """Return how an operand is accessed; None where it was not seen to be."""
        return next((one for one in self.operands if one.name == name), None)

    def instructions(self, terms: Mapping[str, float]) -> float:
        """Return what a layer of these terms executes."""
        return total(self.rest, terms) + math.fsum(
            total(block.trips, terms) * count_instructions(block.code) for block in self.blocks)

    def distance(self, graph: Graph, layer: Layer) -> float:
        """Return how far a layer's shape lies outside of those seen, in powers of e."""
        return sum(max(0.0, math.log(self.shapes[name][0] / size),
                       math.log(size / self.shapes[name][1]))
                   for name, size in measure_shape(graph, layer).items() if name in self.shapes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What was read of a library.

    Parameters
    ----------
    sha256 : str
        Of all of it.
    isa, core : str
        What its code was compiled for, and ran on.
    sources : tuple of str
        Programs and networks it was read from.
    kernels : tuple of LearntKernel
        By operator, in the order of the file.
    observed : mapping
        The observations, as the file has them: only learning more needs them.
    """

    sha256: str
    isa: str
    core: str
    sources: tuple[str, ...] = field(repr=False)
    kernels: tuple[LearntKernel, ...] = field(repr=False)
    observed: Mapping[str, Any] = field(repr=False, compare=False)

    def __hash__(self) -> int:
        """Follow the content."""
        return hash(self.sha256)

    def choose(self, graph: Graph, layer: Layer, dtype: str) -> tuple[LearntKernel | None, bool]:
        """Return the kernel of the layers most like one, and whether it stands in for another."""
        features = tell_features(graph, layer)
        found = [(_agree(features, seen), kernel) for kernel in self.kernels
                 if (kernel.op, kernel.dtype) == (layer.op, dtype) for seen in kernel.seen]
        if not found:
            return None, True
        best = max(score for score, _ in found)
        near = [kernel for score, kernel in found if score == best]
        kernel = min(near, key=lambda one: one.distance(graph, layer))
        return kernel, not any(all(features.get(name) == seen.get(name) for name in DECISIVE)
                               for seen in kernel.seen)

    def knows(self, op: str, dtype: str) -> bool:
        """Whether an operator was seen."""
        return any((one.op, one.dtype) == (op, dtype) for one in self.kernels)


def _agree(features: Mapping[str, str], seen: Mapping[str, str]) -> int:
    return sum(weight for name, weight in FEATURES.items()
               if features.get(name) == seen.get(name))


def from_plain(document: Mapping[str, Any], sha256: str) -> Learnt:
    """Return what a runtime's file says was read.

    Parameters
    ----------
    document : mapping
        Its `learnt`, as `to_plain` made it.
    sha256 : str
        Of it.

    Raises
    ------
    KeyError, TypeError, ValueError
        When it says something else.
    """
    return Learnt(
        sha256=sha256, isa=read_name(str(document["isa"])),
        core=read_name(str(document["core"])),
        sources=tuple(str(one) for one in document["sources"]),
        kernels=tuple(_read_kernel(one) for one in document["kernels"]),
        observed=document["observed"])


def _read_kernel(told: Mapping[str, Any]) -> LearntKernel:
    plain = {name: told[name] for name in (
        "op", "dtype", "name", "layers", "distinct", "along", "code_bytes", "residual")}
    return LearntKernel(
        **plain, seen=tuple(dict(one) for one in told["seen"]),
        shapes={name: (float(low), float(high)) for name, (low, high) in told["shapes"].items()},
        blocks=tuple(LearntBlock(
            name=str(one["name"]), code=str(one["code"]), cause=one.get("cause"),
            loops=bool(one.get("loops", False)), trips=_read_series(one["trips"]),
            entries=_read_series(one.get("entries", one["trips"])))
            for one in told["blocks"]),
        rest=_read_series(told["rest"]),
        classes={str(name): float(share) for name, share in told["classes"].items()},
        turns=_read_series(told["turns"]),
        operands=tuple(LearntOperand(
            name=str(one["name"]), reads=_read_series(one["reads"]),
            writes=_read_series(one["writes"]), each=float(one["each"]),
            read_bytes=float(one["read_bytes"]),
            write_bytes=float(one["write_bytes"]), sweeps=float(one["sweeps"]),
            size=_read_series(one["size"])) for one in told["operands"]))


def _read_series(told: Mapping[str, float]) -> Series:
    return tuple((str(name), float(often)) for name, often in told.items())


def to_plain(kernels: Sequence[LearntKernel]) -> list[dict[str, Any]]:
    """Return kernels as a file has them."""
    return [{
        **{name: getattr(one, name) for name in (
            "op", "dtype", "name", "layers", "distinct", "along", "code_bytes")},
        "residual": round(one.residual, 5), "seen": [dict(features) for features in one.seen],
        "shapes": {name: list(bounds) for name, bounds in one.shapes.items()},
        "turns": _write_series(one.turns), "rest": _write_series(one.rest),
        "classes": {name: round(share, 5) for name, share in one.classes.items()},
        "operands": [{
            "name": operand.name, "reads": _write_series(operand.reads),
            "writes": _write_series(operand.writes), "each": float(f"{operand.each:.6g}"),
            "read_bytes": round(operand.read_bytes, 4),
            "write_bytes": round(operand.write_bytes, 4), "sweeps": round(operand.sweeps, 4),
            "size": _write_series(operand.size)} for operand in one.operands],
        "blocks": [{
            "name": block.name, "code": block.code,
            **({"cause": block.cause} if block.cause else {}),
            **({"loops": True} if block.loops else {}),
            "trips": _write_series(block.trips),
            **({"entries": _write_series(block.entries)} if block.entries != block.trips else {})}
            for block in one.blocks]} for one in kernels]


def _write_series(series: Series) -> dict[str, float]:
    return {name: float(f"{often:.9g}") for name, often in series}
