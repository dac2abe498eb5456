"""Vela's per-layer CSV: the Ethos-U compiler's own estimate, so the kind is "predicted".

Cycles are of the NPU's clock; "Network%", "Util%" and the like follow from them and are omitted.
Operators that were fused into another one are rows of zero cycles and keep their layer number;
so do operators Vela leaves to the CPU, whose cycles it does not know and states as zero.

References
----------
Ethos-U Vela, `--verbose-performance`, file <model>_per-layer.csv.
"""

from __future__ import annotations

import csv
import math
import re

from calibration.importers.log import Log, measurement_of, number_of
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample

EXPECTED = 'a CSV with the columns "NNG Operator" and "Op Cycles"'
_COLUMNS = {
    "Op Cycles": ("npu_cycles", "npu", "cycles"), "NPU": ("compute_cycles", "npu", "cycles"),
    "SRAM AC": ("sram_cycles", "npu", "cycles"), "DRAM AC": ("dram_cycles", "npu", "cycles"),
    "OnFlash AC": ("on_chip_flash_cycles", "npu", "cycles"),
    "OffFlash AC": ("off_chip_flash_cycles", "npu", "cycles"),
    "MAC Count": ("macs", None, "MACs"),
    "SRAM Usage": ("working_bytes", None, "bytes"),
    "Staging Usage": ("working_bytes", None, "bytes"),
}
_OPERATORS = ("Original Operator", "TFLite_operator", "NNG Operator")
_SHARES = ("Network%", "Network% (cycles)")
_MOST_DECIMALS = 9


def _is_header(line: str) -> bool:
    return "Op Cycles" in line and "NNG Operator" in line


def recognise(text: str) -> bool:
    """Whether a text has the header of such a table."""
    return any(_is_header(line) for line in text.splitlines())


def read_log(log: Log) -> Measurement:
    """Read the CSV; one run; a second sub-graph repeats the header and counts layers on."""
    samples: list[Sample] = []
    tags: list[str] = []
    names: list[str] = []
    shares: list[str] = []
    for number, line in log.lines():
        try:
            row = [cell.strip() for cell in next(csv.reader([line], strict=True))]
        except (csv.Error, StopIteration) as error:
            if not names:
                continue
            raise log.refuse(number, f"no line of a table ({error})") from error
        if _is_header(line):
            _check_shares(log, shares)
            names, shares = row, []
        elif not names:
            continue
        elif len(row) != len(names):
            raise log.refuse(number, f"{len(row)} columns; the header has {len(names)}")
        else:
            cells = dict(zip(names, row, strict=True))
            shares += [cells[name] for name in _SHARES if name in cells]
            samples += _read_layer(log, number, cells, len(tags))
            tags.append(next(cells[name] for name in _OPERATORS if name in cells))
            if cells.get("Target", "NPU") == "CPU":
                log.remarks.append(f"layer {len(tags) - 1} is left to the CPU: no cycles known")
        log.take(number)
    _check_shares(log, shares)
    return measurement_of(log, samples, runtime="vela", kind="predicted", tags=tags,
                          expected=EXPECTED)


def _read_layer(log: Log, number: int, cells: dict[str, str], layer: int) -> list[Sample]:
    return [Sample(run=0, layer=layer, counter=counter, clock=clock, unit=unit,
                   value=number_of(cells[column], log, number))
            for column, (counter, clock, unit) in _COLUMNS.items() if column in cells]


def _check_shares(log: Log, shares: list[str]) -> None:
    """Shares of the network's cycles sum to 100 % but for their rounding, or rows are missing."""
    known = [float(share) for share in shares if re.fullmatch(r"\d+(\.\d+)?", share)]
    decimals = max((len(share.partition(".")[2]) for share in shares), default=0)
    slack = (0.5 * len(known) + 1) * 10.0 ** -min(decimals, _MOST_DECIMALS)
    if math.fsum(known) and abs(math.fsum(known) - 100) > slack:
        log.lack(f"the rows' shares of the network's cycles sum to {math.fsum(known):.2f} %")
