"""Report of Silicon Labs' MLTK profiler (`mltk profile`): its text table, or its JSON.

On a device cycles and times are measured; the simulator alone states energy, and all of it is an
estimate (kind "predicted"), of a Cortex-M33 at 78 MHz. Where an accelerator computes, CPU cycles
are those the core is busy. Text rounds figures to a tenth of their unit (1.2M): times are read,
cycles are omitted; JSON has them whole.

References
----------
github.com/SiliconLabs/mltk, mltk/core/profiling_results.py, docs/guides/model_profiler.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from calibration.importers.log import UNKNOWN, Log, count, measurement_of, number_of
from calibration.importers.operators import check_operators
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.files import DocumentError, parse_json

EXPECTED = "a Profiling Summary with its Model Layers, or the JSON of one"

_KEYS = {"Name": "name", "Accelerator": "accelerator", "Layer Count": "n_layers",
         "Clock Rate (hz)": "cpu_clock_rate", "Index": "index", "OpCode": "opcode",
         "CPU Cycles": "cpu_cycles", "Acc Cycles": "accelerator_cycles", "Time (s)": "time",
         "Energy (J)": "energy"}
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
          "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_ROUNDED = re.compile(r"(\d+\.\d) ?([kMGTmunp]?)")
_SLACK = 0.06
"""By how much a figure with one decimal may be rounded, and the sum of such."""

Cells = Mapping[str, str]


def recognise(text: str) -> bool:
    """Whether a text holds such a report."""
    return "Profiling Summary" in text or ('"summary_labels"' in text and '"layers"' in text)


def read_log(log: Log) -> Measurement:
    """Read the report of one inference; a layer a row.

    Raises
    ------
    MeasurementError
        For a row that is damaged, layers that are missing or out of order, and times that do not
        sum to the whole's.
    """
    summary, rows = _read_json(log) if log.text.lstrip().startswith("{") else _read_text(log)
    tags = [cells.get("opcode", "") for _, cells in rows]
    for place, (number, cells) in enumerate(rows):
        if count(cells.get("index", ""), log, number) != place:
            raise log.refuse(number, f"layer {cells['index']} where {place} is due")
    if "n_layers" in summary and count(summary["n_layers"], log, 1) != len(rows):
        log.lack(f"{len(rows)} of {summary['n_layers']} layers are listed")
    check_operators(log, tags)
    offloads = summary.get("accelerator", "None") not in ("None", "")
    rounded = any(_ROUNDED.fullmatch(cells.get("cpu_cycles", "")) for _, cells in rows)
    samples = [sample for place, (number, cells) in enumerate(rows)
               for sample in _read_layer(log, number, place, cells, offloads=offloads,
                                         rounded=rounded)]
    _check_sum(log, summary, samples)
    estimated = any(cells.get("energy", "0") != "0" for _, cells in rows) or not any(
        sample.counter == "latency" for sample in samples)
    log.remarks += [text for text, stated in (
        ("figures are rounded to a tenth of their unit, cycles are omitted: the JSON report has "
         "them whole", rounded), ("the simulator's estimates", estimated)) if stated]
    name = summary.get("name", "None")
    clock = _read_figure(log, 1, summary["cpu_clock_rate"]) if "cpu_clock_rate" in summary else 0
    return measurement_of(
        log, samples, runtime="mvp" if offloads else "tflm", tags=tags,
        kind="predicted" if estimated else "measured",
        model=UNKNOWN if name == "None" else name, clocks_hz=[("cpu", clock)] if clock else [],
        environment=[("accelerator", summary["accelerator"])] if offloads else [],
        expected=EXPECTED)


def _read_json(log: Log) -> tuple[Cells, Sequence[tuple[int, Cells]]]:
    try:
        document = parse_json(log.text)
        summary, layers = ({key: str(value) for key, value in document["summary"].items()},
                           [{key: str(value) for key, value in row.items()}
                            for row in document["layers"]])
    except (DocumentError, KeyError, TypeError, AttributeError) as error:
        raise log.refuse(1, f"no JSON of this report ({error}); expected {EXPECTED}") from error
    for number, _ in log.lines():
        log.take(number)
    return summary, [(1, row) for row in layers]


def _read_text(log: Log) -> tuple[Cells, Sequence[tuple[int, Cells]]]:
    summary: dict[str, str] = {}
    rows: list[tuple[int, Cells]] = []
    names: list[str] = []
    for number, line in log.lines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        label, colon, value = line.partition(":")
        if names and line.lstrip().startswith("|"):
            if len(cells) != len(names) or not line.rstrip().endswith("|"):
                raise log.refuse(number, f"{min(len(cells), line.count('|') - 1)} columns; the "
                                         f"header has {len(names)}")
            rows.append((number, dict(zip(names, cells, strict=True))))
        elif {"Index", "OpCode"} <= set(cells):
            names = [_KEYS.get(cell, cell) for cell in cells]
        elif not names and colon:
            summary[_KEYS.get(label.strip(), label.strip())] = value.strip()
        elif line.strip() not in ("Profiling Summary", "Model Layers"):
            continue
        log.take(number)
    return summary, rows


def _read_layer(log: Log, number: int, layer: int, cells: Cells, *, offloads: bool,
                rounded: bool) -> list[Sample]:
    found = []
    if "time" in cells:
        found.append(Sample(run=0, layer=layer, counter="latency", unit="us",
                            value=1e6 * _read_figure(log, number, cells["time"])))
    for key, counter, clock in (("cpu_cycles", "busy_cycles" if offloads else "cpu_cycles", "cpu"),
                                ("accelerator_cycles", "npu_cycles", "npu")):
        if key in cells and not rounded:
            found.append(Sample(run=0, layer=layer, counter=counter, clock=clock, unit="cycles",
                                value=_read_figure(log, number, cells[key])))
    return found


def _read_figure(log: Log, number: int, text: str) -> float:
    """Read a number, or one that was rounded with its unit's letter."""
    match = _ROUNDED.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match else number_of(text, log, number)


def _check_sum(log: Log, summary: Cells, samples: Sequence[Sample]) -> None:
    """Hold the times of layers against the whole's."""
    if "time" not in summary or not (times := [one.value for one in samples
                                               if one.counter == "latency"]):
        return
    whole = 1e6 * _read_figure(log, 1, summary["time"])
    if abs(math.fsum(times) - whole) > _SLACK * whole:
        log.lack(f"layers take {math.fsum(times):,.0f} us, the whole {whole:,.0f}")
