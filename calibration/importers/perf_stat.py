"""Output of Linux `perf stat`: as text, with `-x,`, or as JSON lines with `-j`.

Events perf could not count are named in the environment; with multiplexing (less than 100 % of
the time counted) the scaled value is kept and said to be scaled. `-r N` gives means: one run.
Counts over intervals (`-I`) or per core are refused: their sums are not one run's.

References
----------
tools/perf/Documentation/perf-stat.txt of the Linux kernel: CSV FORMAT, JSON FORMAT.
"""

from __future__ import annotations

import re

from calibration.importers.log import Log, measurement_of, number_of
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.files import DocumentError, parse_json
from hwmodels.frozen import frozen

EXPECTED = "lines of perf stat, such as `1,234,567  cycles`"

_VALUE = r"[\d.,]+|<not supported>|<not counted>"
_TEXT = re.compile(rf"^\s*(?P<value>{_VALUE})\s+"
                   r"(?:(?P<unit>msec|ns|Joules|MiB)\s+)?(?P<event>[A-Za-z][\w./:,=-]*)"
                   r"\s*(?:#|(?:\(\s*\+-[^()]*\)\s*)?(?:\([\d.]+%\)\s*)?$)")
_SHARE = re.compile(r"\(([\d.]+)%\)$")
_ELAPSED = re.compile(r"^\s*(?P<value>[\d.,]+)\s+(?:\+-\s*[\d.,]+\s+)?seconds "
                      r"(?P<what>time elapsed|user|sys)\b.*$")
_KNOWN = re.compile(r"\s*(Performance counter stats for .*|# started on .*|#.*)$")
_TITLE = re.compile(r"^[ \t]*Performance counter stats for ", re.MULTILINE)
_UNITS = {"msec": ("us", 1e3), "ns": ("us", 1e-3), "Joules": ("uj", 1e6), "": ("events", 1.0),
          "MiB": ("bytes", float(1 << 20)), "s": ("us", 1e6)}
_NAMES = {"cycles": "cpu_cycles", "cpu-cycles": "cpu_cycles", "seconds time elapsed": "latency"}
_USER = ":u"
_SEPARATORS = (",", ";", "\t")
_INTERVAL = re.compile(rf"\s*\d+\.\d{{9}}[,;\t ]++(?:{_VALUE})[,;\t ]")
_PER_CORE = re.compile(r"\s*(?:S\d+(?:-[DC]\d+)*|CPU\d+|N\d+)[,;\t ]+\d+[,;\t ]")


@frozen
class _Row:
    event: str
    value: str
    unit: str = ""
    share: float | None = None


def recognise(text: str) -> bool:
    """Whether a text holds counts of perf stat."""
    if _TITLE.search(text):
        return True
    return any('"counter-value"' in line or _read_cells(line) is not None or _INTERVAL.match(line)
               for line in text.splitlines())


def read_log(log: Log) -> Measurement:
    """Read the output; whole program, one run.

    Parameters
    ----------
    log
        Of one call of perf.

    Returns
    -------
    Measurement
        Events counted in user space only (`instructions:u`) are named in the environment.

    Raises
    ------
    MeasurementError
        For intervals, counts per core, an event twice, or a number that is none.
    """
    samples: dict[str, Sample] = {}
    missing: list[str] = []
    scaled: list[str] = []
    user: list[str] = []
    timed = False
    for number, line in log.lines():
        if _KNOWN.match(line):
            log.take(number)
            continue
        row = _read_row(log, number, line)
        if row is None:
            continue
        log.take(number)
        timed |= row.event == "seconds time elapsed"
        if row.value.startswith("<"):
            missing.append(row.event)
            continue
        sample = _sample(log, number, row)
        if sample.counter in samples:
            raise log.refuse(number, f"{row.event!r} is there twice; one run is read")
        samples[sample.counter] = sample
        if row.event.endswith(_USER):
            user.append(row.event.removesuffix(_USER))
        if row.share is not None and row.share < 100:
            scaled.append(row.event)
    if _TITLE.search(log.text) and not timed:
        log.lack("the line of seconds elapsed is missing")
    facts = [(name, ",".join(events)) for name, events in (("not_counted", missing),
                                                          ("scaled", scaled),
                                                          ("user_space", user)) if events]
    log.remarks += [f"{name.replace('_', ' ')}: {events}" for name, events in facts]
    return measurement_of(log, list(samples.values()), environment=facts, expected=EXPECTED)


def _sample(log: Log, number: int, row: _Row) -> Sample:
    unit, factor = _UNITS[row.unit]
    value = number_of(row.value, log, number)
    if not row.unit and value != int(value):
        raise log.refuse(number, f"{row.value!r} is not a count of {row.event}; a comma or point "
                         "may be another language's: run perf with LC_ALL=C")
    event = row.event.removesuffix(_USER)
    name = _NAMES.get(event, event).replace("-", "_").replace(" ", "_")
    clock = "cpu" if name == "cpu_cycles" else None
    return Sample(run=0, counter=name, clock=clock, unit="cycles" if clock else unit,
                  value=value * factor)


def _read_row(log: Log, number: int, line: str) -> _Row | None:
    if line.lstrip().startswith("{"):
        return _read_json(log, number, line)
    for found, what in ((_INTERVAL.match(line), "counts over intervals"),
                        (_PER_CORE.match(line), "counts per core")):
        if found:
            raise log.refuse(number, f"{what} are not one run's; run perf stat without -I, -A or "
                                     "--per-...")
    elapsed = _ELAPSED.match(line)
    if elapsed:
        return _Row(event="seconds " + elapsed["what"], value=elapsed["value"], unit="s")
    cells = _read_cells(line)
    if cells is not None:
        return cells
    match = _TEXT.match(line)
    if match is None:
        return None
    share = _SHARE.search(line.rstrip())
    return _Row(event=match["event"], value=match["value"], unit=match["unit"] or "",
                share=float(share[1]) if share else None)


def _read_json(log: Log, number: int, line: str) -> _Row:
    try:
        document = parse_json(line)
        if "interval" in document or any(key in document for key
                                         in ("core", "die", "socket", "node", "cpu", "thread")):
            raise log.refuse(number, "counts over intervals or per core are not one run's; run "
                                     "perf stat without -I, -A or --per-...")
        value, unit, event = str(document["counter-value"]), document.get("unit",
                                                                          ""), document["event"]
        share = document.get("pcnt-running")
        if unit not in _UNITS or not isinstance(event, str) or not event \
                or not isinstance(share, int | float | None):
            raise ValueError(f"unit {unit!r}")
    except (ValueError, KeyError, TypeError, AttributeError, DocumentError) as error:
        raise log.refuse(number, f"no line of perf stat -j ({error})") from error
    return _Row(event=event, value=value, unit=unit, share=share)


def _read_cells(line: str) -> _Row | None:
    """Read a line of `-x`: value, unit, event, [variance,] run time, share of the time, ..."""
    for separator in _SEPARATORS:
        cells = [cell.strip() for cell in line.split(separator)]
        if len(cells) >= 5 and re.fullmatch(r"[\d.]+|<not \w+>", cells[0]) and cells[1] in _UNITS \
                and re.match(r"[A-Za-z]", cells[2]):
            shares = cells[5:6] if cells[3].endswith("%") else cells[4:5]
            return _Row(event=cells[2], value=cells[0], unit=cells[1],
                        share=float(shares[0]) if shares and re.fullmatch(
                            r"\d+(\.\d+)?", shares[0]) else None)
    return None
