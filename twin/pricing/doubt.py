"""What intervals of a deployment come from: whose rows tell of its operators, and what they leave.

A library nobody measured, and prices of a file, are doubted beside what is known otherwise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.fitting.cell import UNSEEN_RUNTIME
from calibration.fitting.intervals import (
    BORROWED_SD,
    FLOAT_SD,
    LAYER_REACH,
    LAYER_SD,
    OPERATOR_SD,
    Band,
    remaining_sd,
)
from hwmodels.frozen import entity
from hwmodels.paths.timing import Floats
from twin.deployment.deployment import Deployment
from twin.deployment.support import float_layers
from twin.pricing.calibration import Calibration, starting_prices, unseen_prices
from twin.pricing.counted_prices import (
    IMAGE,
    LEARNT,
    list_counted,
    list_input_assumptions,
    tell_basis,
)
from twin.pricing.extrapolation import between_sd
from twin.pricing.itemised import Itemised
from twin.pricing.operator_evidence import EXTERNAL, name_operators, operator_sd


@entity
class Doubt:
    """What intervals of one deployment, and of others of its structure, come from.

    Parameters
    ----------
    calibration
        Learnt prices.
    unlearned : ndarray of float, (layers,)
        How far each layer's operator is left open by rows.
    beyond
        How far waiting outside the chip is.
    layer_sd
        Of a layer beside its operator.
    least_time, least_power
        The least a total is known to: `between_sd`.
    deployment
        Whose doubt it is.
    changed
        Facts of the board other than where rows were measured.
    other
        Of the same deployment as known otherwise, which is deviated no further: under a library
        nobody measured, where no row is of this release on this board; of one's own rows, without
        them.
    """

    calibration: Calibration
    unlearned: Floats
    beyond: float
    layer_sd: float
    least_time: float
    least_power: float
    deployment: Deployment
    changed: tuple[str, ...] = ()
    other: Doubt | None = None

    @property
    def layer_band(self) -> Band:
        """How far intervals of layers reach: as published layers say, or a user's own rows."""
        band = self.calibration.entry.time.band.band()
        return band if self.calibration.origin != "shipped" else replace(
            band, down=LAYER_REACH, up=LAYER_REACH)


def doubt(deployment: Deployment, calibration: Calibration, item: Itemised) -> Doubt:
    """Return what intervals of a deployment come from.

    Parameters
    ----------
    deployment
        At the calibration's prices or any others.
    calibration
        Whose rows tell of operators; one whose instructions were counted needs none but in float.
    item
        Of the deployment, or of another of its structure.
    """
    evidence, closed = calibration.operators, deployment.runtime.structure == "assumed"
    unlearned = np.array([
        operator_sd(name, evidence, BORROWED_SD if closed or unknown else OPERATOR_SD)
        for unknown, name in zip(item.assumed, name_operators(deployment), strict=True)])
    own = calibration.origin != "shipped"
    counted = calibration.counted or (
        tell_basis(deployment.runtime, deployment.board.core) if own else "")
    if counted == IMAGE:
        unlearned[:] = 0.0
    elif counted:
        by_rows = unlearned.copy()
        floats = {layer.index for layer in float_layers(deployment.executed)}
        if deployment.runtime.scales_in_float:
            floats = set(range(len(unlearned)))
        for place in np.flatnonzero(list_counted(deployment, item.assumed)):
            unlearned[place] = FLOAT_SD if place in floats else 0.0
        for places in list_input_assumptions(deployment).values():
            unlearned[places] = OPERATOR_SD
        unlearned = np.minimum(unlearned, by_rows) if own else unlearned
    return Doubt(
        calibration=calibration, unlearned=unlearned,
        beyond=0.0 if counted in (IMAGE, LEARNT) else remaining_sd(
            evidence.get(EXTERNAL, 0.0), BORROWED_SD),
        layer_sd=LAYER_SD[deployment.runtime.structure],
        least_time=between_sd(deployment.graph.architecture_id, calibration.entry, time=True),
        least_power=between_sd(deployment.graph.architecture_id, calibration.entry, time=False),
        deployment=deployment, changed=calibration.name_changes(deployment),
        other=_doubt_otherwise(deployment, calibration, item))


def _doubt_otherwise(deployment: Deployment, calibration: Calibration,
                     item: Itemised) -> Doubt | None:
    """Return the doubt of a library nobody measured; None where rows or counts tell more.

    Of prices of a file it is that of those a prediction takes without it.
    """
    entry = calibration.entry
    if calibration.origin != "shipped":
        start = starting_prices(deployment.board, entry.runtime)
        return None if start is None else doubt(deployment, start, item)
    if ((entry.board is not None and entry.time.rows) or entry.runtime == UNSEEN_RUNTIME
            or calibration.counted):
        return None
    unseen = unseen_prices(deployment.board)
    return None if unseen is None else doubt(deployment, unseen, item)
