"""The fewest cycles a network can take: its instructions, as many at once as the core issues.

    least = instructions / instructions a cycle / doubt

A measurement below it is of another network, clock or unit, and no price is learnt from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hwmodels.board.facts import Board
from hwmodels.core.file import load_core
from hwmodels.frozen import frozen
from hwmodels.quantities import drop_none, format_frequency, format_time, significant
from twin.deployment.deployment import Deployment
from twin.deployment.placement import layer_dtype
from twin.network.graph import Graph
from twin.network.operators import layer_macs
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction
from twin.pricing.roofs import npu_macs_per_cycle, peak_macs_per_cycle

DOUBT: Mapping[str, tuple[float, float | None]] = {
    "read": (1.1, 1.25), "open": (1.1, 2.0), "assumed": (2.0, None)}
"""By which factor fewer instructions may run than are counted, of a network and of a layer, by what
stands behind a library's loops. Published networks of use `fit` (whole, none is of a `read` one)
come to 0.66 of an open library's limit and to 1.51 of an assumed one's; layers of an assumed one
are not judged. The rest is assumed."""

LEAST_JUDGED_CYCLES = 10_000
"""A shorter layer may be a few ticks of the clock that timed it."""


@frozen
class Impossible:
    """What was measured faster than any core of its kind runs it.

    Parameters
    ----------
    layer
        In the model file; None is the whole network.
    cycles, least_cycles
        Measured, and the fewest there can be.
    instructions, per_cycle
        Counted, and the most the core issues.
    doubt
        Factor by which fewer instructions may run.
    """

    layer: int | None
    cycles: float
    least_cycles: float
    instructions: float
    per_cycle: float
    doubt: float
    core: str

    def __str__(self) -> str:
        """Say which layer, what was measured and what is possible, in one line."""
        what = "the whole network" if self.layer is None else f"layer {self.layer}"
        return (f"{what} in {self.cycles:,.0f} cycles: a {self.core} needs {self.least_cycles:,.0f}"
                f" at least ({self.instructions:,.0f} instructions, {self.per_cycle:g} a cycle at "
                f"most, count doubted by {self.doubt:g} x); another network, clock or unit?")


@frozen
class Unreachable:
    """More products in a time than the units of a board do, whatever the library.

    Parameters
    ----------
    macs
        Of the network, without dead channels.
    cycles, hertz
        Of the core's clock: measured, and its frequency.
    most
        MACs a cycle of that clock its units do at most.
    core
        Model and instruction set, and the accelerator beside it.
    layer
        In the model file; None is the whole network.
    """

    macs: int
    cycles: float
    hertz: float
    most: float
    core: str
    layer: int | None = None

    def tell(self, whose: str = "") -> str:
        """Say what was measured, and what is possible at which clock and whose, in one line."""
        part = "" if self.layer is None else f"layer {self.layer}: "
        return (f"{part}{self.macs:,} MACs in {format_time(1e6 * self.cycles / self.hertz)} are "
                f"{significant(self.macs / self.cycles, 3)} in each cycle of the core at "
                f"{format_frequency(self.hertz)}{whose}; {self.core} does {self.most:g} at "
                "most, with any library")


def find_unreachable(graph: Graph, board: Board, cycles: Mapping[int | None, float],
                     hertz: float) -> Unreachable | None:
    """Return by how much a measurement outruns the units that multiply; None where it does not.

    Parameters
    ----------
    cycles
        Of the core's clock, by layer in the model file; None is the whole network, which comes
        first.

    Notes
    -----
    least = sum over types of MACs / peak MACs a cycle (`peak_macs_per_cycle`), an accelerator's
    peak added to the core's. Dead channels, which some libraries leave out, are not counted, nor
    are types whose peak is not known. Ignores arithmetic with fewer products (Winograd's) and
    weights of zero that are skipped.
    """
    from twin.network.rewrites.dead_channels import drop_dead_channels

    live = drop_dead_channels(graph)
    beside = npu_macs_per_cycle(board)
    if beside is not None and board.npu is not None:
        beside *= board.clock(board.npu.clock).frequency_hz / hertz
    most = [(layer_macs(live, layer), peak_macs_per_cycle(board, layer_dtype(live, layer)))
            for layer in live.layers]
    least = [macs / (peak + (beside or 0.0)) if peak else 0.0 for macs, peak in most]
    core = f"a {board.core.model} ({board.core.isa})" + (" with its NPU" if beside else "")
    for place in sorted(cycles, key=lambda layer: -1 if layer is None else layer):
        parts = range(len(most)) if place is None else [place]
        macs = sum(most[part][0] for part in parts if least[part])
        fewest = sum(least[part] for part in parts)
        if 0 < cycles[place] < fewest and (place is None or fewest >= LEAST_JUDGED_CYCLES):
            return Unreachable(macs=macs, cycles=cycles[place], hertz=hertz, most=macs / fewest,
                               core=core, layer=place)
    return None


def find_impossible(deployment: Deployment, cycles: Iterable[tuple[int | None, float]],
                    ) -> Impossible | None:
    """Return what was measured below the fewest cycles there can be, the whole network first.

    Parameters
    ----------
    cycles : iterable of (int or None, float)
        Measured, of the core's clock, by layer in the model file; None is the whole network.

    Returns
    -------
    Impossible or None
        None where all is possible, or an accelerator runs it.
    """
    measured = [(layer, value) for layer, value in cycles if value > 0]
    if deployment.accelerated or not measured:
        return None
    prediction = predict(deployment)
    found = drop_none(_judge(prediction, layer, value) for layer, value in measured)
    return min(found, key=lambda one: (one.layer is not None, one.cycles / one.least_cycles),
               default=None)


def _judge(prediction: Prediction, layer: int | None, cycles: float) -> Impossible | None:
    deployment = prediction.deployment
    timing = load_core(deployment.board.core.model)
    whole, single = DOUBT[deployment.runtime.structure]
    doubt = whole if layer is None else single
    per_cycle = max(float(timing.issue_width), timing.max_ipc)
    instructions = float(sum(one.instructions for one in prediction.layers
                             if layer in (None, one.index)))
    if doubt is None:
        return None
    least = instructions / per_cycle / doubt
    if cycles >= least or (layer is not None and least < LEAST_JUDGED_CYCLES):
        return None
    return Impossible(layer=layer, cycles=cycles, least_cycles=least, instructions=instructions,
                      per_cycle=per_cycle, doubt=doubt, core=deployment.board.core.model)
