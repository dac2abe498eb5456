"""`twin measure --probe`: a board that runs its own inference and times it with twin_probe.h."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.files import write_whole
from twin.errors import UsageError

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.api.commands.measuring import Watcher
    from twin.api.requests.measurement import MeasureOptions
    from twin.attribution.measured_layers import MeasuredNetwork
    from twin.network.graph import Graph

INFERENCES = 20
"""Whole ones that are waited for, where no number is asked."""


def listen_to_probe(model: str, graph: Graph, board: Board | None, options: MeasureOptions,
                    folder: Path, watcher: Watcher) -> MeasuredNetwork:
    """Keep what a board sends of its own, and describe it.

    Parameters
    ----------
    model : str
        File or name of the network it runs: marks must be its layers, in order.
    board : Board or None
        What it runs on; None is this machine.
    options : MeasureOptions
        Port, rate, and how many inferences.
    folder : Path
        Gets `serial.log`, and the measurement as `probe`.

    Returns
    -------
    MeasuredNetwork
        Medians by layer.

    Raises
    ------
    UsageError
        When a virtual board is named, or the folder has a measurement.
    LinkError
        When nothing comes.
    MeasurementError
        When what comes is of another network.
    """
    from calibration.collecting.link import find_port, open_link
    from calibration.collecting.probe_line import listen
    from calibration.importers.probe import InferenceCount
    from twin.api.commands.importing import import_log
    from twin.attribution.measured_layers import describe_network, find_limits

    if options.virtual is not None or options.resume or options.power is not None:
        raise UsageError("--probe listens to a program of your own on --port; --virtual, --resume "
                         "and --power are for the twin's firmware")
    if (folder / "probe").exists():
        raise UsageError(f"{folder} holds a measurement, and none is written over; give another -o")
    port = find_port(options.port)
    with open_link(port, baud=options.baud) as link:
        heard = listen(link, options.runs or INFERENCES, InferenceCount())
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serial.log"
    write_whole(log, heard)
    imported = import_log("probe", log, output=folder / "probe", model=model, port=port,
                          board=None if board is None else board.name)
    for remark in imported.remarks:
        watcher.remark(remark)
    if imported.measurement.count("inference_cycles"):
        watcher.remark(f"epochs of the NPU, not layers: twin compare {model} -b "
                       f"{imported.measurement.header.board} --measured {folder / 'probe'}")
        board = None  # the host's limits are not the NPU's
    return describe_network(imported.measurement, graph, find_limits(board))
