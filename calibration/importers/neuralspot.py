"""AutoDeploy's per-layer CSV of Ambiq's neuralSPOT: time, cycles, DWT, cache or PMU counters.

Collected during the first inference: temperature "cold". The five DWT counters (`dwt_cpicnt` ...)
are 8 bits wide and wrap every 256 events. Columns that describe a layer's shape are no counters.

References
----------
github.com/AmbiqAI/neuralSPOT, docs/From TF to EVB - testing, profiling, and deploying AI models.md
"""

from __future__ import annotations

import csv

from calibration.errors import MeasurementError
from calibration.importers.log import Log, count, measurement_of, number_of
from calibration.importers.operators import check_operators
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.errors import reworded

EXPECTED = "a CSV with the columns Event, Tag, uSeconds"
_KNOWN = {"useconds": ("latency", None, "us"), "cycles": ("cpu_cycles", "cpu", "cycles"),
          "arm_pmu_cpu_cycles": ("cpu_cycles", "cpu", "cycles"),
          "est macs": ("estimated_macs", None, "MACs"), "est_mac": ("estimated_macs", None, "MACs")}
_DWT = ("cpi", "exc", "sleep", "lsu", "fold")
_SHAPES = ("mac_eq", "output_mag", "output_shape", "filter_shape", "stride_h", "stride_w",
           "dilation_h", "dilation_w")


def _describe(name: str) -> tuple[str, str | None, str]:
    if name in _KNOWN:
        return _KNOWN[name]
    return (f"dwt_{name}cnt" if name in _DWT else name), None, "events"


def _header(line: str) -> list[str]:
    """Columns of a header, [] of any other line."""
    names = [cell.strip().strip('"').lower() for cell in line.split(",")]
    return names if {"event", "tag", "useconds"} <= set(names) else []


def recognise(text: str) -> bool:
    """Whether a text has the header of such a table."""
    return any(_header(line) for line in text.splitlines())


def read_log(log: Log) -> Measurement:
    """Read the CSV; one run, one layer per event, in order from 0."""
    names: list[str] = []
    samples: list[Sample] = []
    tags: list[str] = []
    for number, line in log.lines():
        if header := _header(line):
            if names:
                raise log.refuse(number, "a second table; one run is read")
            names = header
            _check_columns(log, number, names)
        elif not names:
            continue
        else:
            _read_row(log, number, _cells(log, number, line), names, samples, tags)
        log.take(number)
    log.remark_open_end()
    check_operators(log, tags)
    return measurement_of(log, samples, runtime="tflm", temperature="cold", tags=tags,
                          expected=EXPECTED)


def _cells(log: Log, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line], skipinitialspace=True, strict=True))
    except (csv.Error, StopIteration) as error:
        raise log.refuse(number, f"no line of a table ({error})") from error


def _check_columns(log: Log, number: int, names: list[str]) -> None:
    counters = [_describe(name)[0] for name in names if name]
    twice = next((name for name in counters if counters.count(name) > 1), None)
    if twice is not None:
        raise log.refuse(number, f"two columns count {twice!r}")


def _read_row(log: Log, number: int, row: list[str], names: list[str], samples: list[Sample],
              tags: list[str]) -> None:
    if len(row) != len(names):
        raise log.refuse(number, f"{len(row)} columns; the header has {len(names)}")
    layer = count(row[names.index("event")], log, number)
    if layer != len(tags):
        raise log.refuse(number, f"event {layer} where {len(tags)} is due; is the log complete?")
    tags.append(row[names.index("tag")].strip())
    for name, cell in zip(names, row, strict=True):
        if name in ("event", "tag", "", *_SHAPES):
            continue
        counter, clock, unit = _describe(name)
        with reworded(MeasurementError, MeasurementError, "", f" (column {name})"):
            samples.append(Sample(run=0, layer=layer, counter=counter, clock=clock, unit=unit,
                                  value=number_of(cell, log, number)))
