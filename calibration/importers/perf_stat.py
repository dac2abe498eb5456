"""Output of Linux `perf stat`: as text, with `-x,`, or as JSON lines with `-j`.

Events perf could not count are named in the environment; with multiplexing (less than 100 % of
the time counted) the scaled value is kept and said to be scaled. `-r N` gives means: one run.

References
----------
tools/perf/Documentation/perf-stat.txt of the Linux kernel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from calibration.errors import MeasurementError
from calibration.importers.log import measurement_of, number_of
from calibration.measurement import Measurement
from calibration.sample import Sample

_TEXT = re.compile(r"^\s*(?P<value>[\d.,]+|<not supported>|<not counted>)\s+"
                   r"(?:(?P<unit>msec|ns|Joules|MiB)\s+)?(?P<event>[A-Za-z][\w./:,=-]*?)"
                   r"\s*(?:#.*?)?(?:\(\s*\+-.*?\))?(?:\s*\((?P<share>[\d.]+)%\))?\s*$")
_ELAPSED = re.compile(r"^\s*(?P<value>[\d.,]+)\s+(?:\+-\s*[\d.,]+\s+)?seconds "
                      r"(?P<what>time elapsed|user|sys)")
_UNITS = {"msec": ("us", 1e3), "ns": ("us", 1e-3), "Joules": ("uj", 1e6), "": ("events", 1.0)}
_NAMES = {"cycles": "cpu_cycles", "cpu-cycles": "cpu_cycles"}
_SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    event: str
    value: str
    unit: str
    share: float | None
    line: int


def _read_rows(text: str, where: str) -> Iterator[_Row]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("{"):
            try:
                told = json.loads(line)
                yield _Row(event=told["event"], value=str(told["counter-value"]), line=number,
                           unit=told.get("unit", ""), share=told.get("pcnt-running"))
            except (ValueError, KeyError) as error:
                raise MeasurementError(f"{where}:{number}: no line of perf stat -j ({error})") \
                    from error
            continue
        elapsed = _ELAPSED.match(line)
        if elapsed:
            yield _Row(event="seconds " + elapsed["what"], value=elapsed["value"], unit="s",
                       share=None, line=number)
            continue
        yield from _read_line(line, number)


def _read_line(line: str, number: int) -> Iterator[_Row]:
    for separator in _SEPARATORS:
        cells = line.split(separator)
        if len(cells) >= 5 and re.fullmatch(r"[\d.]+|<not \w+>", cells[0].strip()) \
                and cells[1].strip() in _UNITS:
            share = cells[4].strip() if separator.join(cells[3:4]).strip() else ""
            yield _Row(event=cells[2].strip(), value=cells[0].strip(), unit=cells[1].strip(),
                       share=float(share) if re.fullmatch(r"[\d.]+", share) else None,
                       line=number)
            return
    match = _TEXT.match(line)
    if match:
        share = match["share"]
        yield _Row(event=match["event"], value=match["value"], unit=match["unit"] or "",
                   share=float(share) if share else None, line=number)


def read_log(text: str, where: str) -> Measurement:
    """Read the output; whole program, one run."""
    samples: dict[str, Sample] = {}
    missing, scaled = [], []
    for row in _read_rows(text, where):
        name = _NAMES.get(row.event, row.event.removesuffix(":u").replace("-", "_"))
        if row.value.startswith("<"):
            missing.append(row.event)
            continue
        unit, factor = ("us", 1e6) if row.unit == "s" else _UNITS.get(row.unit, ("events", 1.0))
        if row.event == "seconds time elapsed":
            name = "latency"
        clock = "cpu" if name == "cpu_cycles" else None
        samples[name] = Sample(run=0, counter=name.replace(" ", "_"), clock=clock,
                               unit="cycles" if clock else unit,
                               value=number_of(row.value, where, row.line) * factor)
        if row.share is not None and row.share < 100:
            scaled.append(row.event)
    told = [(name, ",".join(events)) for name, events in (("not_counted", missing),
                                                          ("scaled", scaled)) if events]
    return measurement_of(list(samples.values()), where, environment=told,
                          expected="lines of perf stat, such as `1,234,567  cycles`")
