"""Gaussian error units that exporters spell out, put together again.

    x * 0.5 * (1 + erf(x / sqrt(2)))
    x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))

The order of factors and who divides by what differ from exporter to exporter. So the operators
around an Erf or a Tanh are evaluated on a few numbers, and are a GELU if they compute one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from twin.network.readers.onnx_nodes import Node, OnnxModel

_SAMPLES = np.linspace(-4.0, 4.0, 17)
_TOLERANCE = 2e-3
"""How far the two forms and half-precision constants may be from each other."""

_STEPS = 3
"""Operators behind the Erf or Tanh: one is added, two factors are multiplied."""

_DEPTH = 6
"""Operators before it, on the longest way."""

_ROOTS = 12
"""Values before it that are tried as what the unit is of."""

_erf = np.vectorize(math.erf)
_COMPUTE: Mapping[str, Callable[..., np.ndarray]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power,
    "Erf": lambda x: np.asarray(_erf(x)), "Tanh": np.tanh,
}


class _Pattern:
    """The operators around one Erf or Tanh, as a function of one value."""

    def __init__(self, model: OnnxModel, makers: Mapping[str, Node], root: str) -> None:
        self._model, self._makers, self._root = model, makers, root
        self.used: list[Node] = []
        self._known: dict[str, np.ndarray | None] = {}

    def evaluate(self, name: str, depth: int = 0) -> np.ndarray | None:
        """Values of a node's output for the samples as root; None where it is no such function."""
        if name == self._root:
            return _SAMPLES
        if name not in self._known:
            self._known[name] = self._compute(name, depth)
        return self._known[name]

    def _compute(self, name: str, depth: int) -> np.ndarray | None:
        constant = self._model.scalar(name)
        if constant is not None:
            return np.asarray(constant)
        node = self._makers.get(name)
        if node is None or node.op not in _COMPUTE or depth > _DEPTH + _STEPS:
            return None
        operands = [self.evaluate(other, depth + 1) for other in node.inputs]
        if any(operand is None for operand in operands):
            return None
        self.used.append(node)
        return _COMPUTE[node.op](*operands)


def fuse_gelu(model: OnnxModel) -> None:
    """Replace what computes a Gaussian error unit by one operator."""
    makers, consumers = model.makers(), model.consumers()
    gone: set[int] = set()
    for node in model.nodes:
        if node.op not in ("Erf", "Tanh"):
            continue
        found = _find(model, makers, consumers, node)
        if found is None:
            continue
        last, root, used = found
        gone |= {id(other) for other in used if other is not last}
        last.op, last.inputs, last.attributes, last.proto = "Gelu", [root], {}, None
    model.nodes = [node for node in model.nodes if id(node) not in gone]


def _find(model: OnnxModel, makers: Mapping[str, Node], consumers: Mapping[str, list[Node]],
          middle: Node) -> tuple[Node, str, list[Node]] | None:
    """Last operator of a unit around that one, the value it is of, and all its operators."""
    behind = consumers.get(middle.result, [])
    if len(behind) != 1 or behind[0].op != "Add":
        return None
    exact = 0.5 * _SAMPLES * (1 + _erf(_SAMPLES / math.sqrt(2)))
    for root in _ancestors(model, makers, middle.source):
        last = middle
        for _ in range(_STEPS):
            readers = consumers.get(last.result, [])
            if len(readers) != 1 or readers[0].op not in ("Add", "Mul"):
                break
            last = readers[0]
            pattern = _Pattern(model, makers, root)
            values = pattern.evaluate(last.result)
            if (values is not None and values.shape == exact.shape
                    and np.abs(values - exact).max() < _TOLERANCE
                    and _stand_alone(model, consumers, pattern.used, last)):
                return last, root, pattern.used
    return None


def _ancestors(model: OnnxModel, makers: Mapping[str, Node], name: str) -> list[str]:
    """Return computed values a value is made of by simple arithmetic, nearest first."""
    found, level = [name], [name]
    for _ in range(_DEPTH):
        level = list(dict.fromkeys(
            other for name in level if name in makers and makers[name].op in _COMPUTE
            for other in makers[name].inputs if other not in model.constants))
        found += [other for other in level if other not in found]
    return found[:_ROOTS]


def _stand_alone(model: OnnxModel, consumers: Mapping[str, list[Node]], used: list[Node],
                 last: Node) -> bool:
    """Whether nobody else reads what is computed on the way."""
    inside = {id(node) for node in used}
    return all(node is last or (node.result not in model.outputs and all(
        id(reader) in inside for reader in consumers.get(node.result, []))) for node in used)
