"""Cycles of a matrix product on a systolic array, for three ways its operands move.

One operand stays in the array, a fold at a time, the others pass; every row and column starts a
cycle after its neighbour. A fold takes its passes, the skew of rows and columns, and where weights
or inputs stay the cycles to bring them:

    fold = passes + rows + columns - 2 (+ rows to fill)

References
----------
.. [1] Samajdar et al., "A Systematic Methodology for Characterizing Scalability of DNN Accelerators
   using SCALE-Sim", ISPASS 2020. Equal to the compute cycles (total less stalls) of the four
   reference outputs in scalesim-project/SCALE-Sim 1d62b68, test/general, which count from 0.
"""

from __future__ import annotations

import math

DATAFLOWS = ("output", "weight", "input")
"""What stays in the array."""


def count_cycles(dataflow: str, product: tuple[int, int, int], array: tuple[int, int]) -> int:
    """Return the cycles of a product, memory never waited for.

    Parameters
    ----------
    dataflow
        One of `DATAFLOWS`.
    product : tuple of (int, int, int)
        M rows of inputs, N filters, K values summed for each output.
    array : tuple of (int, int)
        Rows and columns.
    """
    inputs, filters, depth = product
    rows, columns = array
    down, across, passes = {"output": (inputs, filters, depth), "weight": (depth, filters, inputs),
                            "input": (depth, inputs, filters)}[dataflow]
    fill = 0 if dataflow == "output" else rows
    folds = math.ceil(down / rows) * math.ceil(across / columns)
    return folds * (passes + rows + columns - 2 + fill)
