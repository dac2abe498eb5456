"""Where in a folder a measurement is, and which runtime, or library by its time, it is of."""

from __future__ import annotations

import filecmp
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

from calibration.fitting.cell import list_measured
from calibration.measurement.measurement import (
    HEADER_FILE,
    MODEL_FILE,
    SAMPLES_FILE,
    Measurement,
    read_header,
)
from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from hwmodels.quantities import format_time, list_first
from twin.deployment.choice import find_newest, list_best, load_runtime
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.stated import list_accelerating
from twin.deployment.support import runs
from twin.errors import UsageError
from twin.network.graph import Graph
from twin.network.operators import graph_macs
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction


def warm_of_campaign(folder: str) -> str:
    """Return the warm measurement of a campaign's folder; any other folder as it is."""
    return str(find_folder(Path(folder))) if (Path(folder) / "warm").is_dir() else folder


def find_folder(path: Path) -> Path:
    """Return the folder with the header: the one given, or the warm one of a campaign in it."""
    found = next((one for one in (path, path / "warm") if (one / HEADER_FILE).exists()), None)
    if found is None:
        raise UsageError(f"{path}: no measurement: there is no {HEADER_FILE} in it; accepted: a "
                         "folder `twin measure` or `twin import` wrote")
    return found


def note_file(graph: Graph) -> dict[str, str]:
    """Return what a header notes of the file of a network: its path; nothing of the zoo's."""
    return {} if graph.source.startswith("zoo:") else {MODEL_FILE: graph.source}


def drop_repeated(folders: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return folders of measurements, each once, and what to know of those omitted.

    Parameters
    ----------
    folders
        Of one measurement each; a copy with the same samples is the same measurement.

    Returns
    -------
    tuple of (list of str, list of str)
        Folders as they were named, and a warning for each that is there already.
    """
    kept, remarks = list[str](), list[str]()
    for folder in folders:
        if same := next((one for one in kept if _is_copy(one, folder)), ""):
            remarks.append(f"{folder}: has the samples of {same}; they count once")
        else:
            kept.append(folder)
    return kept, remarks


def _is_copy(one: str, other: str) -> bool:
    """Whether two folders are one, or have the same samples."""
    with suppress(OSError):
        return Path(one).samefile(other) or filecmp.cmp(
            Path(one) / SAMPLES_FILE, Path(other) / SAMPLES_FILE, shallow=False)
    return False


def pair_energies(folders: Sequence[str]) -> dict[str, str | None]:
    """Return folders of measurements, each with that of the energy `twin energy` made of its run.

    Parameters
    ----------
    folders
        Of one measurement each. A recording belongs to the first of its network, board, runtime and
        clocks that has none yet; without one it stands alone.
    """
    headers = {folder: read_header(folder) for folder in folders}
    of = {folder: replace(header, source="", supply_v=None, environment=())
          for folder, header in headers.items()}
    found: dict[str, str | None] = {
        folder: None for folder, own in headers.items() if "meter" not in own.facts}
    for folder in [one for one in folders if one not in found]:
        run = next((one for one, energy in found.items()
                    if energy is None and of[one] == of[folder]), folder)
        found[run] = folder if run != folder else None
    return found


def tell_other_file(name: str, then: str | None, now: str | None) -> str:
    """Return what to know where a board's file says something else than when it was measured.

    Parameters
    ----------
    then, now
        Its hashes (`hwmodels.board.file.hash_board`); None is not known.

    Returns
    -------
    str
        "" where nothing is known to differ.
    """
    if None in (then, now) or then == now:
        return ""
    return (f"that of {name} said something else when it was measured, clocks and supply apart: "
            "another file of that name, another version of it, or --set")


MOST_MACS = 5_000_000
"""Networks up to this size are predicted once more, in a fraction of a second; larger ones not."""


def describe_measured_runtime(prediction: Prediction) -> tuple[str, ...]:
    """Say which runtime is known better on the board, and the interval it gives.

    Parameters
    ----------
    prediction
        At shipped prices.

    Returns
    -------
    tuple of str
        One line; none where the runtime itself was measured on the board, or none was.
    """
    deployment = prediction.deployment
    board, runtime = deployment.board, deployment.runtime
    here = {row.runtime for row in list_measured() if row.board == board.measured_name}
    best = [name for name in list_best(board) if name in here
            and runs(deployment.graph, load_runtime(name), board)]
    if (not best or runtime.identity in here or runtime.is_compiled
            or deployment.accelerated or prediction.certainty is None):
        return ()
    hint = f"{best[0]} was, and would narrow the interval"
    if graph_macs(deployment.graph) <= MOST_MACS:
        try:
            sure = predict_calibrated(deployment.replace({"runtime": best[0]}),
                                      temperature=prediction.temperature).certainty
        except TwinError:  # It does not fit, or lacks a type: it narrows nothing.
            return ()
        if sure is not None:
            hint = (f"{best[0]} was, and is predicted to take "
                    f"{sure.time_us.write(format_time)}")
    return (f"runtime: {runtime.identity} was not measured on {board.name}; {hint}",)


def predict_planned(measurement: Measurement, board: Board, runtime: str) -> Prediction | None:
    """Predict the network a plan was made for; None without one, or one that cannot be placed."""
    model = measurement.header.facts.get("for_model")
    try:
        return None if model is None else predict(deploy(model, board, runtime=runtime))
    except TwinError:
        return None


def planned_runtime(measured: Iterable[Measurement], given: str | None) -> str:
    """Return the library micro-benchmarks are to correct: the one given, or their plan's.

    Raises
    ------
    UsageError
        When neither names one.
    RuntimeRefusedError
        For a runtime there is not.
    """
    named = (one.header.facts.get("for_runtime") for one in measured)
    if not (runtime := given or next(filter(None, named), None)):
        raise UsageError("--runtime is needed: which library's prices are the micro-benchmarks to "
                         "correct?")
    return load_runtime(runtime).identity


def start_with_counter(deployment: Deployment, measurement: Measurement) -> tuple[Deployment, str]:
    """Return a deployment without what a log does not count, and a note of that; "" where it does.

    The cycle counter of an Ethos-U starts when the host has set it up, and its total is the only
    time such a log has.
    """
    if (not deployment.accelerated or (npu := deployment.board.accelerator).family != "ethos-u"
            or measurement.count("cpu_cycles") or not measurement.count("npu_cycles")):
        return deployment, ""
    return deployment.replace({"npu.hand_over.pre_cycles": 0}), (
        f"predicted without the {npu.hand_over.pre_cycles:,.0f} cycles in which the host sets the "
        "NPU up: the log's counter starts after them")


NEAR = 2.0
"""A library explains a time this close, as a ratio either way (assumed); one that distinguishes
libraries apart is off by as much again with all others."""

APART = 1.1
"""Releases of one library are distinguished where the others are twice as far off, as logarithms,
and at least this ratio farther (assumed)."""


LEAST = 0.01
"""Share of the time below which a layer is not compared by itself (assumed)."""


@frozen
class LibraryFit:
    """The libraries that explain a measured time.

    Parameters
    ----------
    runtime
        The one that explains it; None where none does, or several libraries or releases do.
    ratios : tuple of (str, float)
        Measured over predicted time, by runtime.
    """

    runtime: str | None
    ratios: tuple[tuple[str, float], ...]

    @property
    def is_near(self) -> bool:
        """Whether one explains the time at all."""
        return abs(math.log(self.ratios[0][1])) <= math.log(NEAR)

    def __str__(self) -> str:
        """Say how far each is, the nearest first."""
        return list_first([f"{ratio:.3g} times {name}" for name, ratio in self.ratios], 6)


def tell_library(measurement: Measurement, graph: Graph, board: str,
                 candidates: Sequence[str]) -> LibraryFit | None:
    """Compare a measured inference with what libraries would take.

    Parameters
    ----------
    measurement
        Of a whole inference, or of layers: then their sum and the median layer must both be near,
        so that one kind of layer does not decide.
    board
        Name or file.
    candidates
        Runtimes it may be of.

    Returns
    -------
    LibraryFit or None
        The closest must be clear of the others, unless it is the default library of the board's
        accelerator; of releases predicted alike the newest. None where it has no times, or no
        candidate runs there.
    """
    times = {layer: us for layer in (None, *measurement.layers)
             if (us := _median_us(measurement, layer))}
    ratios, apart = {}, {}
    for name in candidates:
        try:
            deployment = deploy(graph, board, runtime=name,
                                clock_hz=measurement.header.clocks.get("cpu"))
            predicted = predict_calibrated(deployment,
                                           temperature=measurement.header.temperature or "warm")
        except TwinError:
            continue
        layers = {layer.index: layer.time_us for layer in predicted.layers
                  if layer.time_us and layer.index in times}
        whole_us = times.get(None) or math.fsum(times[layer] for layer in layers)
        predicted_us = predicted.time_us if None in times else math.fsum(layers.values())
        if predicted_us:
            ratios[name] = whole_us / predicted_us
            logs = [abs(math.log(times[layer] / us)) for layer, us in layers.items()
                    if us > LEAST * predicted_us]
            apart[name] = max(abs(math.log(ratios[name])), median(logs or [0.0]))
    if not ratios:
        return None
    ranked = sorted(ratios, key=lambda name: apart[name])
    nearest, stem = ranked[0], ranked[0].partition("@")[0]
    related = [name for name in ranked if name.partition("@")[0] == stem]
    alike = [name for name in related
             if abs(math.log(ratios[name] / ratios[nearest])) < math.log(APART)]
    usual = stem in list_accelerating(load_board(board))
    clear = apart[nearest] <= math.log(NEAR) and all(
        usual or name in alike or _is_clear(apart[nearest], apart[name], name in related)
        for name in ranked)
    return LibraryFit(runtime=find_newest(alike) if clear else None, ratios=tuple(
        (name, ratios[name]) for name in ranked))


def _is_clear(least: float, other: float, related: bool) -> bool:
    """Whether a rival is far enough off, as logarithms; releases of one library may be nearer."""
    return other >= (max(2 * least, least + math.log(APART)) if related else least + math.log(NEAR))


def _median_us(measurement: Measurement, layer: int | None) -> float | None:
    clocks = measurement.header.clocks
    if measurement.count("latency", layer):
        return measurement.percentile("latency", 50, layer)
    for counter, clock in (("cpu_cycles", "cpu"), ("timer_ticks", "timer")):
        if measurement.count(counter, layer) and clock in clocks:
            return measurement.percentile(counter, 50, layer) / clocks[clock] * 1e6
    return None
