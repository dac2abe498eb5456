"""Public log formats read into measurements, one module per format.

    measurement = import_measurement("npu-profiler", path)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from calibration.errors import MeasurementError
from calibration.measurement import Measurement
from calibration.sample import Header, Sample
from hwmodels.errors import did_you_mean

FORMATS: Mapping[str, str] = {
    "itm": "itm", "mlperf-tiny": "mlperf_tiny", "neuralspot": "neuralspot",
    "npu-profiler": "npu_profiler", "perf-stat": "perf_stat", "st-edge-ai": "st_edge_ai",
    "tflm": "tflm", "vela": "vela", "x-cube-ai": "st_edge_ai",
}
"""Formats by the name a command gives them, and the module that reads each."""

BINARY = ("itm",)
"""Formats that are not text."""


def import_measurement(form: str, path: str | Path, *, board: str | None = None,
                       model: str | None = None, clock_hz: float | None = None) -> Measurement:
    """Read a log of a public tool.

    Parameters
    ----------
    form : str
        One of `FORMATS`.
    path : str or Path
        The log.
    board, model : str, optional
        Where the log does not say, or says it in other words.
    clock_hz : float, optional
        Of what the log counts: cycles of "cpu", or ticks of "timer". Latencies follow from it
        where the log has none.

    Returns
    -------
    Measurement
        Its source the file; of kind "measured", or "predicted" for a compiler's estimate.

    Raises
    ------
    MeasurementError
        For an unknown format, or a file it refuses, naming file and line.
    """
    if form not in FORMATS:
        raise MeasurementError(f"no importer for {form!r}; " + did_you_mean(form, FORMATS))
    path = Path(path)
    try:
        data = path.read_bytes() if form in BINARY else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MeasurementError(f"{path}: no readable log ({error})") from error
    read: Callable[[str | bytes, str], Measurement] = import_module(
        f"calibration.importers.{FORMATS[form]}").read_log
    return _complete(read(data, str(path)), board, model, clock_hz)


def _complete(found: Measurement, board: str | None, model: str | None,
              clock_hz: float | None) -> Measurement:
    """Add what the user knows: names, and latencies of what was counted at a known clock."""
    header: Header = replace(found.header, board=board or found.header.board,
                             model=model or found.header.model)
    if clock_hz is None:
        return replace(found, header=header)
    clock, counter = next(((clock, counter) for counter, clock in (
        ("cpu_cycles", "cpu"), ("ticks", "timer")) if counter in found.counters), (None, None))
    if clock is None:
        raise MeasurementError(f"{found.header.source}: counts no cycles or ticks a clock could "
                               f"turn into time; it has {', '.join(found.counters)}")
    header = replace(header, clocks_hz=tuple({**dict(header.clocks_hz), clock: clock_hz}.items()))
    times = [Sample(run=one.run, layer=one.layer, counter="latency", unit="us",
                    value=one.value / clock_hz * 1e6)
             for one in found.samples if one.counter == counter and "latency" not in
             found.counters]
    return Measurement(header=header, samples=(*found.samples, *times))
