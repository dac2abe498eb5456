"""How far a prediction is from what was measured: what that adds to its interval, and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from calibration.fitting.intervals import Amounts, drift_sd
from calibration.fitting.overlay import Entry, Support
from hwmodels.board.facts import Board
from hwmodels.board.file import find_board, list_facts
from hwmodels.isa import load_isa
from hwmodels.quantities import list_first, significant, write_setting
from twin.deployment.deployment import Deployment

MACHINE = ("caches", "cores", "memories", "npu", "prices")
"""Sections of a board file that times follow from, whatever a run sets."""

COLD = 0.01
"""Share of the time that fills caches, above which a cold inference is another than a warm one."""

FAR = 2.0
"""A clock, or a network's cycles, beyond the measured range by this factor is extrapolation."""


Reason = tuple[Any, str]
"""Which rows it holds of, one truth or an array of them, and what it is, of the first."""


def far_sd(cycles: Amounts, clock_hz: Amounts, support: Support, *, measured: bool) -> Amounts:
    """Return what to add to the deviation of log time for a network or a clock beyond the rows.

    Parameters
    ----------
    cycles, clock_hz : float or ndarray of float
        Predicted of the network, and the clock of its core.
    support
        What was measured nearest.
    measured
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
    network
        `Graph.architecture_id` of what is predicted.
    time
        Of its time, else of its power.

    Returns
    -------
    float
        Standard deviation of the logarithm; 0 for a network that is among the rows, and where
        rows of many networks say it themselves, as those shipped do.

    Notes
    -----
    The greater of the two is taken, not their sum: errors on held-out networks hold what prices
    and operators leave open as well.
    """
    learnt = entry.time if time else entry.energy
    return 0.0 if learnt is None or network in entry.support.networks else learnt.between_sd


def name_changes(deployment: Deployment, measured: str,
                 sections: Sequence[str] = MACHINE) -> tuple[str, ...]:
    """Return facts of a machine other than where rows were measured: "path=now, not then".

    However they were changed, in a file or by a what-if. Clocks and supply a run may set; of
    memories only those in use count, and not their size.

    Parameters
    ----------
    measured
        Name or file of the board they are of.
    sections
        Of board files.
    """
    used = {deployment.code, *deployment.ram_memories, deployment.weights,
            *deployment.weights_spill}
    return tuple(f"{write_setting(path, now)}, not {then}" for path, now, then in
                 _list_changes(deployment.board.document, measured)
                 if path.partition(".")[0] in sections and (
                     not path.startswith("memories.") or (
                     path.split(".")[1] in used and not path.endswith("size_bytes"))))


@lru_cache(maxsize=64)
def _list_changes(document: str, measured: str) -> tuple[tuple[str, object, object], ...]:
    """Return path, value and value where it was measured of facts that differ.

    What published rows state of that board was measured, too.
    """
    if (board := find_board(measured)) is None:  # A board of the user's that no name finds.
        return ()
    known = list_facts(board.document)
    changes = tuple((path, value, known.get(path)) for path, value in list_facts(document).items()
                    if known.get(path) != value)
    if not changes:
        return ()
    from calibration.datasets.published import read_names

    stated = [set_up.items() for set_up in read_names()["stated"].get(measured, {}).values()]
    return tuple(change for change in changes if not any(change[:2] in one for one in stated))


def find_extrapolation(deployment: Deployment, entry: Entry, *, cycles: Amounts, hertz: Amounts,
                       changed: Sequence[str], filling: Amounts | float = 0.0) -> list[Reason]:
    """Return why the rows behind an entry do not support a prediction.

    Parameters
    ----------
    cycles, hertz : float or ndarray of float, (rows,)
        Of the inference at the entry's prices, and of its clock.
    filling
        Share of the time that fills empty caches: overlays are learnt warm.
    changed
        Facts of the machine other than where rows were measured.
    """
    support, known = entry.support, entry.board is not None
    first, clock, fills = (float(np.ravel(one)[0]) for one in (cycles, hertz, filling))
    own = "" if deployment.board.npu is None or deployment.accelerated else "the core of "
    core, here = deployment.board.core.model, deployment.board.name
    near = [(hertz >= one / FAR) & (hertz <= one * FAR) for one in support.clocks_hz]
    low, high = support.cycles or (0.0, math.inf)
    return [
        (filling > COLD, "cold: only warm inferences were measured; filling caches, "
         f"{significant(100 * fills, 2)} % of the time, widens the interval"),
        (not known, f"no measurement of {own}{here} is learnt from, " + (
            f"only of other boards with {core}" if entry.core else f"nor of any {core}")),
        (known and not entry.time.rows,
         f"{deployment.runtime.identity} was never measured on {entry.board}"),
        (bool(changed), f"{list_first(changed, 2)} where it was measured"),
        (deployment.runtime.closed and deployment.extension not in (
            None, load_isa(deployment.board.core.isa).extensions[0]),
         f"{deployment.runtime.identity} comes compiled: kernels.extension={deployment.extension} "
         "is no build of it, but an estimate of what its own code brings"),
        (bool(known and near) & ~np.any(near, axis=0),
         f"clock of {clock / 1e6:g} MHz; measured at "
         + ", ".join(f"{one / 1e6:g}" for one in support.clocks_hz) + " MHz"),
        (bool(known and support.arenas) and deployment.arena not in support.arenas,
         f"arena in {deployment.arena}; measured in {', '.join(support.arenas)}"),
        ((cycles < low / FAR) | (cycles > high * FAR),
         f"{first:,.0f} cycles; {_say_measured(support)}")]


def _say_measured(support: Support) -> str:
    """Say how many cycles what was measured took: networks, or layers where no whole one was."""
    low, high = support.cycles or (0.0, 0.0)
    if not support.networks:
        return f"no whole network was measured, and layers that were add up to {high:,.0f}"
    return (f"networks measured took {low:,.0f} to {high:,.0f}" if low < high else
            f"the one measured took {high:,.0f}")


def note_missing(deployment: Deployment) -> tuple[str, ...]:
    """Say why a prediction has no interval although learnt prices were asked for.

    Parameters
    ----------
    deployment
        No learnt prices were found for.

    Returns
    -------
    tuple of str
        One line; none on an accelerator, whose intervals do not come from prices.
    """
    if deployment.accelerated:
        return ()
    return (f"no interval: nothing was measured of {deployment.runtime.identity}; its prices are "
            "those stated",)


def say_assumed_currents(board: Board) -> str:
    """Say that a board's file has currents of its class, or of another board."""
    source = next((fact.source for fact in board.facts
                   if fact.path.startswith("power.activity_ma_per_mhz.")), "")
    why = f"{board.name} has them {source}" if source.startswith("borrowed from ") else (
        f"no public source states those of {board.name}, so its file has those of its class")
    return (f"energy rests on assumed currents: {why}; interval wider by "
            f"{board.assumed_current_sd:.0%} (one standard deviation)")
