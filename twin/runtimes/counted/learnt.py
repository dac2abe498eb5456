"""Kernels read from programs: blocks and operands, by how often a layer's loops turn.

Coefficients are those of counted kernels, kept for each block instead of each class of
instructions: a core schedules the library's own code. `twin.program.library` fits them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.frozen import NamedNumbers, frozen
from hwmodels.isa import read_name
from twin.network.graph import GraphLayer
from twin.runtimes.counted.shapes import DECISIVE, FEATURES, measure_shape, tell_features
from twin.runtimes.lowering.blocks import count_instructions

Series = NamedNumbers
"""(term, coefficient): how often something happens is their sum over a layer's terms."""


def total(series: Series, terms: Mapping[str, float]) -> float:
    """Return how often something happens in a layer of these terms."""
    return math.fsum(often * terms.get(name, 0.0) for name, often in series)


@frozen
class LearntBlock:
    """A block of a library's code.

    Parameters
    ----------
    name, code
        Function and place in it, and instructions.
    cause
        As a kernel's block has it.
    loops
        Whether its closing branch goes to its own start.
    trips, entries
        How often it runs, and that its closing branch is not taken.
    """

    name: str
    code: str
    cause: str | None
    loops: bool
    trips: Series
    entries: Series


@frozen
class LearntOperand:
    """How an operand is accessed.

    Parameters
    ----------
    name
        As a layer's operands are called; those like "input2" go by "input".
    each
        Of what turns read whole: reads of a byte of it in a turn, in place of `reads`.
    sweeps
        How often it is read from its start in one turn: about 1 where each turn reads all of it.
    size
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


@frozen
class LearntKernel:
    """What runs an operator in layers of some kind.

    Parameters
    ----------
    op, dtype, name
        Operator, type of its activations, and the function most instructions are of.
    seen
        Features of the layers it was seen in.
    shapes : mapping of str to (float, float)
        Least and greatest sizes of layers its function ran.
    layers, distinct
        How many there were, and how many shapes its function ran.
    rest
        Instructions of blocks too rarely run to be kept.
    classes
        Shares of those by class.
    along
        What the outermost loop turns over: "pixels" or "channels".
    turns
        How often.
    residual
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

    def distance(self, shape: Mapping[str, float]) -> float:
        """Return how far a layer's shape lies outside of those seen, in powers of e."""
        return sum(max(0.0, math.log(self.shapes[name][0] / size),
                       math.log(size / self.shapes[name][1]))
                   for name, size in shape.items() if name in self.shapes)


@frozen
class CheckedLayer:
    """A layer of a program, beside what is learnt from programs of other networks only.

    Parameters
    ----------
    instructions
        As its program ran it.
    predicted
        By the others; None where none of them has the operator.
    stands_in
        Whether that is code seen for another kernel size, stride or multiplier only.
    """

    network: str
    index: int
    op: str
    instructions: int
    predicted: float | None
    stands_in: bool

    @property
    def error(self) -> float | None:
        """Relative error of the prediction."""
        return None if self.predicted is None else self.predicted / max(1, self.instructions) - 1


@frozen
class Learnt:
    """What was read of a library.

    Parameters
    ----------
    isa, core
        What its code was compiled for, and ran on.
    sources
        Programs and networks it was read from.
    kernels
        By operator, in the order of the file.
    observed
        The observations, as the file has them: only learning more needs them.
    checked
        Each network's layers beside what the other networks teach; none of one network.
    """

    sha256: str
    isa: str
    core: str
    sources: tuple[str, ...] = field(repr=False)
    kernels: tuple[LearntKernel, ...] = field(repr=False)
    observed: Mapping[str, Any] = field(repr=False, compare=False)
    checked: tuple[CheckedLayer, ...] = field(default=(), repr=False, compare=False)

    def __hash__(self) -> int:
        """Follow the content."""
        return hash(self.sha256)

    def choose(self, step: GraphLayer, dtype: str) -> tuple[LearntKernel | None, bool]:
        """Return the kernel of the layers most like one, and whether it stands in for another."""
        return choose_kernel(self.kernels, step.op, dtype, tell_features(step), measure_shape(step))

    def knows(self, op: str, dtype: str) -> bool:
        """Whether an operator was seen."""
        return any((one.op, one.dtype) == (op, dtype) for one in self.kernels)


def choose_kernel(kernels: Sequence[LearntKernel], op: str, dtype: str,
                  features: Mapping[str, str], shape: Mapping[str, float]
                  ) -> tuple[LearntKernel | None, bool]:
    """Return the kernel of the layers most like one, and whether it stands in for another."""
    found = [(_agree(features, seen), kernel) for kernel in kernels
             if (kernel.op, kernel.dtype) == (op, dtype) for seen in kernel.seen]
    if not found:
        return None, True
    best = max(score for score, _ in found)
    kernel = min((kernel for score, kernel in found if score == best),
                 key=lambda one: one.distance(shape))
    return kernel, not any(all(features.get(name) == seen.get(name) for name in DECISIVE)
                           for seen in kernel.seen)


def _agree(features: Mapping[str, str], seen: Mapping[str, str]) -> int:
    return sum(weight for name, weight in FEATURES.items() if features.get(name) == seen.get(name))


def from_plain(document: Mapping[str, Any], sha256: str) -> Learnt:
    """Return what a runtime's file says was read.

    Parameters
    ----------
    document
        Its `learnt`, as `to_plain` made it.

    Raises
    ------
    KeyError, TypeError, ValueError
        When it says something else.
    """
    return Learnt(
        sha256=sha256, isa=read_name(str(document["isa"])),
        core=read_name(str(document["core"])),
        sources=tuple(str(one) for one in document["sources"]),
        kernels=tuple(_read(LearntKernel, one) for one in document["kernels"]),
        observed=document["observed"],
        checked=tuple(CheckedLayer(**one) for one in document.get("checked", ())))


def _figure(digits: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return (lambda value: float(f"{value:{digits}}")), float


_FORMS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    **dict.fromkeys(("trips", "entries", "reads", "writes", "size", "rest", "turns"), (
        lambda series: {term: float(f"{often:.9g}") for term, often in series},
        lambda fields: tuple((str(term), float(often)) for term, often in fields.items()))),
    **dict.fromkeys(("read_bytes", "write_bytes", "sweeps"), _figure(".4f")),
    "each": _figure(".6g"), "residual": _figure(".5f"),
    "seen": (lambda seen: [*map(dict, seen)], lambda fields: tuple(map(dict, fields))),
    "shapes": (lambda shapes: {size: list(bounds) for size, bounds in shapes.items()},
               lambda fields: {size: (float(low), float(high))
                             for size, (low, high) in fields.items()}),
    "classes": (lambda shares: {kind: round(share, 5) for kind, share in shares.items()},
                lambda fields: {str(kind): float(share) for kind, share in fields.items()}),
    "blocks": (lambda blocks: [*map(to_plain, blocks)],
               lambda fields: tuple(_read(LearntBlock, one) for one in fields)),
    "operands": (lambda operands: [*map(to_plain, operands)],
                 lambda fields: tuple(_read(LearntOperand, one) for one in fields))}
"""How attributes are written to a file, and read; others stand as they are."""
_AS_IS = (lambda value: value), (lambda value: value)


def to_plain(noun: Any) -> JsonObject:
    """Return a kernel, or a part of one, as a file has it: without what most blocks are."""
    found = {name: _FORMS.get(name, _AS_IS)[0](getattr(noun, name)) for name in noun.__slots__}
    if isinstance(noun, LearntBlock):
        usual = {"cause": None, "loops": False, "entries": found["trips"]}
        found = {name: value for name, value in found.items() if usual.get(name, usual) != value}
    return found


def _read(noun: type[Any], fields: Mapping[str, Any]) -> Any:
    if noun is LearntBlock:
        fields = {"cause": None, "loops": False, "entries": fields["trips"], **fields}
    return noun(**{name: _FORMS.get(name, _AS_IS)[1](fields[name]) for name in noun.__slots__})
