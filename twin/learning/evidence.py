"""Observations as the arrays prices are fitted to, and hashes of what they rest on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from calibration.fitting.intervals import concentrate
from calibration.fitting.prices import Evidence, Fit
from twin.attribution.observations import Observation


def time_evidence(observations: Sequence[Observation]) -> Evidence:
    """Return measured cycles and what each time price contributes to them as stated."""
    return Evidence(
        names=observations[0].prices,
        amounts=np.array([o.design.cycles.sum(axis=0) for o in observations]),
        measured=np.array([o.cycles for o in observations]),
        cells=tuple(o.cell for o in observations),
        networks=tuple(o.network for o in observations),
        labels=tuple(o.label for o in observations), concentration=_concentrations(observations))


def _concentrations(observations: Sequence[Observation]) -> np.ndarray:
    return np.array([concentrate(o.design.cycles.sum(axis=1)) for o in observations])


def energy_evidence(observations: Sequence[Observation], time: Fit) -> Evidence:
    """Return measured picojoules and what each energy price contributes at the measured time.

    Parameters
    ----------
    observations
        All with energy, and with currents known.
    time
        Of time prices: work done in fewer cycles draws less.
    """
    amounts = [o.design.energy_terms(time.estimate(o.cell).log, o.cycles) for o in observations]
    return Evidence(
        names=observations[0].design.powers, amounts=np.array(amounts),
        measured=np.array([o.energy_pj for o in observations]),
        cells=tuple(o.power or o.cell for o in observations),
        networks=tuple(o.network for o in observations),
        labels=tuple(o.label for o in observations), concentration=_concentrations(observations))


def with_energy(observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """Return those whose energy was measured on a board whose currents are known."""
    return tuple(o for o in observations if o.energy_pj is not None
                 and np.isfinite(o.design.energy_pj).all())


def hash_data(observations: Sequence[Observation]) -> str:
    """Return a hash of what was measured: label, cycles and energy of every row."""
    lines = [f"{o.label} {o.cycles:.9g} {o.energy_pj or 0:.9g}" for o in observations]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def hash_counts(observations: Sequence[Observation]) -> str:
    """Return a hash of what is counted behind every row, to six digits."""
    lines = [f"{o.label} " + " ".join(f"{value:.6g}" for value in o.design.cycles.sum(axis=0))
             for o in observations]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
