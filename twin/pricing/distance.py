"""How far a prediction is from what was measured: what it adds to intervals, what is said."""

from __future__ import annotations

from calibration.fitting.intervals import Amounts, drift_sd
from calibration.fitting.overlay import Entry, Support
from twin.deployment.deployment import Deployment
from twin.pricing.prediction import Prediction
from twin.runtimes.choice import computes_float

FAR = 2.0
"""A clock, or a network's cycles, beyond the measured range by this factor is extrapolation."""


def far_sd(cycles: Amounts, clock_hz: Amounts, support: Support, *, measured: bool) -> Amounts:
    """Return what to add to the deviation of log time for a network or a clock beyond the rows.

    Parameters
    ----------
    cycles, clock_hz : float or ndarray of float
        Predicted of the network, and the clock of its core.
    support : Support
        What was measured nearest.
    measured : bool
        Whether that is this board: how far apart boards lie holds the clocks they run at.

    Notes
    -----
    The sum of `drift_sd` of both: they may go wrong the same way.
    """
    return (drift_sd(cycles, support.cycles or ())
            + drift_sd(clock_hz, support.clocks_hz if measured else ()))


def between_sd(network: str, entry: Entry, *, time: bool) -> float:
    """Return the least a network's total is known to, for how far networks lie apart.

    Parameters
    ----------
    network : str
        `Graph.architecture_id` of what is predicted.
    entry : Entry
        Of an overlay.
    time : bool
        Of its time, else of its power.

    Returns
    -------
    float
        Standard deviation of the logarithm; 0 for a network that is among the rows, and where
        rows of many networks say it themselves, as those shipped do.

    Notes
    -----
    The greater of the two is taken, not their sum: errors on networks left out hold what prices
    and operators leave open as well.
    """
    learnt = entry.time if time else entry.energy
    return 0.0 if learnt is None or network in entry.support.networks else learnt.between_sd


def find_extrapolation(prediction: Prediction, entry: Entry, temperature: str) -> tuple[str, ...]:
    """Return why the rows behind an entry do not support a prediction; empty when they do.

    Parameters
    ----------
    prediction : Prediction
        At the entry's prices.
    entry : Entry
        Of an overlay.
    temperature : str
        Overlays are learnt warm.
    """
    deployment, support = prediction.deployment, entry.support
    hertz = deployment.board.clock(deployment.board.core.clock).frequency_hz
    reasons = []
    if entry.board is None:
        reasons.append(f"{deployment.board.name} was never measured"
                       + ("" if entry.core else f", nor any {deployment.board.core.model}"))
    elif not entry.time.rows:
        reasons.append(f"{entry.runtime} was never measured on {entry.board}")
    if temperature == "cold":
        reasons.append("cold: only warm inferences were measured")
    if entry.board is not None and support.clocks_hz and not any(
            1 / FAR <= hertz / clock <= FAR for clock in support.clocks_hz):
        measured = ", ".join(f"{clock / 1e6:g}" for clock in support.clocks_hz)
        reasons.append(f"clock of {hertz / 1e6:g} MHz; measured at {measured} MHz")
    if entry.board is not None and support.arenas and deployment.arena not in support.arenas:
        reasons.append(f"arena in {deployment.arena}; measured in {', '.join(support.arenas)}")
    if support.cycles is not None:
        low, high = support.cycles
        if not low / FAR <= prediction.cycles <= high * FAR:
            reasons.append(f"{prediction.cycles:,.0f} cycles; {_say_measured(support)}")
    return tuple(reasons)


def _say_measured(support: Support) -> str:
    """Say how many cycles what was measured took: networks, or layers where no whole one was."""
    assert support.cycles is not None
    low, high = support.cycles
    if not support.networks:
        return f"no whole network was measured, and layers that were add up to {high:,.0f}"
    return (f"networks measured took {low:,.0f} to {high:,.0f}" if low < high else
            f"the one measured took {high:,.0f}")


def note_missing(deployment: Deployment) -> tuple[str, ...]:
    """Say why a prediction has no interval although learnt prices were asked for.

    Parameters
    ----------
    deployment : Deployment
        No learnt prices were found for.

    Returns
    -------
    tuple of str
        One line; none on an accelerator, whose intervals do not come from prices.
    """
    if deployment.target.offloads:
        return ()
    if computes_float(deployment.graph):
        return ("no interval: every measured network computes in integers; float32 kernels are "
                "priced as stated, and may be off by more than any figure here says",)
    return (f"no interval: nothing was measured of {deployment.runtime.identity}; its prices are "
            "those stated",)
