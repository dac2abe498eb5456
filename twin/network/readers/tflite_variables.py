"""Variables of a .tflite file: which keep a state, which hold weights, and which nobody fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from twin.network.graph import Tensor
from twin.network.readers.tflite_nodes import Node


@dataclass(slots=True, kw_only=True)
class Variables:
    """What is known of the variables of a file.

    Parameters
    ----------
    names
        The variable behind each handle: its name, or the handle where it has none.
    assigned
        Variables an inference changes.
    filled
        What variables are filled with before the first inference; None where it is computed.
    missing
        Bytes of the variables read that nothing fills, by the operator that reads first.
    """

    names: dict[int, int | bytes] = field(default_factory=dict)
    assigned: set[int | bytes] = field(default_factory=set)
    filled: dict[int | bytes, np.ndarray | None] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    def values(self, key: int | bytes, place: str, like: Tensor) -> np.ndarray | None:
        """Return what fills a variable: None for a state from zero, zeros for lost weights."""
        known = self.filled.get(key)
        if known is not None and known.shape == like.shape:
            return known
        if key in self.assigned or key in self.filled:
            return None
        self.missing[place] = like.size_bytes
        return np.zeros(like.shape, "int8" if like.dtype == "int4" else like.dtype)

    def note_missing(self) -> Sequence[str]:
        """Say which weights the file does not hold."""
        if not self.missing:
            return ()
        more = f" and {len(self.missing) - 1} more read" if len(self.missing) > 1 else " reads"
        return (f"weights missing: {next(iter(self.missing))}{more} variables this file never "
                f"fills: {sum(self.missing.values()):,} bytes, counted as parameters and in flash, "
                "their values not known; export with variables made constant (from_keras_model, "
                "from_saved_model)",)


def find_variables(nodes: Sequence[Node], starters: Sequence[Node]) -> Variables:
    """Return what operators tell of variables.

    Parameters
    ----------
    starters
        Run once, before the first.
    """
    found = Variables()
    for node in (*starters, *nodes):
        if node.builtin == "VAR_HANDLE" and node.outputs:
            shared = node.options("VarHandleOptions").SharedName()
            found.names[node.outputs[0]] = shared or node.outputs[0]
    for node in nodes:
        if node.builtin == "ASSIGN_VARIABLE":
            found.assigned.add(found.names.get(node.input(0), node.input(0)))
    for node in starters:
        if node.builtin == "ASSIGN_VARIABLE":
            found.filled[found.names.get(node.input(0), node.input(0))] = (
                node.tensor(node.input(1)).data)
    return found
