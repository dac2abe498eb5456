"""By which share a pattern counts, so that stated probabilities are right as often as they say.

References
----------
Guo et al., On Calibration of Modern Neural Networks, ICML 2017 (temperature scaling).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.attribution.error_model import BINARY, ErrorModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Temper:
    """By which share a pattern counts: errors of layers are not as independent as assumed.

    Parameters
    ----------
    trusted : float
        Of the log likelihood of a pattern.
    doubt : float
        Probability that errors are of another kind than any that is modelled.
    doubted : float
        The share then.
    """

    trusted: float
    doubt: float = 0.0
    doubted: float = 0.0

    def chances(self, priors: Sequence[float], patterns: Sequence[float],
                marks: Sequence[float]) -> np.ndarray:
        """Return the probability of each hypothesis, by Bayes' rule.

        Parameters
        ----------
        priors : sequence of float
            Before any evidence.
        patterns, marks : sequence of float
            Log likelihoods: of the pattern, which is tempered, and of what runs show.
        """
        return np.asarray((1 - self.doubt) * _weigh(priors, patterns, marks, self.trusted)
                          + self.doubt * _weigh(priors, patterns, marks, self.doubted))


ALONE, BESIDE_HEALTHY = Temper(trusted=0.35), Temper(trusted=0.7, doubt=0.1, doubted=0.1)
"""Learnt from planted faults (`benchmarks.diagnosis`, hidden boards of seeds 1 to 9): what makes
their true kinds most probable. What runs and clock show is not tempered."""

ASSUMED_ERRORS = Temper(trusted=1.0)
"""Kernels not read from a binary, and no healthy measurement: no plants stand behind it, and the
errors assumed of libraries are taken as they are."""


def choose_temper(errors: ErrorModel, *, healthy: bool) -> Temper:
    """Return the temper for a diagnosis under an error model."""
    return BESIDE_HEALTHY if healthy else ALONE if errors == BINARY else ASSUMED_ERRORS


def _weigh(priors: Sequence[float], patterns: Sequence[float], marks: Sequence[float],
           share: float) -> np.ndarray:
    """Return probabilities where patterns count by a share."""
    logs = np.log(priors) + share * np.asarray(patterns) + np.asarray(marks)
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum())
