"""Public log formats read into measurements, one module per format.

    measurement = import_measurement("npu-profiler", path)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from calibration.errors import MeasurementError
from calibration.measurement import Measurement
from hwmodels.errors import did_you_mean

FORMATS: Mapping[str, str] = {"npu-profiler": "npu_profiler"}
"""Formats by the name a command gives them, and the module that reads each."""


def import_measurement(form: str, path: str | Path) -> Measurement:
    """Read a log of a public tool.

    Parameters
    ----------
    form : str
        One of `FORMATS`.
    path : str or Path
        The log.

    Returns
    -------
    Measurement
        Of kind "measured", its source the file.

    Raises
    ------
    MeasurementError
        For an unknown format, or a file it refuses, naming file and line.
    """
    if form not in FORMATS:
        raise MeasurementError(f"no importer for {form!r}; " + did_you_mean(form, FORMATS))
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MeasurementError(f"{path}: no readable log ({error})") from error
    read: Callable[[str, str], Measurement] = import_module(
        f"calibration.importers.{FORMATS[form]}").read_log
    return read(text, str(path))
