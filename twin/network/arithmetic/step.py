"""A layer that is computed: what the functions of every operator take."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodels.frozen import record
from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph, Layer, Shape, Tensor


@record
class Step:
    """A layer of a graph, and the values of the tensors it reads that are no constants."""

    graph: Graph
    layer: Layer
    inputs: tuple[np.ndarray, ...] = ()

    @property
    def data(self) -> np.ndarray:
        """The first of the values."""
        return self.inputs[0]

    @property
    def source(self) -> Tensor:
        """First tensor it reads."""
        return self.graph.input(self.layer)

    @property
    def weights(self) -> Tensor:
        """Second tensor it reads."""
        return self.graph.input(self.layer, 1)

    @property
    def target(self) -> Tensor:
        """First tensor it writes."""
        return self.graph.output(self.layer)

    @property
    def shape(self) -> Shape:
        """Of that."""
        return self.target.shape

    def option(self, name: str, default: Any = None) -> Any:
        """Return the option of that name, or the default."""
        return self.layer.option(name, default)

    def refuse(self, reason: str) -> RuntimeRefusedError:
        """Return the error that says why there is no kernel for it."""
        return RuntimeRefusedError(f"layer {self.layer.index} {self.layer.op}: {reason}")
