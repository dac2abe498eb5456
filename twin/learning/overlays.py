"""From observations to overlays: prices learnt of all boards at once, and shipped by board."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from calibration.errors import FitError
from calibration.fitting.bands import choose_band, choose_power_band
from calibration.fitting.between import Between, learn_between
from calibration.fitting.cell import (
    UNSEEN,
    Cell,
    known_power,
    list_releases,
    locate,
    locate_power,
)
from calibration.fitting.identification import identify
from calibration.fitting.intervals import Band
from calibration.fitting.networks import name_family
from calibration.fitting.overlay import BandModel, Data, Entry, Learnt, Overlay, pack_covariance
from calibration.fitting.prices import Evidence, Fit
from calibration.fitting.prior import Spread
from calibration.fitting.spread import claim_fewer, fit_pooled, learn_spread, one_thread
from calibration.fitting.ties import Tied
from calibration.fitting.validation import HeldOut, leave_out_closely
from hwmodels.frozen import entity
from twin.attribution.observations import Observation
from twin.learning.beyond import Beyond, find_support, tell_operators
from twin.learning.evidence import (
    energy_evidence,
    hash_counts,
    hash_data,
    time_evidence,
    with_energy,
)
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES

TIME_SD = {"conv": 0.3, "conv_wide": 0.3, "pointwise": 0.3, "depthwise": 0.3,
           "fully_connected": 0.3, "call": 0.7, "memory": 0.4, "stream": 0.4,
           "elementwise": 0.8, "pool": 0.6, "copy": 1.2, "quantize": 0.8, "reduce": 2.0}
"""Relative standard deviations of stated prices: those of the runtime files; memory is assumed.

So are the last five, widely: a closed library may read in place what CMSIS-NN copies, shift by a
constant where the reference requantises in full, or reduce element by element with all indices.
Their widths were chosen by leaving families of networks out.
"""

ABSURD = 3.0
"""Rows that learnt prices miss by this factor are of something else."""

OTHER_SD = 0.5
"""Of families no runtime file states one for; assumed."""

ENERGY_SD = {"activity": 0.08, "stall": 0.1, "memory": 0.1, "clock_tree": 0.08, "leakage": 0.12}
"""Relative standard deviations of each stated current beside the others of its board; assumed, as
three boards cannot tell. What a file states of its run current is of all of them: `Cell.stated_sd`.
"""

ENERGY_SPREAD = Spread(everything=0.3, library=0.0, core=0.1, release=0.1, option=0.0, board=0.1,
                       build=0.0, cell=0.05, own_core=0.0, own_release=0.0, own_board=0.15,
                       own_build=0.0, own_cell=0.1, network=0.02, row=0.02)
"""Before the data. A current is a fact of the board, so libraries and their releases are none of
the levels: networks draw more than the code of datasheets everywhere, by regulator, by board and
by the firmware on it ("cell"). What a board's file states of its currents adds to its own.
"""

REGULATORS = ("smps", "ldo")
"""Classes powers are shipped for; of any other, those of a class without data."""


def stated_sds() -> tuple[np.ndarray, np.ndarray]:
    """Return the standard deviations stated of time and of energy prices, in their order."""
    return (np.array([TIME_SD.get(name, OTHER_SD) for name in TIME_PRICES]),
            np.array([ENERGY_SD[name] for name in ENERGY_PRICES]))


@entity
class Learning:
    """Everything learnt at once.

    Parameters
    ----------
    spread, energy_spread
        How far apart prices lie.
    time, energy
        The latter None without measured energy.
    left_out, energy_left_out
        Every network predicted without its family: what the intervals of measured boards rest on;
        None when not asked for.
    """

    observations: tuple[Observation, ...]
    spread: Spread
    energy_spread: Spread
    time: Fit
    energy: Fit | None
    left_out: HeldOut | None
    energy_left_out: HeldOut | None


def learn(observations: Sequence[Observation], *, judged: bool = True,
          spreads: tuple[Spread, Spread] | None = None) -> Learning:
    """Learn time and energy prices of every board and runtime in the data, pooled.

    Parameters
    ----------
    observations
        Rows that may be learnt from.
    judged
        Whether to predict every network without its family, for intervals of measured boards.
    spreads
        How far apart prices of time and of energy lie, where more rows were used than these.

    Returns
    -------
    Learning
        From which overlays are made.

    Raises
    ------
    FitError
        Without any observation.
    """
    observations = tuple(observations)
    if not observations:
        raise FitError("nothing to learn from: no measured row could be deployed")
    with one_thread():
        time_sd, energy_sd = stated_sds()
        evidence = replace(time_evidence(observations), beyond=Beyond(observations).add)
        time, spread = _fit(evidence, time_sd, spreads[0] if spreads else None)
        powered = with_energy(observations)
        energy = energy_left_out = None
        energy_spread = ENERGY_SPREAD
        if powered:
            joules = energy_evidence(powered, time)
            energy, energy_spread = _fit(joules, energy_sd, spreads[1] if spreads else None,
                                         ENERGY_SPREAD)
            if judged:
                energy_left_out = _leave_families_out(energy, powered)
        return Learning(
            observations=observations, spread=spread, energy_spread=energy_spread, time=time,
            energy=energy,
            left_out=_leave_families_out(time, observations) if judged else None,
            energy_left_out=energy_left_out)


def _leave_families_out(fit: Fit, observations: Sequence[Observation]) -> HeldOut:
    """Predict every network without its family's rows; a layer is none, and has no error."""
    found = leave_out_closely(fit, [name_family(one.network) for one in observations])
    whole = np.array([one.whole for one in observations])
    return replace(found, log_errors=np.where(whole, found.log_errors, np.nan))


def _fit(evidence: Evidence, stated_sd: np.ndarray, known: Spread | None,
         assumed: Spread | None = None) -> tuple[Fit, Spread]:
    """Fit with a spread that is known, or learn it from the rows."""
    if known is not None:
        return fit_pooled(evidence, stated_sd, known), known
    return claim_fewer(evidence, stated_sd, learn_spread(evidence, stated_sd, assumed))


def make_overlays(learning: Learning) -> dict[tuple[str, str | None], Overlay]:
    """Return the overlays to ship: by library and board, and by library for boards not measured.

    Parameters
    ----------
    learning
        From `learn`.

    Returns
    -------
    dict
        (library, board or None) to overlay; entries for every release of the library. The
        library "" is one nobody measured: on every board its prices are drawn from the spread
        between libraries.
    """
    overlays: dict[tuple[str, str | None], Overlay] = {}
    for library in (*dict.fromkeys(o.cell.library for o in learning.observations), ""):
        measured = [o for o in learning.observations if library in (o.cell.library, "")]
        releases = [(runtime, replace(locate("", "", runtime), library=library))
                    for runtime, _ in list_releases(library or UNSEEN)]
        for board, core in dict.fromkeys((o.cell.board, o.cell.core) for o in measured):
            overlays[library, board] = _overlay(learning, library, [
                make_entry(learning, replace(cell, board=board, core=core), runtime)
                for runtime, cell in releases])
        unseen_cores = [*dict.fromkeys(o.cell.core for o in learning.observations), ""]
        overlays[library, None] = _overlay(learning, library, [
            make_entry(learning, replace(cell, core=core), runtime)
            for core in unseen_cores for runtime, cell in releases])
    overlays["", None] = replace(overlays["", None], powers=learn_powers(learning))
    return overlays


def learn_powers(learning: Learning) -> dict[str, Learnt]:
    """Return energy prices whatever runs: by board, by regulator, and "" of any other."""
    fit = learning.energy
    if fit is None:
        return {}
    boards = {one.board: replace(one, library="", release=0.0) for one in fit.evidence.cells}
    found = boards | {name: Cell(board="", core=name, library="", release=0.0)
                      for name in (*REGULATORS, "")}
    return {name: _learn_power(learning, fit, cell) for name, cell in found.items()}


def _learn_power(learning: Learning, fit: Fit, cell: Cell) -> Learnt:
    return make_learnt(fit, choose_power_band(fit, learning.energy_left_out, cell), cell)


def _overlay(learning: Learning, library: str, entries: Sequence[Entry]) -> Overlay:
    rows = [o for o in learning.observations if library in (o.cell.library, "")]
    return bundle(library or UNSEEN, entries, learning.observations, rows, use="fit",
                  operators=tell_operators(rows, lambda cell: learning.time.estimate(cell).log),
                  spread=_rounded(learning.spread), energy_spread=_rounded(learning.energy_spread))


def bundle(library: str, entries: Sequence[Entry], observations: Sequence[Observation],
           rows: Sequence[Observation], *, use: str, operators: Mapping[str, float],
           kinds: Iterable[str] = (), **spreads: Any) -> Overlay:
    """Return the overlay of entries, with what they were learnt from and of which library.

    Parameters
    ----------
    observations, rows
        All that was learnt from, and those of the library.
    use
        Of the rows: "fit" or "own".
    operators
        From `tell_operators`.
    kinds
        Of further measurements behind the entries.
    **spreads
        "spread" and "energy_spread", where they were learnt.
    """
    return Overlay(
        schema=1, library=library, entries=tuple(entries), operators=dict(operators),
        time_prices=observations[0].prices,
        energy_prices=observations[0].design.powers, **spreads,
        made_with={"embedded-twin": version("embedded-twin"), "numpy": version("numpy"),
                   "counts_sha256": hash_counts(rows)},
        data=Data(sha256=hash_data(observations), rows=len(observations),
                  energy_rows=len(with_energy(observations)), use=use,
                  kinds=tuple(sorted({*(o.kind for o in observations), *kinds})),
                  sources=tuple(o.label for o in rows)))


def _rounded(spread: Spread) -> dict[str, float]:
    return {name: _six(value) for name, value in asdict(spread).items()}


def _six(value: float) -> float:
    return float(f"{value:.6g}")


def make_entry(learning: Learning, cell: Cell, runtime: str) -> Entry:
    """Return the prices of a cell, measured or not, as an overlay keeps them.

    Energy prices are there where the firmware was measured; else those of `learn_powers` hold.
    """
    boards = len({o.cell.board for o in learning.observations})
    fit, energy = learning.energy, None
    here = [] if fit is None else [one for one in fit.evidence.cells if one.board == cell.board]
    if fit is not None and here:
        power = locate_power(cell.board, here[0].core, runtime, here[0].stated_sd)
        if known_power(power, here) == power:
            energy = _learn_power(learning, fit, power)
    return Entry(
        board=cell.board or None, core=cell.core or None, runtime=runtime, energy=energy,
        time=make_learnt(learning.time, choose_band(learning.time, learning.left_out, cell,
                                                    boards), cell),
        support=find_support(learning.observations, cell))


def learn_between_networks(learning: Learning) -> dict[str, Between]:
    """Return how far held-out whole networks were off, in time and in power where measured."""
    found = {}
    for quantity, rows, left_out in (
            ("time", learning.observations, learning.left_out),
            ("energy", with_energy(learning.observations), learning.energy_left_out)):
        if left_out is not None:
            found[quantity] = learn_between(left_out.log_errors[[one.whole for one in rows]])
    return found


def make_learnt(fit: Fit, band: Band, cell: Cell, tied: Tied | None = None,
                between_sd: float = 0.0) -> Learnt:
    """Return the learnt prices of a cell as an overlay's file keeps them, with their intervals."""
    estimate, proven = (tied or fit).estimate(cell), identify(fit, cell)
    residuals = (tied or fit).residuals
    own = [row for row, other in enumerate(fit.evidence.cells) if other == cell]
    return Learnt(
        log=tuple(_six(value) for value in estimate.log),
        covariance=pack_covariance(estimate.covariance),
        # of the variance as it is kept: what was not learnt of is as wide after as before
        prior_sd=tuple(float(f"{math.sqrt(_six(value)):.9g}")
                       for value in np.diag(estimate.prior_covariance)),
        network_sd=_six(fit.noise.network_sd), row_sd=_six(fit.noise.row_sd),
        band=BandModel(down=_six(band.down), up=_six(band.up), level=band.level, basis=band.basis,
                       count=band.count),
        between_sd=_six(between_sd),
        rows=proven.rows, effective_parameters=round(proven.effective_parameters, 3),
        rank=proven.rank, condition=round(proven.condition, 1), unidentified=proven.unidentified,
        confused=proven.confused, tied=() if tied is None else tied.names,
        residuals={fit.evidence.labels[row]: round(float(residuals[row]), 4) for row in own})
