"""What a layer asks of a counted kernel: the variant of the code, and how often each part runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from twin.network.graph import Graph, Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How often the parts of a kernel run.

    Parameters
    ----------
    variant : str
        Which code of the operator runs: types, and what shapes choose ("int8 same").
    path : str
        What an optimised library's own dispatch chooses beyond that ("3x3").
    terms : mapping of str to float
        How often: "call" (once), "element", "row", ...; each has a coefficient per class.
    """

    variant: str
    path: str = ""
    terms: Mapping[str, float]

    def code(self, kernels: str) -> str:
        """Return which code runs: with the path, for kernels that have several."""
        return f"{self.variant} {self.path}" if self.path and kernels != "reference" \
            else self.variant


Describe = Callable[[Graph, Layer], Work]
"""(graph, layer) -> its work."""

Terms = Mapping[str, Describe]
"""By operator, what a file of `terms/` describes."""
