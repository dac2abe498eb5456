"""An Einsum of one or two operands as transpositions and a matrix product."""

from __future__ import annotations

import math
import re

from twin.network.readers.onnx_nodes import Node, Rewriter

_SHAPE = re.compile(r"(\w+)(?:,(\w+))?->(\w*)")


def write_einsum(rewriter: Rewriter) -> list[Node] | None:
    """Write an equation without repeated or broadcast labels as simpler nodes.

    Notes
    -----
    Labels of both operands and the result count batches; of both but not the result, products.
    """
    node, shapes = rewriter.node, rewriter.model.shapes
    parsed = _SHAPE.fullmatch(node.option("equation", "").replace(" ", ""))
    if parsed is None or any(len(set(labels)) != len(labels)
                             for labels in parsed.groups() if labels):
        return None
    left, right, result = parsed.groups()
    if any(len(labels) != len(shapes[name]) for labels, name in zip(
            (left, right), node.inputs, strict=False) if labels):
        return None
    sizes = dict(zip(left, shapes[node.source], strict=True))
    if right is None:
        return _write_one(rewriter, left, result)
    sizes |= dict(zip(right, shapes[node.inputs[1]], strict=True))
    batch = [label for label in left if label in right and label in result]
    inner = [label for label in left if label in right and label not in result]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    if not inner or set(rows + columns) - set(result):
        return None
    extent = {"".join(part): math.prod(sizes[label] for label in part)
              for part in (batch, inner, rows, columns)}
    one = _arranged(rewriter, 0, left, [*batch, *rows, *inner], [
        extent["".join(part)] for part in (batch, rows, inner)])
    other = _arranged(rewriter, 1, right, [*batch, *inner, *columns], [
        extent["".join(part)] for part in (batch, inner, columns)])
    product = rewriter.add("MatMul", [one, other], [
        extent["".join(part)] for part in (batch, rows, columns)])
    natural = [*batch, *rows, *columns]
    whole = rewriter.add("Reshape", [product], [sizes[label] for label in natural])
    perm = [natural.index(label) for label in result]
    if perm != sorted(perm):
        rewriter.add("Transpose", [whole], perm=perm)
    return rewriter.finish()


def _write_one(rewriter: Rewriter, labels: str, result: str) -> list[Node] | None:
    """Permute what stays and sum what does not."""
    name = rewriter.node.source
    gone = [place for place, label in enumerate(labels) if label not in result]
    if gone:
        name = rewriter.reduce("ReduceSum", name, gone, keep=False)
    left = [label for label in labels if label in result]
    rewriter.add("Transpose", [name], perm=[left.index(label) for label in result])
    return rewriter.finish()


def _arranged(rewriter: Rewriter, place: int, labels: str, order: list[str],
              shape: list[int]) -> str:
    """Operand with its labels in that order, put together to three dimensions."""
    name = rewriter.node.inputs[place]
    perm = [labels.index(label) for label in order]
    if perm != sorted(perm):
        given = rewriter.model.shapes[name]
        name = rewriter.add("Transpose", [name], [given[axis] for axis in perm], perm=perm)
    return rewriter.add("Reshape", [name], shape)
