"""Predictions with learnt prices: an overlay chosen, applied to a deployment, and its intervals.

    stated prices x factors of the overlay -> a deployment -> predict -> intervals

An overlay changes no fact: its factors become efficiencies of the runtime and prices of the board
for one prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import Board, EventPrice
from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.errors import BoardError
from hwmodels.file_cache import Same
from hwmodels.frozen import NamedNumbers
from hwmodels.prices import derive_prices
from hwmodels.quantities import format_energy, format_frequency, format_time
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.pricing.calibration import (
    AUTO,
    NONE,
    Calibration,
    Wanted,
    choose_calibration,
    choose_kernel_prices,
    choose_powers,
)
from twin.pricing.extrapolation import note_missing, say_assumed_currents
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction
from twin.pricing.price_names import (
    ENERGY_PRICES,
    FAMILIES_OF,
    STREAM,
    WIDE,
    power_of,
    power_terms,
    waits_on_memory,
)
from twin.runtimes import Runtime

SAME = 0.005
"""Share by which the width of an interval may differ from another's and is called the same."""


def apply_calibration(deployment: Deployment, calibration: Calibration) -> Deployment:
    """Return the deployment with learnt factors on its prices.

    Parameters
    ----------
    calibration
        From `choose_calibration`.

    Returns
    -------
    Deployment
        Equal in everything but what things cost.
    """
    time, powers = [{} if one is None else dict(zip(one.names, one.factors.tolist(), strict=True))
                    for one in (calibration.time, calibration.energy)]
    if deployment.accelerated:
        from twin.pricing.accelerator.learnt import reprice

        return reprice(deployment, time, powers)
    return apply_factors(deployment, time, powers)


def apply_factors(deployment: Deployment, time: Mapping[str, float],
                  energy: Mapping[str, float]) -> Deployment:
    """Return the deployment with factors on its prices; a price that is not named keeps its own.

    Parameters
    ----------
    time, energy
        Factors by price, of `TIME_PRICES` and `ENERGY_PRICES`.
    """
    runtime, board = _apply(Same((deployment.board, deployment.runtime)), tuple(time.items()),
                            tuple(energy.items()))
    return deployment.repriced(runtime=runtime, board=board)


@lru_cache(maxsize=16)
def _apply(priced: Same[tuple[Board, Runtime]], times: NamedNumbers,
           energies: NamedNumbers) -> tuple[Runtime, Board]:
    """Return what deployments with the same board and runtime share."""
    (board, runtime), time, energy = priced.parts, dict(times), dict(energies)
    efficiency = {family: runtime.efficiency.get(family, 1.0) * float(time.get(price, 1.0))
                  for price, families in FAMILIES_OF.items() for family in families}
    efficiency |= {WIDE: runtime.efficiency.get("conv", 1.0) * time.get(WIDE, 1.0),
                   STREAM: time.get(STREAM, 1.0) / time.get("memory", 1.0)}
    return (replace(
                runtime, efficiency=efficiency,
                dispatch_cycles=runtime.dispatch_cycles * time.get("call", 1.0)),
            _reprice(board, float(time.get("memory", 1.0)),
                     {name: energy.get(name, 1.0) for name in ENERGY_PRICES}))


def _reprice(board: Board, memory: float, powers: dict[str, float]) -> Board:
    """Return the board with every price stated, times its factor."""
    stated = []
    for (event, place), price in sorted(derive_prices(board).table.items(),
                                        key=lambda item: (item[0][0], item[0][1])):
        waits = waits_on_memory(event)
        scale = memory if waits else 1.0
        stated.append(EventPrice(
            event=event, place=place, cycles=price.cycles * scale, clock=price.clock,
            pj=None if price.pj is None else price.pj * scale * powers[power_of(event)]))
    return replace(board, prices=tuple(stated))


def note_voltage(prediction: Prediction, predict: Callable[[Deployment], Prediction]) -> Prediction:
    """Return a prediction that says which voltage scale its clock took, and what that saves.

    Parameters
    ----------
    prediction
        Of a deployment with an `own_scale`.
    predict
        Predicts a deployment at the same prices.
    """
    deployment, own = prediction.deployment, prediction.deployment.own_scale
    if own is None:
        return prediction
    board = deployment.board
    clock = format_frequency(board.core_clock.frequency_hz)
    text = f"{board.power.voltage_scale}, the lowest scale that allows {clock}"
    try:
        kept = predict(deployment.replace({"supply.voltage_scale": own}))
    except BoardError:
        text += f"; the board's own {own} does not"
    else:
        text += f": {_describe_saving(prediction, kept)}{_describe_delay(prediction, kept)}"
    return replace(prediction, voltage=text)


def _describe_saving(prediction: Prediction, kept: Prediction) -> str:
    own = kept.deployment.board.power.voltage_scale
    if not prediction.energy_uj or not kept.energy_uj:
        return f"what it saves beside the board's own {own} is not known"
    change = prediction.energy_uj / kept.energy_uj - 1
    return (f"{'saves' if change <= 0 else 'costs'} {100 * abs(change):.0f} % of the "
            f"{format_energy(kept.energy_uj)} of the board's own {own}")


def _describe_delay(prediction: Prediction, kept: Prediction) -> str:
    """Say how much longer it takes, and by which wait states."""
    if prediction.time_us == kept.time_us:
        return ""

    def waits_of(board: Board) -> dict[str, int]:
        return {memory.name: memory.wait_states for memory in board.memories}

    now, then = waits_of(prediction.board), waits_of(kept.deployment.board)
    moved = ", ".join(f"{name} {waits} instead of {then[name]}" for name, waits in now.items()
                      if waits != then[name])
    now_us, then_us = format_time(prediction.time_us), format_time(kept.time_us)
    return f"; {now_us} instead of {then_us}" * (now_us != then_us) + (
        f" (wait states of {moved})" if moved else "")


def predict_calibrated(deployment: Deployment, *, temperature: str = "warm",
                       calibration: Wanted = AUTO) -> Prediction:
    """Predict with learnt prices where there are any, and say how sure that is.

    Parameters
    ----------
    deployment
        From `twin.deploy`.
    temperature
        "warm" or "cold".
    calibration
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
    if made.tasks and chosen is None and calibration not in (None, NONE):
        from twin.pricing.accelerator.certainty import assure_tasks

        made = replace(made, certainty=assure_tasks(made))
    if deployment.own_scale is None:
        return made
    return note_voltage(made, lambda other: predict_at(other, chosen, temperature=temperature)
                        if chosen is not None else _predict_stated(other, temperature, calibration))


def _predict_stated(deployment: Deployment, temperature: str, wanted: Wanted) -> Prediction:
    """Predict at stated prices, and say that no interval stands behind it where one was wanted."""
    powers, runtime = choose_powers(deployment, wanted), deployment.runtime
    unmeasured = deployment.target.executes or runtime.learnt is not None
    if powers is not None or (unmeasured and wanted not in (None, NONE)):
        return _predict_read(deployment, powers, temperature,
                             choose_kernel_prices(deployment, wanted))
    made = predict(deployment, temperature=temperature)
    notes = () if wanted in (None, NONE) else note_missing(deployment)
    return replace(made, warnings=(*made.warnings, *notes)) if notes else made


def _predict_read(deployment: Deployment, powers: Calibration | None, temperature: str,
                  times: Mapping[str, float]) -> Prediction:
    """Predict machine code at powers learnt from networks, and at times where kernels are known.

    The code of datasheets, which stated currents are of, draws less than networks do.
    """
    from twin.pricing.program_certainty import assure_program

    drawn = {} if powers is None or powers.energy is None else dict(zip(
        ENERGY_PRICES, powers.energy.factors.tolist(), strict=True))
    made = predict(apply_factors(deployment, times, drawn) if times or drawn else deployment,
                   temperature=temperature)
    certainty = assure_program(made, powers if drawn else None, times)
    return replace(made, deployment=deployment, certainty=certainty, warnings=(
        *made.warnings, *(note_currents(made, powers) if powers and drawn else ()),
        *(f"extrapolating: {reason}" for reason in certainty.extrapolating)))


def _predict_learnt(deployment: Deployment, chosen: Calibration, temperature: str) -> Prediction:
    """Predict at learnt prices, with intervals."""
    applied = apply_calibration(deployment, chosen)
    raw = predict(applied, temperature=temperature)
    if deployment.accelerated:
        from twin.pricing.accelerator.learnt import assure_learnt

        certainty = assure_learnt(raw, chosen)
    else:
        from twin.pricing.assurance import assure

        certainty = assure(raw, chosen, temperature)
    entry, warnings = chosen.entry, [f"calibrated: {chosen.description}"]
    measured = (chosen.origin != "shipped" and entry.board == deployment.board.name
                and not entry.powers_of and entry.energy is not None and entry.energy.rows)
    kept = [text for text in raw.warnings
            if not (measured and text == say_assumed_currents(applied.board))]
    drawn = note_currents(raw, chosen)
    if chosen.power_basis and raw.energy_uj is not None:
        drawn = ["; ".join((
            "energy is not calibrated: no measured energy stands behind it; powers are "
            f"{chosen.power_basis}", *(text.removeprefix("energy: ") for text in drawn)))]
    warnings += drawn
    warnings += [f"extrapolating: {reason}" for reason in certainty.extrapolating]
    if chosen.origin != "shipped" and not deployment.accelerated:
        warnings += _compare_before(raw.time_us, certainty.time_us, chosen.origin,
                                    predict_calibrated(deployment, temperature=temperature))
    return replace(raw, deployment=deployment, certainty=certainty, warnings=(*kept, *warnings))


def _compare_before(time_us: float, now: Interval, origin: str,
                    before: Prediction) -> tuple[str, ...]:
    """Say in a line what is predicted without a file, and how much wider or narrower that is."""
    if before.certainty is None:
        return ()
    then = before.certainty.time_us
    change = math.log(now.high / now.low) / math.log(then.high / then.low) - 1
    how = (f"{abs(change):.0%} {'wider' if change > 0 else 'narrower'}" if abs(change) > SAME else
           "as wide") + " with it"
    if not then.holds(time_us):
        how += ", as what was measured disagrees with that"
    return (f"prices: without {origin} {format_time(before.time_us)}, "
            f"{then.describe(format_time)}; {how}",)


def predict_at(deployment: Deployment, calibration: Calibration | None, *,
               temperature: str = "warm") -> Prediction:
    """Predict at learnt prices, or at stated ones for None; no intervals are made.

    Parameters
    ----------
    deployment
        With stated prices, whatever was changed about it.
    calibration
        From `choose_calibration`.
    temperature
        "warm" or "cold".

    Returns
    -------
    Prediction
        Of the deployment as it was given.
    """
    if calibration is None:
        return predict(deployment, temperature=temperature)
    raw = predict(apply_calibration(deployment, calibration), temperature=temperature)
    return replace(raw, deployment=deployment)


def predict_other(prediction: Prediction, model: str, calibration: Calibration,
                  board: Board) -> Prediction:
    """Predict another network under a prediction's library; of stated prices is the board.

    Raises
    ------
    TwinError
        When the network does not fit, or the library does not run it.
    """
    own = prediction.deployment
    return predict(apply_calibration(deploy(
        model, board, runtime=own.runtime.identity, weights=own.weights), calibration))


OWN_CURRENTS = "what the currents you state give, in every cycle: no learnt factor is applied"
"""How an energy is priced on a board whose run current is of networks."""


def note_currents(prediction: Prediction, calibration: Calibration) -> list[str]:
    """Say what learnt powers make of a user's currents, or a file's of a board nobody measured."""
    if prediction.tasks:
        return []  # Prices of an accelerator are no factors on its host's currents.
    own = any(fact.path.startswith("power.activity") and fact.source == WHAT_IF_SOURCE
              for fact in prediction.board.facts)
    if calibration.energy is None or not prediction.energy_uj or (
            calibration.entry.powers_are_own and not own):
        return []
    if prediction.board.power.of_networks:
        return [f"energy: {format_energy(prediction.energy_uj)} is {OWN_CURRENTS}"] if own else []
    stated_uj = float((power_terms(prediction.bill) / calibration.energy.factors).sum()) * 1e-6
    if not stated_uj:
        return []
    whose = "that the currents you state give" if own else "that the currents in its file give"
    return [f"energy: {prediction.energy_uj / stated_uj:.2f} times the {format_energy(stated_uj)} "
            f"{whose}: networks on {calibration.powers_of} drew that many times their stated ones"
            + "; the interval covers both" * (not own)]
