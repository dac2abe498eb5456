"""Errors of calibrated predictions on rows a fit has not seen, beside baselines fitted alike.

Every protocol leaves rows out, learns from the rest (the spread between boards included) and
predicts what was held out. Sealed rows are predicted only when asked for, from all rows that may
be learnt from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.accuracy.specifications import Baselines, count_macs, fit_baselines
from calibration.datasets import PublishedRow, published_rows
from calibration.fitting.bands import choose_band, choose_power_band
from calibration.fitting.cell import UNSEEN_RUNTIME, known_power
from calibration.fitting.intervals import Band, concentrate, even_sides
from calibration.fitting.networks import name_family
from calibration.fitting.prices import Fit, log_total
from calibration.fitting.validation import HeldOut, total_error
from hwmodels.frozen import frozen
from hwmodels.quantities import list_by_key
from tests.oracles.fits import join_bands, predict_totals
from twin.attribution.observations import Observation, observe_any, observe_pmu_layers
from twin.attribution.published import build_published, deploy_row, find_refusal
from twin.learning.beyond import measure_beyond
from twin.learning.evidence import time_evidence, with_energy
from twin.learning.overlays import Learning, learn
from twin.pricing.calibrated import predict_calibrated


@frozen
class Guess:
    """What one fit says of one row it has not seen.

    Parameters
    ----------
    observation : Observation
        The row.
    time_error, energy_error : float
        log(measured / predicted); NaN where not measured or not known.
    time_sd, energy_sd : float
        Stated standard deviations of those.
    time_band, energy_band : Band or None
        How far the 90 % interval reaches.
    baselines, spreads : mapping of str to float
        log(measured / predicted) of each baseline, NaN where it says nothing, and what it states
        of that.
    macs : float
        Multiply-accumulates of the network that runs.
    """

    observation: Observation
    time_error: float
    time_sd: float
    time_band: Band
    energy_error: float
    energy_sd: float
    energy_band: Band | None
    baselines: dict[str, float]
    spreads: dict[str, float]
    macs: float

    @property
    def time_covered(self) -> bool:
        """Whether the measured time lies in the interval."""
        return _covered(self.time_error, self.time_sd, self.time_band)

    @property
    def energy_covered(self) -> bool:
        """Whether the measured energy lies in the interval."""
        return self.energy_band is not None and _covered(self.energy_error, self.energy_sd,
                                                         self.energy_band)


def _covered(error: float, sd: float, band: Band) -> bool:
    return -band.down * sd <= error <= band.up * sd


@frozen
class Case:
    """A published row and what is counted behind it."""

    row: PublishedRow
    observation: Observation


@frozen
class Validation:
    """Guesses by protocol, in the order they are reported, and the fit to everything.

    Parameters
    ----------
    guesses : dict of str to tuple of Guess
        By what was held out.
    learning : Learning
        From all rows that may be learnt from.
    layers : dict of str to float
        log(measured / predicted) of each distinct layer shape of the Apollo510, held out in turn.
    """

    guesses: dict[str, tuple[Guess, ...]]
    learning: Learning
    layers: dict[str, float]


IN_SAMPLE = "nothing (in sample)"
MODEL_HERE = "a network, on its board"
MODEL = "a network, everywhere"
FAMILY_HERE = "a family of networks, on its board"
FAMILY = "a family of networks, everywhere"
LIBRARY = "a library, all its releases"
RELEASE = "a release of a library, everywhere"
BOARD = "a board, its core known"
CORE = "a core, all its boards"
SUPPLY = "a supply voltage of a board"
SEALED_KNOWN = "sealed rows: board and release known"
SEALED_RELEASE = "sealed rows: board known, release not"
SEALED_BOARD = "sealed rows: board not known"


def validate(*, sealed: bool = False) -> Validation:
    """Judge calibration by every protocol.

    Parameters
    ----------
    sealed : bool
        Whether to open the rows nothing may be chosen by.

    Returns
    -------
    Validation
        Nothing of it was chosen by its sealed part.
    """
    fit = collect(published_rows(use="fit"))
    layers = observe_pmu_layers()
    learning = learn([*(case.observation for case in fit), *layers])
    guesses = {IN_SAMPLE: guess(learning, fit, fit_baselines(case.row for case in fit))}
    for name, key in _protocols(fit).items():
        # intervals of boards, releases and cores not measured rest on no past errors
        guesses[name] = _leave_out(fit, layers, key,
                                   judged=name not in (LIBRARY, RELEASE, BOARD, CORE),
                                   asked=undescribe(fit) if name == LIBRARY else fit)
    if sealed:
        guesses |= _judge_sealed(learning, fit, collect(published_rows(use="test")))
    return Validation(guesses={name: found for name, found in guesses.items() if found},
                      learning=learning, layers=_leave_shapes_out(fit, layers))


def collect(rows: Iterable[PublishedRow]) -> tuple[Case, ...]:
    """Return the rows that can be deployed, each with what is counted behind it."""
    return tuple(Case(row=row, observation=one) for row in rows for one in observe_any([row]))


def undescribe(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return rows as of a library nobody described, who knows nothing its file says of its loops.

    Left out are those that do not fit its board without what its file says of placement.
    """
    return tuple(replace(case, observation=replace(case.observation, design=one.design,
                                                   arena=one.arena))
                 for case in cases
                 for one in observe_any([replace(case.row, runtime=UNSEEN_RUNTIME)]))


def _protocols(cases: Sequence[Case]) -> dict[str, Callable[[Case], Hashable | None]]:
    """What is held out together, by protocol; None: never."""
    boards_of = list_by_key((cell.core, cell.board) for case in cases
                            for cell in [case.observation.cell])
    supplies = list_by_key((case.observation.cell.board, _supply(case))
                           for case in _with_energy(cases))

    def board(case: Case) -> str | None:
        cell = case.observation.cell
        return cell.board if len({*boards_of[cell.core]}) > 1 else None

    def supply(case: Case) -> tuple[str, float | None] | None:
        name = case.observation.cell.board
        several = len({*supplies.get(name, ())}) > 1
        return (name, _supply(case)) if several and _with_energy([case]) else None

    return {
        MODEL_HERE: lambda case: (case.observation.cell.board, case.observation.network),
        MODEL: lambda case: case.observation.network,
        FAMILY_HERE: lambda case: (case.observation.cell.board,
                                   name_family(case.observation.network)),
        FAMILY: lambda case: name_family(case.observation.network),
        LIBRARY: lambda case: case.observation.cell.library,
        RELEASE: lambda case: (case.observation.cell.library, case.observation.cell.release),
        BOARD: board, CORE: lambda case: case.observation.cell.core, SUPPLY: supply}


def _supply(case: Case) -> float | None:
    volts = case.observation.supply_v
    return None if volts is None else round(volts, 2)


TRUTH = ("row", "board", "library", "network", "quantity", "how", "published", "predicted", "low",
         "high")
"""Keys of a row of the truth board; figures in us or uJ."""


def list_truth(guesses: Iterable[Guess]) -> list[dict[str, Any]]:
    """Return rows of the truth board: guesses of rows of use fit, then rows of accelerators.

    Facts of an accelerator were fitted to its own rows.
    """
    found: list[tuple[object, ...]] = []
    for one in guesses:
        seen = one.observation
        time_us, energy_uj = seen.cycles / seen.clock_hz * 1e6, (seen.energy_pj or 0.0) * 1e-6
        for name, stated, error, sd, band in (
                ("time", time_us, one.time_error, one.time_sd, one.time_band),
                ("energy", energy_uj, one.energy_error, one.energy_sd, one.energy_band)):
            if band and math.isfinite(error):
                ends = [stated * math.exp(by - error) for by in (0, -band.down * sd, band.up * sd)]
                found.append((seen.label, seen.cell.board, seen.runtime, seen.network, name,
                              "without its network", stated, *ends))
    for row in published_rows(use="fit"):
        if row.model and "npu" in row.flags and not find_refusal(row) and row.latency_ms:
            made = predict_calibrated(deploy_row(row, build_published(row.model)))
            if made.certainty is not None:
                found.append((f"{row.dataset}:{row.line}", row.board, row.runtime, row.model,
                              "time", "fitted with it", row.latency_ms * 1e3, made.time_us,
                              made.certainty.time_us.low, made.certainty.time_us.high))
    return [dict(zip(TRUTH, row, strict=True)) for row in found]


def _with_energy(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Cases whose energy was measured on a board whose currents are known."""
    return tuple(case for case in cases if with_energy([case.observation]))


def _leave_out(cases: Sequence[Case], layers: Sequence[Observation],
               key: Callable[[Case], Hashable | None], *, judged: bool,
               asked: Sequence[Case]) -> tuple[Guess, ...]:
    """Predict rows `asked` without those of their key."""
    guesses: list[Guess] = []
    for left in dict.fromkeys(key(case) for case in cases):
        if left is None:
            continue
        rest = [case for case in cases if key(case) != left]
        out = [case for case in asked if key(case) == left]
        # the layers of a core, or of a library, that is held out leave with it
        kept = [layer for layer in layers
                if layer.cell.core not in {case.observation.cell.core for case in out}
                and layer.cell.library in {case.observation.cell.library for case in rest}]
        learning = learn([*(case.observation for case in rest), *kept], judged=judged)
        guesses += guess(learning, out, fit_baselines(case.row for case in rest))
    return tuple(guesses)


def guess(learning: Learning, cases: Sequence[Case], baselines: Baselines | None = None,
          ) -> tuple[Guess, ...]:
    """Predict rows from what was learnt without them (or, in sample, with them).

    Parameters
    ----------
    learning : Learning
        From other rows.
    cases : sequence of Case
        Rows to predict.
    baselines : Baselines, optional
        Fitted to the same rows as `learning`; none are asked without.
    """
    if not cases:
        return ()
    evidence = time_evidence([case.observation for case in cases])
    totals, variances = predict_totals(learning.time, evidence)
    sds = np.sqrt(variances + total_error(learning.time, evidence.concentration))
    beyond = np.array([measure_beyond(learning.observations, case.observation,
                                      lambda cell: learning.time.estimate(cell).log)
                       for case in cases])
    guesses = []
    for case, total, sd, unlearned in zip(cases, totals, sds + beyond, beyond / (sds + beyond),
                                       strict=True):
        seen = case.observation
        energy_error, energy_sd = _guess_energy(learning, case, total, sd)
        says = {} if baselines is None else baselines.predict(case.row, math.exp(total))
        band = even_sides(_band(learning, learning.time, learning.left_out, seen), float(unlearned))
        power_band = None if learning.energy is None or seen.power is None else join_bands(
            band, sd, choose_power_band(learning.energy, learning.energy_left_out, known_power(
                seen.power, learning.energy.evidence.cells), without=name_family(seen.network)),
            math.sqrt(max(energy_sd**2 - sd**2, 0.0)))
        guesses.append(Guess(
            observation=seen, time_error=math.log(seen.cycles) - float(total), time_sd=float(sd),
            time_band=band, energy_error=energy_error, energy_sd=energy_sd,
            energy_band=power_band,
            baselines={name: error for name, (error, _) in says.items()},
            spreads={name: spread for name, (_, spread) in says.items()},
            macs=count_macs(case.row)))
    return tuple(guesses)


def _band(learning: Learning, fit: Fit, left_out: HeldOut | None,
          seen: Observation) -> Band:
    boards = len({o.cell.board for o in learning.observations})
    return choose_band(fit, left_out, seen.cell, boards, without=name_family(seen.network))


def _guess_energy(learning: Learning, case: Case, total: float, time_sd: float,
                  ) -> tuple[float, float]:
    seen = case.observation
    if (learning.energy is None or not with_energy([seen]) or seen.energy_pj is None
            or seen.power is None):
        return math.nan, math.nan
    power = known_power(seen.power, learning.energy.evidence.cells)
    estimate = learning.energy.estimate(power)
    terms = seen.design.energy_terms(learning.time.estimate(seen.cell).log, math.exp(total))
    totals, shares = log_total(terms[None, :], estimate.log)
    variance = float(shares[0] @ estimate.covariance @ shares[0] + total_error(
        learning.energy, concentrate(seen.design.cycles.sum(axis=1))))
    if not power.board:
        variance += seen.power.stated_sd**2
    return math.log(seen.energy_pj) - float(totals[0]), math.hypot(time_sd, math.sqrt(variance))


def _judge_sealed(learning: Learning, fit: Sequence[Case], sealed: Sequence[Case],
                  ) -> dict[str, tuple[Guess, ...]]:
    cells = {case.observation.cell for case in fit}
    boards = {cell.board for cell in cells}
    baselines = fit_baselines(case.row for case in fit)

    def kind(case: Case) -> str:
        cell = case.observation.cell
        if cell in cells:
            return SEALED_KNOWN
        return SEALED_RELEASE if cell.board in boards else SEALED_BOARD

    return {name: guess(learning, [case for case in sealed if kind(case) == name], baselines)
            for name in (SEALED_KNOWN, SEALED_RELEASE, SEALED_BOARD)}


def _leave_shapes_out(fit: Sequence[Case], layers: Sequence[Observation]) -> dict[str, float]:
    """Predict each distinct layer shape of the Apollo510 from the other shapes."""
    errors = {}
    for left in layers:
        rest = [layer for layer in layers if layer is not left]
        learning = learn([*(case.observation for case in fit), *rest], judged=False)
        totals, _ = predict_totals(learning.time, time_evidence([left]))
        errors[left.label.partition(" ")[2]] = math.log(left.cycles) - float(totals[0])
    return errors


def energy_r2(guesses: Iterable[Guess]) -> float:
    """Return R2 of log energy per multiply-accumulate; NaN with fewer than three rows."""
    known = [guess for guess in guesses if math.isfinite(guess.energy_error)]
    if len(known) < 3:
        return math.nan
    errors = np.array([guess.energy_error for guess in known])
    measured = np.log([(guess.observation.energy_pj or 1.0) / guess.macs for guess in known])
    return float(1 - (errors**2).sum() / ((measured - measured.mean())**2).sum())
