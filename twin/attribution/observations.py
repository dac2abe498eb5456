"""Measured inferences with what is counted behind them: what a calibration learns from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.datasets import PublishedRow, read_table
from calibration.datasets.published import refuse_sealed
from calibration.errors import MeasurementError
from calibration.fitting.cell import Cell, locate, locate_power
from calibration.fitting.networks import name_network
from calibration.importers.log import UNKNOWN
from calibration.measurement.measurement import MODEL_FILE, Measurement, read_measurement
from hwmodels.board.file import load_board
from hwmodels.errors import TwinError, reworded
from hwmodels.frozen import entity
from hwmodels.quantities import format_frequency, format_time, list_by_key
from twin.attribution.folders import start_with_counter
from twin.attribution.lower_bound import find_impossible
from twin.attribution.published import build_published, deploy_row
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.stated import (
    LISTED,
    describe_open,
    name_runtime,
    settle_runtime,
    without_tools,
)
from twin.errors import ModelError
from twin.network.readers import read_model
from twin.pricing.design import DesignMatrix, make_design
from twin.pricing.price_names import STREAM

UNITS = {"cpu_cycles": "cycles", "latency": "us", "energy": "uj"}
"""Of the counters that are learnt from."""

APART = 1.1
"""Times of two runs of the same network, library, board and clock differ by less (assumed)."""

WAITING = np.array([1 / 3, 1.0, 3.0])
"""Times what is stated that waiting for memories may take: between two clocks (assumed)."""

PMU_TABLE = "apollo510_kws_pmu"
PMU_SETUP = {"board": "apollo510_evb", "runtime": "tflm-cmsis-nn@2023", "weights": "tcm",
             "arena": "tcm"}
"""What the Apollo510 table was measured with; its README says weights and arena are in DTCM."""


@entity
class Observation:
    """One measured total: an inference, or a layer of one.

    Parameters
    ----------
    label, source
        Where it is in its data, and where those come from.
    network
        Whose structure error it shares: a network, or a layer shape.
    runtime
        As measured, "name@version".
    design
        What is counted behind it.
    cycles
        Measured, of the core's clock.
    energy_pj
        Measured at the rail; None is not known, or not to be trusted.
    supply_v
        During the measurement of energy.
    kind
        "published", "measured", "simulated": of the measurement.
    power
        Where its powers hold; None where energy was not measured.
    timed
        Whether prices of time are learnt from it: not from the sum of layers that stand beside it.
    """

    label: str
    source: str
    network: str
    runtime: str
    cell: Cell
    design: DesignMatrix
    cycles: float
    energy_pj: float | None
    clock_hz: float
    supply_v: float | None
    arena: str
    whole: bool = True
    kind: str = "published"
    power: Cell | None = None
    timed: bool = True

    @property
    def prices(self) -> tuple[str, ...]:
        """Time prices its cycles are counted by."""
        return self.design.prices


def observe_rows(rows: Iterable[PublishedRow]) -> tuple[Observation, ...]:
    """Count what is behind published rows; those no model can deploy are omitted.

    Parameters
    ----------
    rows
        Of use "fit".

    Raises
    ------
    MeasurementError
        For a sealed row.
    """
    rows = tuple(rows)
    refuse_sealed(rows)
    return observe_any(rows)


def observe_any(rows: Iterable[PublishedRow]) -> tuple[Observation, ...]:
    """Count what is behind rows of any use: for code that judges and does not learn.

    A row of use "fit" whose arena the source has in several memories, and we in one, teaches
    nothing: how much waits for which memory is not stated.
    """
    found = []
    for row in rows:
        if not row.judges_latency or row.model is None or row.clock_hz is None:
            continue
        try:
            deployment = deploy_row(row, build_published(row.model))
            design = make_design(deployment)
        except TwinError:
            continue
        elsewhere = "arena_beyond_chip" in row.flags and not deployment.placement.parts_bytes
        if elsewhere and row.use == "fit":
            continue
        assert row.latency_ms is not None and row.runtime is not None
        found.append(Observation(
            label=f"{row.dataset}:{row.line}", source=row.source, network=name_network(row.model),
            runtime=row.runtime, design=design, arena=deployment.arena, clock_hz=row.clock_hz,
            cell=_cell(deployment, row.runtime),
            cycles=row.latency_ms * 1e-3 * row.clock_hz,
            energy_pj=row.energy_uj * 1e6 if row.judges_energy and row.energy_uj else None,
            supply_v=row.supply_v, power=_power_cell(deployment, row.runtime)))
    return tuple(found)


def observe_pmu_layers() -> tuple[Observation, ...]:
    """Return the distinct layer shapes of the Apollo510's counters, each the median of its layers.

    A layer of no kernel and no call has nothing to learn from and is omitted.
    """
    deployment = deploy("kws", PMU_SETUP["board"], runtime=PMU_SETUP["runtime"],
                        weights=PMU_SETUP["weights"], arena=PMU_SETUP["arena"])
    rows = read_table(PMU_TABLE).rows
    shapes = list_by_key((f"{row['Tag']} {row['FILTER_SHAPE']} to {row['OUTPUT_SHAPE']}",
                          int(str(row["Event"]))) for row in rows)
    measured = {shape: statistics.median(float(str(rows[layer]["ARM_PMU_CPU_CYCLES"]))
                                         for layer in layers)
                for shape, layers in shapes.items()}
    whole = _observe_whole(deployment, PMU_SETUP["runtime"], label=PMU_TABLE,
                           source=str(rows[0]["source"]), kind="published")
    return _observe_layers(whole, {shape: (layers[0], measured[shape])
                                   for shape, layers in shapes.items()})


def observe_folder(folder: str | Path, board: str, *, runtime: str | None = None,
                   energy: str | None = None, model: str | None = None,
                   ) -> tuple[Observation, ...]:
    """Count what is behind a measurement folder: its layers where it has them, else its total.

    Parameters
    ----------
    folder
        Of a measurement whose model is a file, or a network of the zoo.
    board
        Board name or file it must be of.
    runtime
        Library it is of, where it does not say.
    energy
        Folder of the energies of the same run, which `twin energy` made.
    model
        The network it is of, unless it is of another: then the file or name it notes.

    Raises
    ------
    MeasurementError
        When it is of another board, network or runtime, cold, holds neither cycles nor latency, or
        took fewer cycles than there can be.
    """
    measurement = read_measurement(folder)
    if energy is not None:
        drawn = read_measurement(energy)
        measurement = replace(
            measurement, header=replace(measurement.header, supply_v=drawn.header.supply_v),
            samples=(*measurement.samples, *(
                one for one in drawn.samples if one.counter == "energy")))
    header, where = measurement.header, str(folder)
    deployment, runtime = _deploy_measured(measurement, board, runtime, where, model)
    _check_units(measurement, where)
    energy_uj = (measurement.percentile("energy", 50) if measurement.count("energy") else None)
    whole = replace(_observe_whole(deployment, runtime, label=where, source=header.source,
                                   kind=header.kind), supply_v=header.supply_v,
                    energy_pj=None if energy_uj is None else energy_uj * 1e6)
    measured = measurement.list_cycles(whole.clock_hz)
    layers = {f"layer {layer}": (layer, cycles) for layer, cycles in measured if layer is not None}
    listed = layers and measurement.part == "layer" and _are_ours(measurement, deployment)
    if listed and measurement.layers[-1] >= (count := len(deployment.graph.layers)):
        raise MeasurementError(f"{where}: has a layer {measurement.layers[-1]}; accepted: 0 to "
                               f"{count - 1}, of {header.model}")
    impossible = find_impossible(deployment, [one for one in measured if listed or one[0] is None])
    if impossible is not None:
        raise MeasurementError(f"{where}: {impossible}")
    each = _observe_layers(whole, layers, measurement) if listed else ()
    if each and (energy_uj is None or all(one.energy_pj is not None for one in each)):
        return each
    cycles = dict(measured).get(None)
    if cycles is None and layers and len(layers) == len(measurement.layers):
        cycles = sum(cycles for _, cycles in layers.values())
    if cycles is None:
        raise MeasurementError(f"{where}: neither cpu_cycles nor latency; it has "
                               + (", ".join(measurement.counters) or "no finished run")
                               + ": ticks become times by --clock of `twin import`"
                               * any("ticks" in one for one in measurement.counters)
                               + "; of energy, name the folder of its run's times too"
                               * bool(measurement.count("energy")))
    return (*each, replace(whole, cycles=cycles, timed=not each))


def _deploy_measured(measurement: Measurement, board: str, runtime: str | None, where: str,
                     model: str | None = None) -> tuple[Deployment, str]:
    """Return what was measured and its library; refuses what nothing can be learnt from."""
    header = measurement.header
    if header.kind == "predicted" or header.temperature == "cold":
        raise MeasurementError(f"{where}: is " + " ".join(filter(None, (
            header.temperature, header.kind))) + "; accepted: warm measurements")
    if header.facts.get("use") == "test":
        raise MeasurementError(f"{where}: a row of use 'test' is sealed")
    asked = load_board(board)
    if header.board not in (asked.name, board, UNKNOWN):
        raise MeasurementError(f"{where}: measured on {header.board}, not on {asked.name}")
    clocks, placement = header.clocks, dict(header.placement)
    measured = name_runtime(header.runtime, header.facts.get("compiler", ""))
    runtime = without_tools(settle_runtime(measured, runtime, where))
    if hint := describe_open(runtime, asked):
        raise MeasurementError(f"{where}: its runtime {runtime!r} is unknown; pass {hint}")
    if header.model == UNKNOWN:
        raise MeasurementError(f"{where}: does not say which network it is of; import it again "
                               "with --model")
    graph = None if model is None else read_model(model)
    if graph is None or header.architecture_id not in (None, graph.architecture_id):
        hint = "`calibrate --model MODEL` names the network it is of" if graph is None else (
            f"--model {model} is another network than the folder's")
        with reworded(ModelError, MeasurementError, f"{where}: ", f"; {hint}"):
            graph = read_model(header.facts.get(MODEL_FILE, header.model))
    deployment = deploy(graph, board, runtime=runtime, clock_hz=clocks.get("cpu"),
                        weights=placement.get("weights"), arena=placement.get("arena"),
                        follow_clock=False)
    if header.architecture_id not in (None, deployment.graph.architecture_id):
        raise MeasurementError(f"{where}: measured another network than {header.model} is now")
    return start_with_counter(deployment, measurement)[0], runtime


def _are_ours(measurement: Measurement, deployment: Deployment) -> bool:
    """Whether a measurement's layers are the deployment's, one by one; a tool's own nodes are not.

    Raises
    ------
    MeasurementError
        When it lists the operators of a network, and they are not all there.
    """
    operators = measurement.header.facts.get("operators", "")
    if not operators:
        return True
    tags, layers = operators.split(","), deployment.graph.layers
    if not measurement.header.runtime.startswith(LISTED) and not deployment.runtime.identity \
            .startswith(LISTED):
        return len(tags) == len(layers)
    if len(tags) != len(layers):
        raise MeasurementError(f"{measurement.header.source}: lists {len(tags)} operators, "
                               f"{deployment.graph.name} has {len(layers)}")
    for counter in {"timer_ticks", *UNITS}.intersection(measurement.counters):
        counts = [measurement.count(counter, layer) for layer in range(len(layers))]
        if any(counts) and min(counts) < max(counts):
            raise MeasurementError(f"{measurement.header.source}: of {max(counts)} runs {counter} "
                                   f"has {min(counts)} of layer {counts.index(min(counts))}: a log "
                                   "that was cut; accepted: whole runs")
    return True


def _check_units(measurement: Measurement, where: str) -> None:
    """Refuse a counter that is learnt from in another unit than it is read in."""
    units = {sample.counter: sample.unit for sample in measurement.samples}
    for counter, unit in UNITS.items():
        if units.get(counter, unit).lower() != unit:
            raise MeasurementError(f"{where}: {counter} is in {units[counter]}; accepted: {unit}")


def _observe_whole(deployment: Deployment, runtime: str, *, label: str, source: str, kind: str,
                   ) -> Observation:
    """Return an inference of a deployment, of which neither cycles nor energy are known yet."""
    board = deployment.board
    return Observation(
        label=label, source=source, network=deployment.graph.architecture_id, runtime=runtime,
        cell=_cell(deployment, runtime), design=make_design(deployment), cycles=0.0,
        energy_pj=None, clock_hz=board.core_clock.frequency_hz, supply_v=None,
        arena=deployment.arena, kind=kind, power=_power_cell(deployment, runtime))


def _observe_layers(whole: Observation, layers: Mapping[str, tuple[int, float]],
                    measurement: Measurement | None = None) -> tuple[Observation, ...]:
    """Return layers of an inference, with their energies where a measurement has them."""
    found = []
    for name, (layer, cycles) in layers.items():
        design, energy_pj = whole.design.select(slice(layer, layer + 1)), None
        if measurement is not None and measurement.count("energy", layer):
            energy_pj = measurement.percentile("energy", 50, layer) * 1e6
        if design.cycles.sum() and cycles > 0:
            found.append(replace(
                whole, label=f"{whole.label} {name}", network=f"{whole.network} {name}",
                whole=False, design=design, cycles=cycles, energy_pj=energy_pj, supply_v=None))
    return tuple(found)


def _cell(deployment: Deployment, runtime: str) -> Cell:
    return locate(deployment.board.name, deployment.board.core.model, runtime)


def _power_cell(deployment: Deployment, runtime: str) -> Cell:
    board = deployment.board
    return locate_power(board.name, board.power.regulator, runtime, board.stated_current_sd)


def find_contradictions(folders: Mapping[str, Sequence[Observation]]) -> list[str]:
    """Say which folders of one network and library are too far apart to be both right.

    Each is set beside the cycles counted at its clock, which are as far off as another's: waiting
    for memories may take a third to three times what is stated (`WAITING`).
    """
    found, first = [], dict[tuple[object, ...], tuple[str, np.ndarray]]()
    for folder, observed in folders.items():
        if not (timed := [one for one in observed if one.timed]):
            continue
        one, cycles = timed[0], sum(one.cycles for one in timed)
        whole = (f"{format_time(1e6 * cycles / one.clock_hz)} at "
                 f"{format_frequency(one.clock_hz)} of {folder}")
        work = np.sum([one.design.cycles.sum(axis=0) for one in timed], axis=0)
        waits = work[[name in ("memory", STREAM) for name in one.prices]].sum()
        ratios = cycles / (work.sum() + (WAITING - 1) * waits)
        other, theirs = first.setdefault(
            (one.network, one.runtime, one.arena, len(timed)), (whole, ratios))
        apart = np.abs(np.log(ratios / theirs))
        if apart.min() > math.log(APART):
            found.append(
                f"{whole}: {(ratios / theirs)[apart.argmin()]:.2f} x what {other} lets expect, the "
                "same network and library; `twin diagnose` says what may be wrong with one")
    return found
