"""One layer that takes another time alone, all others as declared: a fault made of what is left.

What a single layer is off by is no price, no cache and no level of optimisation, which reach every
layer of its kind. The pattern with that layer's own error taken out is weighed as declared, and the
error by how likely a fault of one layer is to be so large. A layer so far off is then no longer
called "as declared": the Student tails that keep it from ruling a state out stand for this fault.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from twin.attribution.diagnosis.evidence import Evidence
from twin.attribution.diagnosis.fault_effects import Effect
from twin.attribution.diagnosis.faults import ONE_LAYER, Fault
from twin.attribution.diagnosis.likelihood import own_errors

LEAST_FACTOR = math.log(1.3)
"""A layer that is off by less is within what kernels of other shapes are off by."""

FAR = 6.0
"""A layer's own error, in its standard deviations, from which on it is one that is off alone."""

SIZE_SD = 1.2
"""Of the logarithm of by how much a single layer is off: a factor of three either way, assumed."""


def are_far(errors: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Whether each layer is off alone, by its own error and that error's variance."""
    return (np.abs(errors) > FAR * np.sqrt(own)) & (np.abs(errors) > LEAST_FACTOR)


def list_layers(evidence: Evidence, own: np.ndarray, residual: np.ndarray,
                covariance: np.ndarray) -> Iterator[tuple[Fault, Effect, float]]:
    """Yield each layer that is far off alone, what it does, and the logarithm of its density.

    Parameters
    ----------
    evidence : Evidence
        Of the measurement.
    own, residual, covariance : numpy.ndarray
        As for `log_pattern`, under "as declared".

    Yields
    ------
    Fault, Effect, float
        The last is what weighs besides the pattern that is left: how likely a fault of one layer is
        of that size and in that layer, beside the density of the error it explains away.
    """
    layers, declared = evidence.pattern.layers, evidence.declared
    if len(layers) < 3:
        return
    errors, _ = own_errors(residual, covariance, own)
    sds = np.sqrt(own)
    for place in np.flatnonzero(are_far(errors, own)):
        size = float(errors[place])
        index, family = layers[place], evidence.pattern.families[place]
        density = (-0.5 * (size / SIZE_SD) ** 2 + math.log(float(sds[place]) / SIZE_SD)
                   - math.log(len(layers)))
        moved = np.zeros(len(layers))
        moved[place] = size
        yield (Fault(kind=ONE_LAYER, name=f"layer {index} ({family}) alone, {math.exp(size):.2g} x",
                     remedy=f"look at layer {index}: which function is linked for it, where its "
                            "data lie, and what runs beside it; the other layers are as declared"),
               dataclasses.replace(declared, logs=declared.logs + moved), density)
