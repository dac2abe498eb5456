"""A loop of architecture search with the twin as its cost: which layer to narrow, and how far.

    python examples/narrow_layers.py [SHARE [MODEL [BOARD]]]

Layers lose channels one step at a time until the time is that share of what it was. Each step
takes the layer that saves most time for the worth it loses, by the derivative of the prediction
with each width. `worth` stands in for accuracy, which is not predicted: put what you measure there.
After Yang et al., NetAdapt, 2018.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping

import twin
from twin.pricing.derivative import WidthSlope

Cost = Callable[[Mapping[int, int]], twin.Derivative]
"""Channels by layer -> what that network costs, and its derivatives."""


def make_cost(model: str, board: str) -> Cost:
    """Return the cost function a search calls: it knows nothing of boards."""
    base = twin.deploy(model, board)

    def cost(channels: Mapping[int, int]) -> twin.Derivative:
        asked = "/".join(f"{layer}:{count}" for layer, count in channels.items())
        return twin.differentiate(base.replace({"network.channels": asked} if asked else {}))

    return cost


def worth(channels: int) -> float:
    """Return a stand-in for what channels are worth to accuracy: each further one less."""
    return math.log(channels)


def narrow(cost: Cost, share: float) -> tuple[dict[int, int], list[twin.Derivative]]:
    """Return the widths that meet a share of the time, and the costs on the way."""
    widths: dict[int, int] = {}
    costs = [cost(widths)]
    while costs[-1].time_us > share * costs[0].time_us:
        def lost_per_us(slope: WidthSlope) -> float:
            left = slope.channels - slope.removed
            return (worth(slope.channels) - worth(left)) / (slope.time_us * slope.removed)

        steps = [slope for slope in costs[-1].widths if slope.time_us > 0]
        if not steps:
            break
        best = min(steps, key=lost_per_us)
        widths[best.layers[0]] = best.channels - best.removed
        costs.append(cost(widths))
    return widths, costs


def main(share: float = 0.7, model: str = "kws", board: str = "nucleo_l4r5zi") -> None:
    """Print the widths and what they cost."""
    widths, costs = narrow(make_cost(model, board), share)
    for name, one in (("as it is", costs[0]), ("narrower", costs[-1])):
        energy = "not known" if one.energy_uj is None else f"{one.energy_uj / 1e3:.2f} mJ"
        print(f"{name}: {one.time_us / 1e3:.1f} ms, {energy}, {one.flash_bytes / 1024:.0f} KiB "
              "of flash")
    print(f"{len(costs) - 1} steps: " + ", ".join(
        f"layer {layer} keeps {count}" for layer, count in sorted(widths.items())))


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]), *sys.argv[2:4])
