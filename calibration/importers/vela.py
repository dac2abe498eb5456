"""Vela's per-layer CSV: the Ethos-U compiler's own estimate, so the kind is "predicted".

Cycles are of the NPU's clock; "Network%", "Util%" and the like follow from them and are left out.
Operators that were fused into another one are rows of zero cycles and keep their layer number.

References
----------
Ethos-U Vela, `--verbose-performance`, file <model>_per-layer.csv.
"""

from __future__ import annotations

import csv
import io

from calibration.errors import MeasurementError
from calibration.importers.log import measurement_of, number_of
from calibration.measurement import Measurement
from calibration.sample import Sample

_COLUMNS = {
    "Op Cycles": ("npu_cycles", "npu", "cycles"), "NPU": ("compute_cycles", "npu", "cycles"),
    "SRAM AC": ("sram_cycles", "npu", "cycles"), "DRAM AC": ("dram_cycles", "npu", "cycles"),
    "OnFlash AC": ("on_chip_flash_cycles", "npu", "cycles"),
    "OffFlash AC": ("off_chip_flash_cycles", "npu", "cycles"),
    "MAC Count": ("macs", None, "MACs"),
    "SRAM Usage": ("working_bytes", None, "bytes"), "Staging Usage": ("working_bytes", None,
                                                                      "bytes"),
}
_OPERATORS = ("Original Operator", "TFLite_operator")


def read_log(text: str, where: str) -> Measurement:
    """Read the CSV; one run; a second sub-graph repeats the header and counts layers on."""
    samples: list[Sample] = []
    tags: list[str] = []
    names: list[str] = []
    layer = 0
    for line, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if "Op Cycles" in row:
            names = row
            continue
        if not names or not "".join(row).strip():
            continue
        if len(row) != len(names):
            raise MeasurementError(f"{where}:{line}: {len(row)} columns; the header has "
                                   f"{len(names)}")
        cells = dict(zip(names, row, strict=True))
        tags.append(next((cells[name] for name in _OPERATORS if name in cells), ""))
        for column, (counter, clock, unit) in _COLUMNS.items():
            if column in cells:
                samples.append(Sample(run=0, layer=layer, counter=counter, clock=clock, unit=unit,
                                      value=number_of(cells[column], where, line)))
        layer += 1
    return measurement_of(samples, where, runtime="vela", kind="predicted", tags=tags,
                          expected='a CSV with the column "Op Cycles"')
