"""A back end for `twin measure -b host --backend acme-numpy`: the project's own arithmetic.

Three methods: `setup` reads the model and keeps the input, `run` makes one inference, `counters`
(which may be absent) says what else was counted in that one.
"""

from pathlib import Path

import numpy as np

from twin.network.arithmetic import run_network
from twin.network.readers import read_model


class NumpyBackend:
    """Runs a .tflite file by NumPy, layer by layer."""

    SUFFIX = ".tflite"

    def setup(self, model: Path, data: bytes) -> str:
        """Read the model; return name and version."""
        self.graph, self.runs = read_model(str(model)), 0
        entry = self.graph.tensors[self.graph.inputs[0]]
        self.values = np.frombuffer(data, entry.dtype).reshape(entry.shape)
        return f"NumPy {np.__version__}"

    def run(self) -> object:
        """Make one inference."""
        self.runs += 1
        return run_network(self.graph, [self.values])

    def counters(self) -> dict[str, tuple[float, str]]:
        """Return what was counted in it, with units."""
        return {"acme_layers": (float(len(self.graph.layers)), "events")}
