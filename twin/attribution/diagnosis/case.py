"""What is diagnosed: a deployment as asked for, what it was predicted to take, and the pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twin.attribution.diagnosis.fault_effects import Effect, Forecasts, Pattern
from twin.attribution.diagnosis.faults import Fault
from twin.attribution.side import Side
from twin.deployment.deployment import Deployment
from twin.pricing.calibration import Calibration
from twin.pricing.prediction import Prediction

Progress = Callable[[int, int, str], None]
"""Told how many faults were predicted, how many there are, and the next one's name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One measurement to diagnose.

    Parameters
    ----------
    deployment : Deployment
        As asked for.
    prices : Calibration or None
        Learnt ones.
    base : Prediction
        Of the deployment.
    ours, theirs : Side
        What was predicted as declared, and what was measured.
    pattern : Pattern
        What both have.
    forecasts : Forecasts
        Keeps what is predicted.
    tell : callable
        As `Progress` says.
    """

    deployment: Deployment
    prices: Calibration | None
    base: Prediction
    ours: Side
    theirs: Side
    pattern: Pattern
    forecasts: Forecasts
    tell: Progress

    def foresee(self, faults: Sequence[Fault], begun: int = 0) -> list[Effect]:
        """Predict what each fault would do, behind so many others."""
        effects, total = [], begun + len(faults)
        for number, fault in enumerate(faults):
            self.tell(begun + number, total, fault.name)
            effects.append(self.forecasts.foresee(fault, self.base, self.prices, self.pattern))
        self.tell(total, total, "")
        return effects
