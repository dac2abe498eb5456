"""Predictions with learnt prices: an overlay chosen, applied to a deployment, and its intervals.

    stated prices x factors of the overlay -> a deployment -> predict -> intervals

An overlay changes no fact: its factors become efficiencies of the runtime and prices of the board
for one prediction.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.fitting.intervals import (
    BORROWED_SD,
    LAYER_SD,
    OPERATOR_SD,
    Band,
    Interval,
    bound,
    concentrate,
    join_bands,
    left_untold,
)
from calibration.fitting.overlay import (
    STRANGER_RUNTIME,
    Entry,
    Estimate,
    Learnt,
    Overlay,
    find_entry,
    locate,
    read_overlay,
    read_shipped,
)
from hwmodels.board.facts import Board, EventPrice
from hwmodels.counts import ISSUE_EVENTS, Bill
from hwmodels.prices import derive_prices
from hwmodels.quantities import format_energy
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.learning.distance import far_sd, find_extrapolation, note_missing
from twin.learning.tally import (
    ENERGY_PRICES,
    EXTERNAL,
    FAMILIES_OF,
    STALL_EVENTS,
    TIME_PRICES,
    list_external,
    name_operators,
    price_of_family,
)
from twin.prediction.certainty import Certainty, Draw, LayerCertainty
from twin.prediction.prediction import Prediction, predict
from twin.prediction.rates import CORE_EVENTS, family_of
from twin.prediction.replacement import ReplacementRange, replacement_range
from twin.runtimes.choice import computes_float

AUTO, NONE = "auto", "none"
"""Values of `calibration`: the shipped overlay that matches, or stated prices; else a file."""

NOTABLE_SHARE = 0.1
"""A price that could not be told is worth naming from this share of the time on."""

NOTABLE_UNTOLD = 0.05
"""Standard deviation of log time from which operators without rows are worth naming."""

LARGE_SHARE = 0.25
"""From this share on, a price that could not be told makes the prediction an extrapolation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Learnt prices that apply to a deployment.

    Parameters
    ----------
    origin : str
        "shipped" or the file's name.
    entry : Entry
        Of the overlay.
    time, energy : Estimate, Estimate or None
        Log factors and covariance, in the order of `TIME_PRICES` and `ENERGY_PRICES`.
    spread, energy_spread : mapping of str to float
        How far apart prices lie by level, where it was learnt: `calibration.fitting.prior.Spread`.
    operators : mapping of str to float
        What rows of the library tell of each operator: `intervals.left_untold`.
    kinds : tuple of str
        Of the measurements it was learnt from.
    """

    origin: str
    entry: Entry
    time: Estimate
    energy: Estimate | None
    spread: Mapping[str, float]
    energy_spread: Mapping[str, float]
    operators: Mapping[str, float]
    kinds: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """What it is, for a report's header."""
        if "simulated" not in self.kinds:
            return self._describe()
        others = " and ".join(kind for kind in self.kinds if kind != "simulated")
        return f"{self._describe()}; simulated: of an emulated board" + (
            f" and {others}" if others else ", not of hardware")

    def _describe(self) -> str:
        entry, rows = self.entry, self.entry.time.rows
        if entry.runtime == STRANGER_RUNTIME:
            return (f"{self.origin} overlay of the spread between libraries, for one nobody "
                    f"measured, on {entry.board or 'a board nobody measured'}")
        if entry.board is not None and rows:
            return (f"{self.origin} overlay of {entry.board}, {entry.runtime}, learnt from {rows} "
                    f"row{'' if rows == 1 else 's'}")
        if entry.board is not None and entry.time.residuals:
            return (f"{self.origin} overlay of {entry.board}, {entry.runtime}: prices of other "
                    "releases and boards, corrected by micro-benchmarks ("
                    + ", ".join(entry.time.residuals) + ")")
        if entry.board is not None:
            return (f"{self.origin} overlay of {entry.board}; {entry.runtime} itself was not "
                    "measured there, taken from other releases and boards")
        known = f"boards with {entry.core}" if entry.core else "boards of other cores"
        return (f"{self.origin} overlay for a board nobody measured, from "
                f"{known} under {entry.runtime or 'the same library'}")


def choose_calibration(deployment: Deployment, wanted: str = AUTO, *,
                       runtime: str | None = None) -> Calibration | None:
    """Return the learnt prices for a deployment.

    Parameters
    ----------
    deployment : Deployment
        Whose board and runtime are looked up.
    wanted : str
        "auto": shipped overlays; "none": stated prices; else an overlay file.
    runtime : str, optional
        What was measured, where the deployment's runtime only stands in for it.

    Returns
    -------
    Calibration or None
        None for "none", and for "auto" when nothing shipped matches; a library nobody measured
        takes prices from the spread between libraries.

    Raises
    ------
    FitError
        When a file is refused.
    UsageError
        When a file has no entry for this board and runtime, or other prices.
    """
    if wanted == NONE or deployment.target.offloads:
        return None
    runtime = runtime or deployment.runtime.identity
    if wanted == AUTO:
        return (shipped_calibration(deployment.board, runtime)
                or _stranger_calibration(deployment))
    overlay, board = read_overlay(Path(wanted)), deployment.board
    entry = find_entry(overlay, board=board.name, core=board.core.model, runtime=runtime)
    if entry is None:
        raise UsageError(f"{wanted}: no entry for {runtime} on {board.name} ({board.core.model}); "
                         "it has: " + "; ".join(
            f"{one.runtime} on {one.board or 'any board'} ({one.core or 'any core'})"
            for one in overlay.entries[:6]))
    if (overlay.time_prices, overlay.energy_prices) != (TIME_PRICES, ENERGY_PRICES):
        raise UsageError(f"{wanted}: made for other prices ({', '.join(overlay.time_prices)}); "
                         "calibrate again")
    return _take(overlay, entry, Path(wanted).name)


def shipped_calibration(board: Board, runtime: str) -> Calibration | None:
    """Return what is shipped for a runtime on a board, or for boards like it; None without."""
    cell = locate(board.name, board.core.model, runtime)
    overlay = read_shipped(cell.library, cell.board)
    entry = None if overlay is None else find_entry(
        overlay, board=cell.board, core=cell.core, runtime=runtime)
    return None if overlay is None or entry is None else _take(overlay, entry, "shipped")


def _stranger_calibration(deployment: Deployment) -> Calibration | None:
    """Return prices drawn from the spread between libraries, for one nobody measured.

    None for our own firmware, whose machine code is read, and where most layers compute in float:
    only libraries of integers were measured.
    """
    board = deployment.board
    if deployment.runtime.is_compiled or computes_float(deployment.graph):
        return None
    overlay = read_shipped("", board.name)
    entry = None if overlay is None else find_entry(
        overlay, board=board.name, core=board.core.model, runtime=STRANGER_RUNTIME)
    return None if overlay is None or entry is None else _take(overlay, entry, "shipped")


def _take(overlay: Overlay, entry: Entry, origin: str) -> Calibration:
    energy = entry.energy
    return Calibration(
        origin=origin, entry=entry, time=entry.time.estimate(overlay.time_prices),
        energy=None if energy is None else energy.estimate(overlay.energy_prices),
        spread=overlay.spread, energy_spread=overlay.energy_spread,
        operators=overlay.operators, kinds=overlay.data.kinds)


def apply_calibration(deployment: Deployment, calibration: Calibration) -> Deployment:
    """Return the deployment with learnt factors on its prices.

    Parameters
    ----------
    deployment : Deployment
        With stated prices.
    calibration : Calibration
        From `choose_calibration`.

    Returns
    -------
    Deployment
        Equal in everything but what things cost.
    """
    return apply_factors(
        deployment, dict(zip(TIME_PRICES, calibration.time.factors, strict=True)),
        {} if calibration.energy is None else
        dict(zip(ENERGY_PRICES, calibration.energy.factors.tolist(), strict=True)))


def apply_factors(deployment: Deployment, time: Mapping[str, float],
                  energy: Mapping[str, float]) -> Deployment:
    """Return the deployment with factors on its prices; a price that is not named keeps its own.

    Parameters
    ----------
    deployment : Deployment
        With stated prices.
    time, energy : mapping of str to float
        Factors by price, of `TIME_PRICES` and `ENERGY_PRICES`.
    """
    runtime = deployment.runtime
    efficiency = {family: runtime.efficiency.get(family, 1.0) * float(time.get(price, 1.0))
                  for price, families in FAMILIES_OF.items() for family in families}
    return deployment.repriced(
        runtime=dataclasses.replace(
            runtime, efficiency=efficiency,
            dispatch_cycles=runtime.dispatch_cycles * time.get("call", 1.0)),
        board=_reprice(deployment.board, float(time.get("memory", 1.0)),
                       {name: energy.get(name, 1.0) for name in ENERGY_PRICES}))


def _reprice(board: Board, memory: float, powers: dict[str, float]) -> Board:
    """Return the board with every price stated, times its factor."""
    stated = []
    for (event, place), price in sorted(derive_prices(board).table.items(),
                                        key=lambda item: (item[0][0], item[0][1])):
        waits = _waits(event)
        scale = memory if waits else 1.0
        stated.append(EventPrice(
            event=event, place=place, cycles=price.cycles * scale, clock=price.clock,
            pj=None if price.pj is None else price.pj * scale * powers[_power_of(event)]))
    return dataclasses.replace(board, prices=tuple(stated))


def _waits(event: str) -> bool:
    """Whether an event is charged under the time price of memories."""
    return event not in (*CORE_EVENTS, "kernel_dispatch", "clock_tree", "leakage")


def _power_of(event: str) -> str:
    """Return the energy price an event is charged under."""
    if event in ("clock_tree", "leakage"):
        return event
    if event in STALL_EVENTS:
        return "stall"
    return "activity" if event in (*ISSUE_EVENTS, "kernel_dispatch") else "memory"


def predict_calibrated(deployment: Deployment, *, temperature: str = "warm",
                       calibration: str | Calibration | None = AUTO) -> Prediction:
    """Predict with learnt prices where there are any, and say how sure that is.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    temperature : str
        "warm" or "cold".
    calibration : str, Calibration or None
        As for `choose_calibration`, or chosen already; None is "none".

    Returns
    -------
    Prediction
        With `certainty` when learnt prices were used, or an accelerator; where a cache's
        replacement policy is assumed, every candidate is run and the whole time's interval spans
        them. Pure, as `predict` is, in the deployment and the overlay.
    """
    chosen = (choose_calibration(deployment, calibration) if isinstance(calibration, str)
              else calibration)
    made = (_predict_stated(deployment, temperature, calibration) if chosen is None
            else _predict_learnt(deployment, chosen, temperature))
    if made.epochs and calibration not in (None, NONE):
        from twin.prediction.accelerator.certainty import assure_offloaded

        made = dataclasses.replace(made, certainty=assure_offloaded(made))
    if deployment.own_scale is None:
        return made
    from twin.learning.voltage import note_voltage

    return note_voltage(made, lambda other: predict_at(other, chosen, temperature=temperature))


def _predict_stated(deployment: Deployment, temperature: str,
                    wanted: str | Calibration | None) -> Prediction:
    """Predict at stated prices, and say that no interval stands behind it where one was wanted."""
    made = predict(deployment, temperature=temperature)
    notes = () if wanted in (None, NONE) else note_missing(deployment)
    return dataclasses.replace(made, warnings=(*made.warnings, *notes)) if notes else made


def _predict_learnt(deployment: Deployment, chosen: Calibration, temperature: str) -> Prediction:
    """Predict at learnt prices, with intervals."""
    applied = apply_calibration(deployment, chosen)
    raw = predict(applied, temperature=temperature)
    certainty = widen(assure(raw, chosen, temperature), replacement_range(applied))
    warnings = [f"calibrated: {chosen.description}"]
    if chosen.entry.energy is None and raw.energy_uj is not None:
        warnings.append("energy is not calibrated: no measured energy stands behind it")
    warnings += _note_currents(raw, chosen)
    warnings += [f"extrapolating: {reason}" for reason in certainty.extrapolating]
    return dataclasses.replace(raw, deployment=deployment, certainty=certainty,
                               warnings=(*raw.warnings, *warnings))


def predict_at(deployment: Deployment, calibration: Calibration | None, *,
               temperature: str = "warm") -> Prediction:
    """Predict at learnt prices, or at stated ones for None; no intervals are made.

    Parameters
    ----------
    deployment : Deployment
        With stated prices, whatever was changed about it.
    calibration : Calibration or None
        From `choose_calibration`.
    temperature : str
        "warm" or "cold".

    Returns
    -------
    Prediction
        Of the deployment as it was given.
    """
    if calibration is None:
        return predict(deployment, temperature=temperature)
    raw = predict(apply_calibration(deployment, calibration), temperature=temperature)
    return dataclasses.replace(raw, deployment=deployment)


def widen(certainty: Certainty, policies: ReplacementRange) -> Certainty:
    """Return wider intervals of the whole time: by what an unknown replacement policy may do."""
    return dataclasses.replace(certainty, time_us=widen_interval(certainty.time_us, policies))


def widen_interval(interval: Interval, policies: ReplacementRange) -> Interval:
    """Return an interval wider by what an unknown replacement policy may do."""
    return dataclasses.replace(interval, low=interval.low * policies.low,
                               high=interval.high * policies.high)


def assure(prediction: Prediction, calibration: Calibration, temperature: str) -> Certainty:
    """Return the intervals of a prediction made at learnt prices.

    Parameters
    ----------
    prediction : Prediction
        Of a deployment `calibration` was applied to.
    calibration : Calibration
        Whose covariance is propagated through the bill.
    temperature : str
        Overlays are learnt warm: a cold prediction extrapolates.

    Notes
    -----
    With s_k the share of price k in a total, C their covariance, w the shares of its layers and
    u = `left_untold` of their operators, the standard deviation of the logarithm is

        sqrt(s' C s + network_sd^2 sum w^2 / TYPICAL + row_sd^2) + sum w u + d

    with d = `far_sd`, of a network or a clock beyond those measured.

    A layer is a network of one, to which `LAYER_SD` is added under the root.
    """
    entry, time = calibration.entry, calibration.time
    cycles = price_cycles(prediction)
    totals = cycles.sum(axis=1)
    shares, weights = cycles.sum(axis=0) / totals.sum(), totals / totals.sum()
    untold = _untold(prediction, calibration.operators, totals)
    board = prediction.deployment.board
    away = far_sd(prediction.cycles, board.clock(board.core.clock).frequency_hz, entry.support,
                  measured=entry.board is not None)
    missing = float(weights @ untold) + away
    sds = [_sd(time, shares, entry.time, concentrate(totals)) + missing]
    one, layer_sd = concentrate(np.ones(1)), LAYER_SD[prediction.deployment.runtime.structure]
    sds += [math.hypot(_sd(time, line / total, entry.time, one), layer_sd) + more + away
            if total else 0.0
            for line, total, more in zip(cycles, totals, untold, strict=True)]
    band = _name_kind(entry.time.band.band(), sds[0], missing)
    energies = _energy_intervals(prediction, calibration, sds, [
        concentrate(totals), *(one for _ in totals)])
    unclear = {name: share for name, share in zip(TIME_PRICES, shares, strict=True)
               if share >= NOTABLE_SHARE and name in entry.time.unidentified}
    return Certainty(
        calibration=calibration.description, time_us=bound(prediction.time_us, sds[0], band),
        energy_uj=energies[0], basis=band.basis, errors=band.count,
        layers=tuple(LayerCertainty(time_us=bound(layer.time_us, sd, band), energy_uj=energy)
                     for layer, sd, energy in zip(prediction.layers, sds[1:], energies[1:],
                                                  strict=True)),
        extrapolating=(*find_extrapolation(prediction, entry, temperature),
                       *(f"{share:.0%} of the time is {name}, a price the data cannot tell"
                         for name, share in unclear.items() if share >= LARGE_SHARE),
                       *_name_untold(prediction, weights, untold)),
        unidentified=tuple(unclear),
        draw=Draw(source=(calibration.origin, str(entry.board), str(entry.core),
                          str(entry.runtime)),
                  covariance=time.covariance, time=shares, row_sd=entry.time.row_sd,
                  network_sd=entry.time.network_sd * concentrate(totals), untold_sd=missing,
                  network=prediction.deployment.graph.architecture_id))


def _sd(estimate: Estimate, shares: np.ndarray, learnt: Learnt, concentration: float) -> float:
    return math.sqrt(float(shares @ estimate.covariance @ shares)
                     + (learnt.network_sd * concentration)**2 + learnt.row_sd**2)


def _untold(prediction: Prediction, told: Mapping[str, float], totals: np.ndarray) -> np.ndarray:
    """Return how far each layer's cost is left open by rows of the library, shape (layers,)."""
    deployment, found = prediction.deployment, []
    closed = deployment.runtime.structure == "assumed"
    outside = list_external(deployment.board)
    beyond = left_untold(told.get(EXTERNAL, 0.0), BORROWED_SD)
    for layer, name, total in zip(prediction.layers, name_operators(deployment), totals,
                                  strict=True):
        sd = BORROWED_SD if closed or layer.assumed else OPERATOR_SD
        waiting = sum(line.cycles for line in layer.bill.lines if line.place in outside)
        part = waiting / total if total else 0.0
        found.append((1 - part) * left_untold(told.get(name, 0.0), sd) + part * beyond)
    return np.array(found)


def _name_untold(prediction: Prediction, weights: np.ndarray, untold: np.ndarray) -> list[str]:
    """Say which operators widen an interval, if they do so much."""
    added: dict[str, float] = {}
    for layer, weight, more in zip(prediction.layers, weights, untold, strict=True):
        added[layer.op] = added.get(layer.op, 0.0) + float(weight * more)
    total = sum(added.values())
    names = [name for name, more in sorted(added.items(), key=lambda item: -item[1])
             if more >= total / 10]
    return [] if total < NOTABLE_UNTOLD else [
        f"the interval is wider by {math.expm1(total):.0%} each way for what no row of this "
        f"library tells of: {', '.join(names)}"]


def _name_kind(band: Band, sd: float, missing: float) -> Band:
    """Return a band that is called after what most of it rests on."""
    return band if missing < sd / 2 else dataclasses.replace(band, basis="model-based")


def price_cycles(prediction: Prediction) -> np.ndarray:
    """Return cycles by layer and time price, shape (layers, time prices)."""
    cycles = np.zeros((len(prediction.layers), len(TIME_PRICES)))
    for row, layer in zip(cycles, prediction.layers, strict=True):
        for line in layer.bill.lines:
            if _waits(line.event):
                row[TIME_PRICES.index("memory")] += line.cycles
            elif line.event == "kernel_dispatch":
                row[TIME_PRICES.index("call")] += line.cycles
            elif line.event in CORE_EVENTS:
                # kernels of one layer that belong to several families share its work evenly
                for family in layer.families:
                    price = TIME_PRICES.index(price_of_family(family_of(family, line.place)))
                    row[price] += line.cycles / len(layer.families)
    return cycles


def _energy_intervals(prediction: Prediction, calibration: Calibration, time_sds: list[float],
                      concentrations: list[float]) -> list[Interval | None]:
    """Bounds of the total and of each layer: those of the time, and of the power besides.

    On a board nobody measured they reach what the currents its file states give.
    """
    learnt, estimate = calibration.entry.energy, calibration.energy
    if learnt is None or estimate is None or prediction.energy_uj is None:
        return [None] * (1 + len(prediction.layers))
    time_band, power_band = calibration.entry.time.band.band(), learnt.band.band()
    intervals: list[Interval | None] = []
    factors = estimate.factors if calibration.entry.board is None else None
    parts: list[tuple[Bill, float | None]] = [(prediction.bill, prediction.energy_uj)]
    parts += [(layer.bill, layer.energy_uj) for layer in prediction.layers]
    for (bill, energy_uj), time_sd, concentration in zip(parts, time_sds, concentrations,
                                                         strict=True):
        terms = _power_terms(bill)
        if not energy_uj or not terms.sum():
            intervals.append(None)
            continue
        sd = _sd(estimate, terms / terms.sum(), learnt, concentration)
        interval = bound(energy_uj, math.hypot(time_sd, sd),
                         join_bands(time_band, time_sd, power_band, sd))
        if factors is not None:
            stated_uj = float((terms / factors).sum()) * 1e-6
            interval = dataclasses.replace(interval, low=min(interval.low, stated_uj),
                                           high=max(interval.high, stated_uj))
        intervals.append(interval)
    return intervals


def _note_currents(prediction: Prediction, calibration: Calibration) -> list[str]:
    """Say what learnt powers make of currents a board's file states, where nobody measured it."""
    if calibration.energy is None or calibration.entry.board is not None or (
            not prediction.energy_uj):
        return []
    stated_uj = float((_power_terms(prediction.bill) / calibration.energy.factors).sum()) * 1e-6
    if not stated_uj:
        return []
    return [f"energy: {prediction.energy_uj / stated_uj:.2f} times the {format_energy(stated_uj)} "
            "its file's currents alone give, as networks on measured boards draw more than the "
            "code of datasheets; the interval covers both"]


def _power_terms(bill: Bill) -> np.ndarray:
    terms = np.zeros(len(ENERGY_PRICES))
    for line in bill.lines:
        terms[ENERGY_PRICES.index(_power_of(line.event))] += line.energy_pj or 0.0
    return terms
