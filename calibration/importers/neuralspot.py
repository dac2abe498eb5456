"""AutoDeploy's per-layer CSV of Ambiq's neuralSPOT: time, cycles, DWT, cache or PMU counters.

Collected during the first inference: temperature "cold". The five DWT counters are 8 bits wide
and wrap every 256 events (`dwt_cpi` ...). Columns that describe a layer's shape are not counters.

References
----------
github.com/AmbiqAI/neuralSPOT, docs/From TF to EVB - testing, profiling, and deploying AI models.md
"""

from __future__ import annotations

import csv
import io

from calibration.errors import MeasurementError
from calibration.importers.log import count, measurement_of, number_of
from calibration.measurement import Measurement
from calibration.sample import Sample

_KNOWN = {"useconds": ("latency", None, "us"), "cycles": ("cpu_cycles", "cpu", "cycles"),
          "arm_pmu_cpu_cycles": ("cpu_cycles", "cpu", "cycles"),
          "est macs": ("estimated_macs", None, "MACs"), "est_mac": ("estimated_macs", None, "MACs")}
_DWT = ("cpi", "exc", "sleep", "lsu", "fold")
_SHAPES = ("mac_eq", "output_mag", "output_shape", "filter_shape", "stride_h", "stride_w",
           "dilation_h", "dilation_w")


def _describe(column: str) -> tuple[str, str | None, str]:
    name = column.strip().lower()
    if name in _KNOWN:
        return _KNOWN[name]
    return (f"dwt_{name}" if name in _DWT else name), None, "events"


def read_log(text: str, where: str) -> Measurement:
    """Read the CSV; one run, one layer per event."""
    rows = list(csv.reader(io.StringIO(text), skipinitialspace=True))
    names = [cell.strip().lower() for cell in rows[0]] if rows else []
    samples: list[Sample] = []
    tags = []
    if "event" in names and "tag" in names and "useconds" in names:
        event, tag = names.index("event"), names.index("tag")
        for line, row in enumerate(rows[1:], start=2):
            if not "".join(row).strip():
                continue
            if len(row) != len(names):
                raise MeasurementError(f"{where}:{line}: {len(row)} columns; the header has "
                                       f"{len(names)}")
            tags.append(row[tag].strip())
            layer = count(row[event], where, line)
            for place, cell in enumerate(row):
                if place in (event, tag) or names[place] in _SHAPES or not names[place]:
                    continue
                counter, clock, unit = _describe(names[place])
                samples.append(Sample(run=0, layer=layer, counter=counter, clock=clock, unit=unit,
                                      value=number_of(cell, where, line)))
    return measurement_of(samples, where, runtime="tflm", temperature="cold", tags=tags,
                          expected="a CSV with the columns Event, Tag, uSeconds")
