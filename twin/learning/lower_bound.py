"""The fewest cycles a network can take: its instructions, as many at once as the core issues.

    least = instructions / instructions a cycle / doubt

A measurement below it is of another network, clock or unit, and no price is learnt from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hwmodels.core.file import load_core
from twin.deployment.deployment import Deployment
from twin.prediction.prediction import Prediction, predict

DOUBT: Mapping[str, tuple[float, float | None]] = {
    "read": (1.1, 1.25), "open": (1.1, 2.0), "assumed": (2.0, None)}
"""By which factor fewer instructions may run than are counted, of a network and of a layer, by what
stands behind a library's loops. Published networks of use `fit` (whole, none is of a `read` one)
come to 0.66 of an open library's limit and to 1.51 of an assumed one's; layers of an assumed one
are not judged. The rest is assumed."""

LEAST_JUDGED_CYCLES = 10_000
"""A shorter layer may be a few ticks of the clock that timed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """What was measured faster than any core of its kind runs it.

    Parameters
    ----------
    layer : int or None
        In the model file; None is the whole network.
    cycles, least_cycles : float
        Measured, and the fewest there can be.
    instructions, per_cycle : float
        Counted, and the most the core issues.
    doubt : float
        Factor by which fewer instructions may run.
    core : str
        Its model.
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


def find_impossible(deployment: Deployment, cycles: Iterable[tuple[int | None, float]],
                    ) -> Impossible | None:
    """Return what was measured below the fewest cycles there can be, the whole network first.

    Parameters
    ----------
    deployment : Deployment
        What was measured.
    cycles : iterable of (int or None, float)
        Measured, of the core's clock, by layer in the model file; None is the whole network.

    Returns
    -------
    Impossible or None
        None where all is possible, or an accelerator runs it.
    """
    measured = [(layer, value) for layer, value in cycles if value > 0]
    if deployment.target.offloads or not measured:
        return None
    prediction = predict(deployment)
    found = [one for layer, value in measured
             if (one := _judge(prediction, layer, value)) is not None]
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
