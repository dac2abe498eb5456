"""The voltage scale a changed clock took, and what it saves beside the board's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from hwmodels.board.facts import Board
from hwmodels.errors import BoardError
from hwmodels.quantities import format_energy, format_frequency, format_time
from twin.deployment.deployment import Deployment
from twin.pricing.prediction import Prediction


def note_voltage(prediction: Prediction, predict: Callable[[Deployment], Prediction],
                 ) -> Prediction:
    """Return a prediction that says which voltage scale its clock took, and what that saves.

    Parameters
    ----------
    prediction : Prediction
        Of a deployment with an `own_scale`.
    predict : callable
        Predicts a deployment at the same prices.
    """
    deployment, own = prediction.deployment, prediction.deployment.own_scale
    if own is None:
        return prediction
    board = deployment.board
    clock = format_frequency(board.clock(board.core.clock).frequency_hz)
    said = f"{board.power.voltage_scale}, the lowest scale that allows {clock}"
    try:
        kept = predict(deployment.replace({"supply.voltage_scale": own}))
    except BoardError:
        said += f"; the board's own {own} does not"
    else:
        said += f": {_describe_saving(prediction, kept)}{_describe_delay(prediction, kept)}"
    return dataclasses.replace(prediction, voltage=said)


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

    now, then = waits_of(prediction.deployment.board), waits_of(kept.deployment.board)
    moved = ", ".join(f"{name} {waits} instead of {then[name]}" for name, waits in now.items()
                      if waits != then[name])
    return (f"; {format_time(prediction.time_us)} instead of {format_time(kept.time_us)}"
            + (f" (wait states of {moved})" if moved else ""))
