"""The verbs as functions: what `twin.predict`, `twin.calibrate`, `twin.port` and others name."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from calibration.fitting.overlay import Overlay, write_overlay
from calibration.measurement.measurement import read_measurement
from hwmodels.board.file import load_board
from twin.attribution import diagnosis, views
from twin.attribution.diagnosis import Diagnosis
from twin.attribution.difference import Difference
from twin.attribution.measured import read_side
from twin.attribution.predicted import side_of_prediction
from twin.attribution.setup import deploy_measured
from twin.deployment.deployment import Deployment
from twin.learning.calibrated import AUTO, predict_calibrated
from twin.learning.folders import find_folder
from twin.learning.observations import observe_folder
from twin.learning.portability.port import Ported, gather, predict_unmeasured
from twin.learning.portability.probed import learn_all, learn_probes, split_folders
from twin.prediction.prediction import Prediction

Folder = str | PathLike[str]


def predict(deployment: Deployment, *, temperature: str = "warm",
            calibration: Folder = AUTO) -> Prediction:
    """Predict cycles, time and energy of one inference, why, and how sure that is.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    temperature : str
        "warm" (after at least one inference) or "cold" (caches empty).
    calibration : str or path
        "auto": learnt prices that are shipped for this board and runtime; "none": stated prices;
        else an overlay file of `calibrate`.

    Returns
    -------
    Prediction
        With `certainty` where learnt prices were used.
    """
    return predict_calibrated(deployment, temperature=temperature,
                              calibration=fspath(calibration))


def calibrate(folders: Sequence[Folder], board: str, *, runtime: str | None = None,
              output: Folder | None = None) -> Overlay:
    """Learn prices of one's own board from measurements.

    Parameters
    ----------
    folders : sequence of str or path
        Measurements of networks, of micro-benchmarks, or of both.
    board : str
        Name or file of the board they were measured on.
    runtime : str, optional
        Whose prices micro-benchmarks correct; by default that of their plan.
    output : str or path, optional
        File to write the overlay to, for `predict`.

    Returns
    -------
    Overlay
        Prices, their covariance, and what they rest on.
    """
    machine = load_board(board)
    probes, networks = split_folders(str(find_folder(Path(folder))) for folder in folders)
    probed = learn_probes(probes, machine, runtime) if probes else None
    observations = [one for folder in networks for one in observe_folder(folder, board)]
    overlay = learn_all(observations, probed, machine)
    if output is not None:
        write_overlay(Path(output), overlay)
    return overlay


def port(deployment: Deployment, sources: Sequence[Folder], *,
         networks: Sequence[str] = ()) -> Ported:
    """Predict for a board nobody measured, from what others were measured to take.

    Parameters
    ----------
    deployment : Deployment
        On the new board.
    sources : sequence of str or path
        Measured boards by name, or measurement folders.
    networks : sequence of str
        Learn from these only; empty: from all.

    Returns
    -------
    Ported
        Prediction, interval, and what both rest on.
    """
    return predict_unmeasured(deployment, gather([fspath(one) for one in sources], networks))


def attribute(prediction: Prediction, folder: Folder, *, anyway: bool = False) -> Difference:
    """Set a prediction beside a measurement: gaps per layer, by cause.

    Parameters
    ----------
    prediction : Prediction
        From `predict`.
    folder : str or path
        Of the measurement.
    anyway : bool
        Also where it is of another network, board or clock.

    Returns
    -------
    Difference
        Whose accounts sum exactly.
    """
    return views.attribute(side_of_prediction(prediction), read_side(fspath(folder)),
                           anyway=anyway)


def diagnose(folder: Folder, *, healthy: Folder | None = None,
             calibration: Folder = AUTO) -> Diagnosis:
    """Weigh which fault of the set-up explains a measurement.

    Parameters
    ----------
    folder : str or path
        Of the measurement, whose header names model, board and runtime.
    healthy : str or path, optional
        A measurement of the same kernels known to be right.
    calibration : str or path
        As for `predict`; learnt prices are those of the runtime that was measured.

    Returns
    -------
    Diagnosis
        Faults by probability.
    """
    measurement = read_measurement(find_folder(Path(folder)))
    deployment, stand_in = deploy_measured(measurement)
    return diagnosis.diagnose(
        deployment, measurement, stands_in=bool(stand_in), calibration=fspath(calibration),
        healthy=None if healthy is None else read_measurement(find_folder(Path(healthy))))
