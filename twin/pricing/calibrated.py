"""Predictions with learnt prices: an overlay chosen, applied to a deployment, and its intervals.

    stated prices x factors of the overlay -> a deployment -> predict -> intervals

An overlay changes no fact: its factors become efficiencies of the runtime and prices of the board
for one prediction.
"""

from __future__ import annotations

import dataclasses

from hwmodels.quantities import format_energy
from twin.deployment.deployment import Deployment
from twin.pricing.assurance import assure, power_terms
from twin.pricing.calibration import (
    AUTO,
    NONE,
    Calibration,
    choose_calibration,
    choose_powers,
)
from twin.pricing.distance import note_missing
from twin.pricing.factors import ENERGY_PRICES
from twin.pricing.prediction import Prediction, predict
from twin.pricing.repricing import apply_calibration, apply_factors


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
        from twin.pricing.accelerator.certainty import assure_offloaded

        made = dataclasses.replace(made, certainty=assure_offloaded(made))
    if deployment.own_scale is None:
        return made
    from twin.pricing.voltage import note_voltage

    return note_voltage(made, lambda other: predict_at(other, chosen, temperature=temperature)
                        if chosen is not None else _predict_stated(other, temperature, calibration))


def _predict_stated(deployment: Deployment, temperature: str,
                    wanted: str | Calibration | None) -> Prediction:
    """Predict at stated prices, and say that no interval stands behind it where one was wanted."""
    powers, runtime = choose_powers(deployment, wanted), deployment.runtime
    unmeasured = deployment.target.executes or runtime.learnt is not None
    if powers is not None or (unmeasured and wanted not in (None, NONE)):
        return _predict_read(deployment, powers, temperature)
    made = predict(deployment, temperature=temperature)
    notes = () if wanted in (None, NONE) else note_missing(deployment)
    return dataclasses.replace(made, warnings=(*made.warnings, *notes)) if notes else made


def _predict_read(deployment: Deployment, powers: Calibration | None,
                  temperature: str) -> Prediction:
    """Predict machine code at stated prices of time, and at powers learnt from networks.

    The code of datasheets, which stated currents are of, draws less than networks do.
    """
    from twin.pricing.executed import assure_program

    if powers is None or powers.energy is None:
        made = predict(deployment, temperature=temperature)
        return dataclasses.replace(made, certainty=assure_program(made))
    drawn = apply_factors(deployment, {}, dict(zip(
        ENERGY_PRICES, powers.energy.factors.tolist(), strict=True)))
    made = predict(drawn, temperature=temperature)
    return dataclasses.replace(
        made, deployment=deployment, certainty=assure_program(made, powers),
        warnings=(*made.warnings, *_note_currents(made, powers)))


def _predict_learnt(deployment: Deployment, chosen: Calibration, temperature: str) -> Prediction:
    """Predict at learnt prices, with intervals."""
    applied = apply_calibration(deployment, chosen)
    raw = predict(applied, temperature=temperature)
    certainty = assure(raw, chosen, temperature)
    warnings = [f"calibrated: {chosen.description}"]
    if chosen.power_basis and raw.energy_uj is not None:
        warnings.append("energy is not calibrated: no measured energy stands behind it; powers "
                        f"are {chosen.power_basis}")
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


def _note_currents(prediction: Prediction, calibration: Calibration) -> list[str]:
    """Say what learnt powers make of currents a board's file states, where nobody measured it."""
    if calibration.energy is None or calibration.entry.powers_are_own or (
            not prediction.energy_uj):
        return []
    stated_uj = float((power_terms(prediction.bill) / calibration.energy.factors).sum()) * 1e-6
    if not stated_uj:
        return []
    return [f"energy: {prediction.energy_uj / stated_uj:.2f} times the {format_energy(stated_uj)} "
            "its file's currents alone give, as networks on measured boards draw more than the "
            "code of datasheets; the interval covers both"]
