"""What a measured bottleneck suggests: the change that is predicted to save most."""

from __future__ import annotations

from hwmodels.board.file import load_board
from hwmodels.errors import TwinError
from twin.api.commands.measure import Measured
from twin.deployment.deploy import deploy
from twin.studies.change import Change
from twin.studies.remedies import suggest_change


def suggest(measured: Measured, board: str) -> Change | None:
    """Return the setting or rebuild that is predicted to save most of a measured network's time.

    Parameters
    ----------
    measured : Measured
        Of `measure`.
    board : str
        Name or file of the board it ran on.

    Returns
    -------
    Change or None
        None where nothing that was tried saves two per cent, or the network cannot be predicted.
    """
    network = measured.networks[-1]
    header = network.measurement.header
    machine = load_board(board)
    try:
        deployment = deploy(measured.graph, machine, runtime=header.runtime or None,
                            clock_hz=header.clocks.get(machine.core.clock), follow_clock=False)
        return suggest_change(deployment, network.whole.bottleneck.kind)
    except TwinError:  # what was measured stands without a suggestion
        return None
