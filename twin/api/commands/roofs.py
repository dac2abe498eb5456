"""`twin predict --roofs`: what micro-benchmarks say of a board, for its roofline."""

from __future__ import annotations

from calibration.measurement.measurement import read_measurement
from calibration.microbench.machine import Machine, describe_machine
from hwmodels.board.file import load_board
from twin.errors import UsageError


def read_roofs(folder: str, board: str) -> Machine:
    """Read micro-benchmarks of a board, for the roofs of its roofline.

    Parameters
    ----------
    folder : str
        Of `twin measure --plan all`.
    board : str
        Name or file of the board that is predicted.

    Returns
    -------
    Machine
        Rates of its memories and its core.

    Raises
    ------
    UsageError
        When they are of another board, or without cycles.
    """
    measurement = read_measurement(folder)
    machine, name = describe_machine(measurement, folder), load_board(board).name
    if measurement.header.board != name or machine.counter != "cpu_cycles":
        raise UsageError(f"--roofs {folder}: {machine.counter} of {measurement.header.board}; "
                         f"accepted: cpu_cycles of {name}")
    return machine
