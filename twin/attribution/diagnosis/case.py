"""What is diagnosed: a deployment as asked for, what it was predicted to take, and the pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from calibration.measurement.measurement import Measurement
from hwmodels.errors import TwinError
from hwmodels.frozen import entity
from twin.attribution.diagnosis.again import alter, is_masked
from twin.attribution.diagnosis.fault_effects import Effect, Forecasts, Pattern, name_effect
from twin.attribution.diagnosis.faults import Fault
from twin.attribution.side import Side
from twin.deployment.deployment import Deployment
from twin.pricing.calibration import Calibration
from twin.pricing.prediction import Prediction

Progress = Callable[[int, int, str], None]
"""Called with how many faults were predicted, how many there are, and the next one's name."""


@entity
class Again:
    """A second measurement of what a case is of.

    Parameters
    ----------
    changes
        What was otherwise, by dotted path.
    pattern
        Of the same layers.
    forecasts
        Keeps what is predicted.
    """

    measurement: Measurement
    changes: Mapping[str, object]
    base: Prediction
    pattern: Pattern
    forecasts: Forecasts

    def foresee(self, fault: Fault, case: Case) -> Effect:
        """Predict what a fault does there; nothing, where it cannot be there."""
        if known := self.forecasts.effects.get(name_effect(fault, self.pattern)):
            return known
        try:
            altered = alter(fault, case.deployment, {**self.changes, **dict(fault.again)},
                            masked=is_masked(self.measurement))
        except TwinError:
            altered = Fault(kind=fault.kind, name=fault.name, remedy="")
        return self.forecasts.foresee(altered, self.base, case.prices, self.pattern)


@entity
class Case:
    """One measurement to diagnose.

    Parameters
    ----------
    ours, theirs
        What was predicted as declared, and what was measured.
    pattern
        What both have.
    forecasts
        Keeps what is predicted.
    tell
        As `Progress` says.
    also
        A second measurement, taken otherwise.
    """

    deployment: Deployment
    prices: Calibration | None
    base: Prediction
    ours: Side
    theirs: Side
    pattern: Pattern
    forecasts: Forecasts
    tell: Progress
    also: Again | None = None

    def foresee(self, faults: Sequence[Fault], started: int = 0) -> list[Effect]:
        """Predict what each fault would do, behind so many others."""
        effects, total = [], started + len(faults)
        for number, fault in enumerate(faults):
            self.tell(started + number, total, fault.name)
            effect = self.forecasts.foresee(fault, self.base, self.prices, self.pattern)
            effects.append(effect if self.also is None else replace(
                effect, also=self.also.foresee(fault, self)))
        self.tell(total, total, "")
        return effects
