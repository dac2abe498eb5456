"""Whole networks as counted, layer by layer: judged, never fitted to.

Three networks of MLPerf Tiny, every library, core and build of the operators' table; the row of a
whole network holds what the interpreter adds between its layers.
"""

from __future__ import annotations

import csv
import gzip
from functools import cache

from benchmarks.operators.table import FOLDER, read_graphs
from hwmodels.frozen import frozen
from hwmodels.isa.instruction import parse_code
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy

WHOLE = "whole"
"""Place of a row that counts the whole call."""


@frozen
class CountedLayer:
    """One row.

    Parameters
    ----------
    network : str
        Name of its graph.
    layer : str
        Place of the layer, or `WHOLE`.
    kernels, core, level : str
        As of an operator.
    instructions : int
        Of one call.
    """

    network: str
    layer: str
    kernels: str
    core: str
    level: str
    instructions: int


@cache
def read_layers() -> tuple[CountedLayer, ...]:
    """Return all rows."""
    with gzip.open(FOLDER / "networks.csv.gz", "rt", encoding="utf-8") as file:
        return tuple(CountedLayer(**{**row, "instructions": int(row["instructions"])})
                     for row in csv.DictReader(file))


def execute_network(network: str, board: str, runtime: str) -> tuple[int, ...]:
    """Return the instructions of each layer as the twin lowers it."""
    deployment = deploy(read_graphs("networks.json.gz")[network], board, runtime=runtime)
    return tuple(
        sum(len(parse_code(block.code)) * block.trips for kernel in group
            for block in kernel.blocks) for group in lower_network(deployment))
