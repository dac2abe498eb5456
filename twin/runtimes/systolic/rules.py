"""A compiler that runs convolutions and fully connected layers as products on a systolic array."""

from __future__ import annotations

import math
from dataclasses import field, replace

from hwmodels.frozen import frozen
from hwmodels.schedule import Npu
from twin.network.graph import GraphLayer
from twin.network.operators import layer_macs
from twin.runtimes.partition import Work
from twin.runtimes.systolic.array import DATAFLOWS, count_cycles
from twin.runtimes.units import UnitRules


@frozen
class Systolic(UnitRules):
    """Rules by role, with the cycles of an array for all that multiplies.

    Parameters
    ----------
    dataflow
        One of `DATAFLOWS`.
    """

    dataflow: str = field(metadata={"accepted": DATAFLOWS})
    rows: int
    columns: int

    def plan_work(self, site: GraphLayer, npu: Npu) -> Work:
        """Return a layer's work; a depthwise convolution is a product for each channel."""
        work = super(Systolic, self).plan_work(site, npu)
        if not self.multiplies(site.layer):
            return work
        outputs = site.shape
        pixels, macs = math.prod(outputs[:-1]), layer_macs(site.graph, site.layer)
        filters = outputs[-1] // site.layer.groups
        depth = macs // (pixels * outputs[-1])
        cycles = site.layer.groups * count_cycles(
            self.dataflow, (pixels, filters, depth), (self.rows, self.columns))
        unit = replace(work.units[0], compute_cycles=cycles,
                       useful=min(1.0, macs / (cycles * self.rows * self.columns)))
        return replace(work, units=(unit, *work.units[1:]))
