"""`twin import`: a log of a public tool becomes a measurement folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from calibration import importers
from calibration.importers import Imported
from calibration.measurement.measurement import Measurement, write_measurement

EXAMPLES = 3
"""Lines that were not understood and are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLog:
    """What a log held.

    Parameters
    ----------
    measurement : Measurement
        As written.
    folder : Path
        Where.
    remarks : tuple of str
        Lines that were left, what is missing, an unknown board.
    """

    measurement: Measurement
    folder: Path
    remarks: tuple[str, ...]


def import_log(form: str, file: str | PathLike[str], *, output: str | PathLike[str] | None = None,
               board: str | None = None, model: str | None = None, clock_hz: float | None = None,
               partial: bool = False) -> ImportedLog:
    """Read a log of a public tool into a measurement folder.

    Parameters
    ----------
    form : str
        What wrote the log: "itm", "mlperf-tiny", "neuralspot", "npu-profiler", "perf-stat",
        "st-edge-ai", "tflm", "vela" or "x-cube-ai".
    file : str or path
        The log.
    output : str or path, optional
        Folder to write; by default beside the log, under its name.
    board, model : str, optional
        What the log is of, where it does not say; the hash of a known network is noted.
    clock_hz : float, optional
        Of its cycles or ticks.
    partial : bool
        Take an incomplete log for what it has; the folder says so.

    Returns
    -------
    ImportedLog
        The measurement, where it was written, and what to know of it.
    """
    log = Path(file)
    imported = importers.import_log(form, log, board=board, model=model, clock_hz=clock_hz,
                                    partial=partial)
    measurement = imported.measurement
    if model is not None:
        measurement = _identify(measurement, model)
    folder = write_measurement(Path(output or _default_folder(log)), measurement)
    return ImportedLog(measurement=measurement, folder=folder,
                       remarks=_list_findings(imported, board))


def _default_folder(log: Path) -> Path:
    return log.with_suffix("") if log.suffix else log.with_name(f"{log.name}-measurement")


def _identify(measurement: Measurement, model: str) -> Measurement:
    """Note hash and architecture where a name is that of a model file or of a zoo network."""
    from twin.network import zoo
    from twin.network.readers import SUFFIXES, read_model

    if Path(model).suffix.lower() not in SUFFIXES and not zoo.is_known(model.removeprefix("zoo:")):
        return measurement
    graph = read_model(model)
    header = replace(measurement.header, model=graph.name, model_sha256=graph.sha256,
                     architecture_id=graph.architecture_id)
    return replace(measurement, header=header)


def _list_findings(imported: Imported, board: str | None) -> tuple[str, ...]:
    """Return what a user must know: lines that were left, what is missing, unknown boards."""
    found = list(imported.remarks)
    if imported.unread:
        count = len(imported.unread)
        shown = "; ".join(f"{number}: {line.strip()[:60]!r}"
                          for number, line in imported.unread[:EXAMPLES])
        found.append(f"{count} of {imported.lines} lines {'was' if count == 1 else 'were'} not "
                     f"understood and {'is' if count == 1 else 'are'} left out: line {shown}"
                     + (" ..." if count > EXAMPLES else ""))
    if board is not None:
        from hwmodels.board.file import load_board
        from hwmodels.errors import BoardError

        try:
            load_board(board)
        except BoardError as error:
            found.append(f"no board file is known for {board!r}, it is noted as a name ({error})")
    return tuple(found)
