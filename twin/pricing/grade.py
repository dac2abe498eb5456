"""How far to trust a prediction: whether it was measured here, or is a guess."""

from __future__ import annotations

from twin.deployment.deployment import Deployment
from twin.pricing.prediction import Prediction

GRADES = MEASURED_HERE, NOT_MEASURED_HERE, GUESS = "measured here", "not measured here", "guess"
"""How far to trust a prediction, best first."""


def lower_grade(grade: str, *, extrapolates: bool) -> str:
    """Return the grade of a prediction by that of its prices, and whether rows support it."""
    return NOT_MEASURED_HERE if extrapolates and grade == MEASURED_HERE else grade


def grade_prices(deployment: Deployment, measured: bool | None) -> str:
    """Return how far to trust prices: whether board and library were measured together.

    Prices of an accelerator are of its runtime's file, which names the boards measured, also
    where no calibration was asked for.

    Parameters
    ----------
    measured
        Whether learnt prices are of this board and library; None where none were learnt.
    """
    known = measured is not None
    if deployment.runtime.accelerated:
        spread = deployment.runtime.mapping.spread
        measured = measured or deployment.board.measured_name in spread.measured
        known = bool(spread.families)
    return MEASURED_HERE if measured else NOT_MEASURED_HERE if known else GUESS


def grade_prediction(prediction: Prediction) -> str:
    """Return the grade of a prediction, which its prices may be better than."""
    sure = prediction.certainty
    return lower_grade(grade_prices(prediction.deployment, sure.measured if sure else None),
                       extrapolates=sure is not None and bool(sure.extrapolating))


def grade_energy(prediction: Prediction) -> str:
    """Return the grade of a predicted energy, never above that of its time; "" is not known."""
    grade, sure = grade_prediction(prediction), prediction.certainty
    if sure is None or grade != MEASURED_HERE:
        return grade
    return "" if sure.powers_measured is None else lower_grade(
        grade, extrapolates=not sure.powers_measured)


def say_grade(prediction: Prediction) -> str:
    """Return the grade, why it is below that of the prices, and where energy's is lower."""
    grade, sure = grade_prediction(prediction), prediction.certainty
    if sure is None or not sure.measured:
        return grade
    if grade != MEASURED_HERE:
        return f"{grade}, as it extrapolates"
    lower = prediction.energy_uj is not None and sure.powers_measured is False
    return f"{grade}, its energy not" if lower else grade
