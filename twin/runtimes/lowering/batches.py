"""Kernels of a windowed layer on several inputs: the library's loop over the batch."""

from __future__ import annotations

from dataclasses import replace

from hwmodels.kernel import Kernel, Lowered
from twin.network.graph import Graph
from twin.runtimes.lowering import Lowering, Site


def lower_batch(lowering: Lowering, site: Site) -> Lowered:
    """Return the kernels of every input of a batch, one after another.

    Parameters
    ----------
    site
        Of a layer with a batch in the first axis of what it reads and writes; operands of all.

    Returns
    -------
    tuple of Kernel
        Each on its own part of input and output; weights are the same, and caches may hold them.

    Notes
    -----
    CMSIS-NN and TFLite Micro loop over the batch outside of everything else.
    """
    batch = site.source.shape[0]
    one = _cut(site)
    kernels: list[Kernel] = []
    for turn in range(batch):
        operands = tuple(
            replace(operand, address=operand.address + turn * (operand.size_bytes // batch),
                    size_bytes=operand.size_bytes // batch)
            if operand.role in ("input", "output") else operand for operand in site.operands)
        kernels += lowering.lower(replace(site, graph=one, operands=operands))
    return tuple(kernels)


def _cut(site: Site) -> Graph:
    """Return the graph with one input in place of the batch in what a layer reads and writes."""
    tensors = list(site.graph.tensors)
    for tensor_id in site.layer.tensors:
        if tensor_id >= 0 and not tensors[tensor_id].is_constant:
            tensor = tensors[tensor_id]
            tensors[tensor_id] = replace(tensor, shape=(1, *tensor.shape[1:]))
    return replace(site.graph, tensors=tuple(tensors))
