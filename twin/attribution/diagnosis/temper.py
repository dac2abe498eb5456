"""By which share a pattern counts, so that stated probabilities are right as often as they say.

References
----------
Guo et al., On Calibration of Modern Neural Networks, ICML 2017 (temperature scaling).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.attribution.diagnosis.error_model import BINARY, ErrorModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Temper:
    """By which share a pattern counts: errors of layers are not as independent as assumed.

    The total is one figure, so only the shape, how layers lie around it, is counted too often.

    Parameters
    ----------
    shape, total : float
        Of the log likelihood of a pattern's shape, and of its total.
    """

    shape: float
    total: float = 1.0

    def chances(self, priors: Sequence[float], shapes: Sequence[float],
                totals: Sequence[float], marks: Sequence[float]) -> np.ndarray:
        """Return the probability of each hypothesis, by Bayes' rule.

        Parameters
        ----------
        priors : sequence of float
            Before any evidence.
        shapes, totals, marks : sequence of float
            Log likelihoods: of the pattern given its total, of the total, and of what runs show,
            which alone is not tempered.
        """
        logs = (np.log(priors) + self.shape * np.asarray(shapes)
                + self.total * np.asarray(totals) + np.asarray(marks))
        chances = np.exp(logs - logs.max())
        return np.asarray(chances / chances.sum())


ALONE, BESIDE_HEALTHY = Temper(shape=0.78), Temper(shape=0.35, total=0.45)
"""Learnt from planted faults (`benchmarks.diagnosis`, hidden boards of seeds 11 to 16), with the
priors of no fault and of two: what makes their true kinds most probable."""

ASSUMED_ERRORS = Temper(shape=1.0)
"""Kernels not read from a binary, and no healthy measurement: no plants stand behind it, and the
errors assumed of libraries are taken as they are."""


def choose_temper(errors: ErrorModel, *, healthy: bool) -> Temper:
    """Return the temper for a diagnosis under an error model."""
    return BESIDE_HEALTHY if healthy else ALONE if errors == BINARY else ASSUMED_ERRORS
