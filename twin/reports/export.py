"""Results as files: CSV tables with a fixed header, each written whole or not at all."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.fitting.intervals import name_ends
from hwmodels.errors import reworded
from hwmodels.files import write_whole
from hwmodels.quantities import Record
from hwmodels.schedule.bill import EVENT_OF_CAUSE
from twin.errors import UsageError
from twin.pricing.layer_columns import LAYER_COLUMNS, make_rows
from twin.pricing.ledger import (
    bill_time_us,
    line_energy_uj,
    line_time_us,
    make_ledger,
    name_energies,
)
from twin.pricing.prediction import Prediction
from twin.pricing.roofs import memory_bytes_per_second

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from twin.attribution.difference import Difference

Rows = list[Record]
"""Of a CSV file: cells by column, the same columns in each."""


def write_csv_files(prediction: Prediction, folder: str | Path, *, accepted: bool | None = None,
                    accuracy: float | None = None) -> tuple[Path, ...]:
    """Write every table of a prediction into a folder.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist; files of the same name are replaced.
    accepted
        Whether it met limits it was held to; None: it was held to none.
    accuracy
        Of the network on somebody's data, 0 to 1.

    Returns
    -------
    tuple of Path
        layerwise_breakdown, precision_tradeoffs and hardware_summary with the columns of the
        edge-hardware constraint framework, then layers, bill and totals, and tasks of an
        accelerator.

    Raises
    ------
    UsageError
        When the folder cannot be written.
    """
    tables = {
        "layerwise_breakdown": layerwise_breakdown(prediction),
        "precision_tradeoffs": precision_tradeoffs(prediction, accepted, accuracy),
        "hardware_summary": hardware_summary(prediction), "layers": layer_rows(prediction),
        "bill": bill_rows(prediction), "totals": total_rows(prediction),
        **({"tasks": task_rows(prediction)} if prediction.tasks else {}),
    }
    return tuple(write_file(Path(folder) / f"{name}.csv", to_csv(rows).encode())
                 for name, rows in tables.items())


def check_place(path: str | Path, *, folder: bool = False) -> None:
    """Refuse a place nothing could be written to, before anything is computed.

    Raises
    ------
    UsageError
        When a file is where a folder would be, a folder where the file would be, or the nearest
        folder that exists lets nothing be written.
    """
    target = Path(path)
    if target.exists() and target.is_dir() != folder:
        raise UsageError(f"{target}: is a {'file' if folder else 'folder'}; accepted: the path of "
                         f"a {'folder' if folder else 'file'}")
    near = target if folder else target.parent
    while not near.exists() and near != near.parent:
        near = near.parent
    if near.anchor and near == near.parent != target.parent:  # the root alone exists
        raise UsageError(f"{target}: no folder {target.parent}; accepted: one that exists")
    with reworded(OSError, UsageError, f"{target}: cannot be written: "), \
            tempfile.TemporaryFile(dir=near):
        pass


FILES = (".csv", ".tsv", ".txt", ".json", ".xlsx", ".parquet", ".html", ".zip")
"""Suffixes no folder of tables is taken to be named by, unless a slash says so."""


def check_tables(folder: str) -> None:
    """Refuse a folder of tables that nothing could be written to, or named as a file is.

    Raises
    ------
    UsageError
        As of `check_place`, and for a name such as `tables.csv` that is not a folder yet.
    """
    target = Path(folder)
    if target.suffix.lower() in FILES and not (folder.endswith("/") or target.exists()):
        raise UsageError(f"--csv {folder}: is named as a file, and several tables go into a folder;"
                         f" accepted: a folder, such as {target.with_suffix('')}; or {folder}/")
    check_place(folder, folder=True)


def write_file(path: str | Path, content: bytes) -> Path:
    """Write a file whole or not at all; its folder is made if it does not exist.

    Raises
    ------
    UsageError
        When the place cannot be written; an older file stays as it was.
    """
    target = Path(path)
    if not target.name or target.is_dir():
        raise UsageError(f"{target}: is a folder; accepted: a file to write")
    with reworded(OSError, UsageError, f"{target}: cannot be written: "):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
    return target


_SIZES = ("output_elements", "parameter_bytes", "activation_bytes")


def layerwise_breakdown(prediction: Prediction) -> Rows:
    """Rows of output elements, parameter and activation bytes, and MACs, one per layer.

    Notes
    -----
    Bytes are those stored, not four per value; activations are the layer's outputs. Of a program
    only MACs are known.
    """
    graph = prediction.graph
    rows: Rows = [{
        "layer": layer.name,
        "output_elements": sum(tensor.elements for tensor in graph.layer_outputs(layer)),
        "parameter_bytes": size_bytes,
        "activation_bytes": sum(tensor.size_bytes for tensor in graph.layer_outputs(layer)),
        "macs": predicted.macs,
    } for layer, predicted, size_bytes in zip(graph.layers, prediction.layers,
                                              prediction.parameter_bytes, strict=True)]
    unknown = dict.fromkeys(() if prediction.precision else _SIZES)
    return [row | unknown for row in rows]


def precision_tradeoffs(prediction: Prediction, accepted: bool | None = None,
                        accuracy: float | None = None) -> Rows:
    """Return the one row this model contributes to a table by precision.

    Notes
    -----
    Accuracy stays empty where none is given, as does the share of runs that met the framework's
    limits where the prediction was held to none: it is one run, so the share is 1 or 0. Memory is
    that of parameters, in MiB as the framework's `model_memory_mb` counts. Energy is with what an
    idle board draws, which boards compare in.
    """
    energy_uj, _ = whole_energy_uj(prediction)
    return [{
        "precision": prediction.precision, "accuracy_mean": accuracy,
        "latency_ms_mean": prediction.time_us / 1e3,
        "memory_mb_mean": sum(prediction.parameter_bytes) / 1024**2
        if prediction.precision else None,
        "energy_proxy_j_mean": None if energy_uj is None else energy_uj * 1e-6,
        "accepted_ratio": None if accepted is None else float(accepted),
    }]


def hardware_summary(prediction: Prediction) -> Rows:
    """Return the one row of bytes, MACs, bandwidth and throughput.

    Notes
    -----
    The configured bandwidth is what the memory that holds the weights delivers at the deployed
    clock (`twin.pricing.roofs`). An accelerator moves most bytes of an inference
    in other memories, so that it is left empty there.
    """
    sizes = [row[key] for row in layerwise_breakdown(prediction) for key in _SIZES[1:]]
    total_bytes = None if None in sizes else sum(sizes)  # type: ignore[arg-type]
    time_s = prediction.time_us * 1e-6
    configured = None if prediction.tasks else memory_bytes_per_second(
        prediction.board, prediction.board.memory(prediction.deployment.weights)) / 1e9
    achieved = total_bytes / time_s / 1e9 if time_s and total_bytes else None
    return [{
        "estimated_total_bytes": total_bytes, "estimated_total_macs": prediction.macs,
        "achieved_bandwidth_gbps": achieved, "configured_memory_bandwidth_gbps": configured,
        "bandwidth_utilization": achieved / configured
        if achieved and configured else None,
        "achieved_gmacs": prediction.macs / time_s / 1e9 if time_s else None,
    }]


def layer_rows(prediction: Prediction) -> Rows:
    """Rows of everything predicted of each layer; with several clocks, cycles of each."""
    clocks = prediction.bill.clocks() if len(prediction.bill.clocks()) > 1 else ()
    found = []
    for row in make_rows(prediction, make_ledger(prediction)):
        cells: Record = {}
        for column in LAYER_COLUMNS:
            if column.name and (prediction.tasks or not column.accelerated):
                cells[column.name] = column.cell(row)
            if column.name == "cycles":
                cells |= {f"{clock}_cycles": row.cycles.get(clock, 0) for clock in clocks}
        found.append(cells)
    return found


def whole_energy_uj(prediction: Prediction) -> tuple[float | None, Interval | None]:
    """Return the energy of an inference with what its idle board draws meanwhile, if any."""
    return [*name_energies(prediction).values()][-1]


def total_rows(prediction: Prediction) -> Rows:
    """Return one inference and, in a row of its own, set-up: nothing holds their sum."""
    setup = prediction.setup
    with_idle_uj, with_idle = whole_energy_uj(prediction)
    return [
        {"phase": "invoke", "time_us": prediction.time_us, "energy_uj": prediction.energy_uj,
         "energy_with_idle_uj": with_idle_uj, **name_ends("time", "us", prediction.time_interval),
         **name_ends("energy", "uj", prediction.energy_interval),
         **name_ends("energy_with_idle", "uj", with_idle)},
        {"phase": "setup", "time_us": bill_time_us(prediction, setup) if setup.lines else None,
         "energy_uj": setup.energy_uj() if setup.lines else None, "energy_with_idle_uj": None,
         **name_ends("time", "us", None), **name_ends("energy", "uj", None),
         **name_ends("energy_with_idle", "uj", None)}]


def bill_rows(prediction: Prediction) -> Rows:
    """Rows of the bill: cause by layer, then set-up, whose index is empty."""
    ledger = make_ledger(prediction)
    accounts = [("invoke", layer.index, layer.bill, lines)
                for layer, lines in zip(prediction.layers, ledger.layers, strict=True)]
    return [{
        "phase": phase, "layer": index, "cause": cause, "clock": clock, "cycles": cycles,
        "time_us": line_time_us(prediction, clock, bill.cycles(clock, cause)),
        "energy_uj": line_energy_uj(bill, clock, cause),
    } for phase, index, bill, lines in [
        *accounts, ("setup", None, prediction.setup, ledger.setup)]
        for (clock, cause), cycles in lines.items()]


def task_rows(prediction: Prediction) -> Rows:
    """Return each task of an accelerator: counters of its profiler, and cycles by cause."""
    runs = [task.run for task in prediction.tasks]
    rows: Rows = [
        {"index": index, "name": task.name, "time_us": task.time_us,
         "layers": " ".join(map(str, task.step.layers)), **counters,
         **{f"{cause}_npu_cycles": sum(one.npu_cycles for one in task.run.exposed
                                       if one.cause == cause) for cause in EVENT_OF_CAUSE}}
        for index, (task, counters) in enumerate(zip(
            prediction.tasks, prediction.compiler.count_runs(runs), strict=True))]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name, 0) for name in names} for row in rows]


def write_comparison(difference: Difference, path: str | Path) -> Path:
    """Write every row and cause of a difference as CSV; returns the file."""
    from twin.attribution.document import comparison_rows

    return write_file(path, to_csv(comparison_rows(difference)).encode())


def to_csv(rows: Sequence[Record]) -> str:
    """Write rows as CSV text; the header is the keys of the first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0] if rows else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
