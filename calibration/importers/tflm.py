"""TensorFlow Lite Micro's MicroProfiler: `X took N ticks`, its CSV, and its table per tag.

Ticks are those of the platform's `GetCurrentTimeTicks`: clock "timer"; ports that print
microseconds give latencies. Each repetition of the log is a run, and so is each inference of a
profiler nobody cleared between two; an event's place in it is its layer. The table per tag has no
layers: its lines become counters `timer_ticks_<tag>` of the whole network.

References
----------
tensorflow/lite/micro/micro_profiler.cc: Log, LogCsv, LogTicksPerTagCsv; for microseconds the
profiler of the ESP32 ports.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from calibration.errors import MeasurementError
from calibration.importers.log import Log, count, measurement_of
from calibration.importers.operators import check_operators, count_inferences
from calibration.importers.tflm_operators import check_names
from calibration.importers.tick_pairs import TickPair, bound_ticks, check_pairs
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample

EXPECTED = 'lines like "CONV_2D took 224622 ticks (8 ms)." or a table of Event, Tag, Ticks'

_TEXT = re.compile(r"\s*(?P<tag>\S.*?) took (?P<value>-?\d[\d,]*) "
                   r"(?:(?P<unit>ticks) \((?P<ms>-?\d[\d,]*) ms\)|microseconds)\.?\s*$")
_HEADER = re.compile(r'\s*"?Event"?\s*,\s*"?Tag"?\s*,\s*"?(?P<unit>Ticks|microseconds)"?\s*'
                     r'(?:,\s*"?(?:ms|Percentage)"?\s*)*$', re.IGNORECASE)
_ROW = re.compile(r"\s*(?P<event>\d+)\s*,(?P<tag>[^,]+),\s*(?P<value>-?\d+)\s*"
                  r"(?:,\s*(?P<ms>\d+)\s*$)?(?:,[^,]*)*$")
_WHOLE = re.compile(r"\s*(?:\w+\(\d+\)|Initialize\w+) "
                    r"took -?\d[\d,]* ticks \(-?\d[\d,]* ms\)\.?\s*$")
"""A line of the benchmarks' own: set-up, or so many inferences together; no operator."""

_NEARLY = re.compile(r"\s*(?:[A-Z][A-Z0-9_]* t(?:o(?:o(?:k\b.*)?)?)?|\d+\s*,.*)$")
"""A line of an event that does not end as one: cut short, or overwritten by another task's."""

_WHOLE_NOTE = "lines of the benchmark itself, such as Iterations(1), are omitted: no operators"
_TAG_HEADER = re.compile(r'\s*"?Unique Tag"?\s*,\s*"?Total (?P<unit>ticks|microseconds)',
                         re.IGNORECASE)
_TAG_ROW = re.compile(r'\s*+"?(?P<tag>[^",]+)(?:"\s*)?,\s*(?P<value>-?\d+)\s*$')
_TOTAL = re.compile(r"total number of (ticks|microseconds)")


_STAMP = re.compile(r"\s*(?:\[[\d:.,\s]+\]|[EWIDV] \([\d:.]+\) [^:]*:|\d+:\d\d:\d\d[.,]\d+ ->)\s*")
"""What a logger or a serial monitor writes before a line: its time, which differs between runs."""


def recognise(text: str) -> bool:
    """Whether a text holds a profiler's log."""
    return any(pattern.match(line) for line in text.splitlines()
               for pattern in (_TEXT, _HEADER, _TAG_HEADER))


@dataclass(slots=True, kw_only=True)
class _Run:
    """One repetition: a list of events, or a table per tag."""

    table: str
    micro: bool
    timed: bool = True
    tags: list[str] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    pairs: list[TickPair] = field(default_factory=list)
    total: int | None = None


def read_log(log: Log) -> Measurement:
    """Read a profiler's log.

    Parameters
    ----------
    log
        Runs that do not list the same operators, or not those of the network where it is known, a
        line that breaks off, or a table without its total, are incomplete.

    Returns
    -------
    Measurement
        One run per repetition.

    Raises
    ------
    MeasurementError
        For a damaged or incomplete log, naming the line.
    """
    runs: list[_Run] = []
    open_run: _Run | None = None
    for number, stamped in enumerate(log.text.splitlines(), start=1):
        line = stamped[found.end():] if (found := _STAMP.match(stamped)) else stamped
        head = _HEADER.match(line) or _TAG_HEADER.match(line)
        text = _TEXT.match(line)
        if _WHOLE.match(line):
            log.remarks.append(_WHOLE_NOTE)
            open_run = None
        elif head:
            open_run = _Run(table="tags" if _TAG_HEADER.match(line) else "events",
                            micro=head["unit"].lower() == "microseconds",
                            timed="percentage" not in line.lower())
            runs.append(open_run)
        elif text:
            if open_run is None or open_run.table != "text":
                open_run = _Run(table="text", micro=text["unit"] is None)
                runs.append(open_run)
            _add(log, number, open_run, text)
        elif open_run is not None and open_run.table != "text" and (
                row := _ROW.match(line) if open_run.table == "events" else _TAG_ROW.match(line)):
            _add(log, number, open_run, row)
        else:
            open_run = _go_on(log, number, line, open_run)
            continue
        log.take(number)
    if open_run is not None and open_run.table == "events":
        log.remark_open_end()
    runs = _drop_empty(log, runs)
    pairs = [pair for run in runs for pair in run.pairs]
    log.tick_hz = bound_ticks(pairs)
    runs = _split_inferences(log, runs)
    for run in runs:
        if run.table != "tags":
            check_names(log, run.tags, run.lines)
    _check_runs(log, runs)
    check_pairs(log, pairs)
    tags = next((run.tags for run in runs if run.table != "tags"), [])
    return measurement_of(log, [sample for number, run in enumerate(runs)
                                for sample in _samples(number, run)],
                          runtime="tflm", tags=tags, expected=EXPECTED)


def _go_on(log: Log, number: int, line: str, run: _Run | None) -> _Run | None:
    """Return the run that is still open after a blank or foreign line; refuse one cut short."""
    if run is None:
        return None
    if run.table != "tags" and _NEARLY.match(line):
        log.lack(f"line {number} breaks off: {line.strip()[:60]!r}")
    # it ends a list of events; the tables go on over blank ones
    return None if line.strip() or run.table == "text" else run


def _drop_empty(log: Log, runs: list[_Run]) -> list[_Run]:
    """Leave out tables of which the log has the head alone: their capture ended there."""
    filled = [run for run in runs if run.values or run.total is not None]
    if len(filled) < len(runs):
        log.lack(f"{len(runs) - len(filled)} of {len(runs)} tables have a head and no rows")
    return filled


def _add(log: Log, number: int, run: _Run, match: re.Match[str]) -> None:
    tag = match["tag"].strip()
    value = count(match["value"], log, number)
    if run.table == "tags" and _TOTAL.fullmatch(tag):
        run.total = value
        return
    if run.table == "events" and int(match["event"]) != len(run.values):
        raise log.refuse(number, f"event {match['event']} where {len(run.values)} is due; is the "
                                 "log complete?")
    run.tags.append(tag)
    run.values.append(value)
    run.lines.append(number)
    if run.timed and not run.micro and match.groupdict().get("ms") is not None:
        run.pairs.append(TickPair(line=number, ticks=value, ms=count(match["ms"], log, number)))


def _split_inferences(log: Log, runs: list[_Run]) -> list[_Run]:
    """Make a run of each inference; a profiler nobody clears lists those before once more."""
    found: list[_Run] = []
    before: _Run | None = None
    for run in runs:
        if run.table == "tags":
            found.append(run)
            continue
        fresh = run
        if before is not None and len(run.values) > len(before.values) and (
                run.values[:len(before.values)] == before.values):
            fresh = _part(run, len(before.values), len(run.values))
            log.remarks.append("lists repeat the inferences before them: each inference is taken "
                               "once")
        before = run
        for part in _cut_last(log, fresh):
            number = count_inferences(log, part.tags, part.values)
            size = len(part.tags) // number
            found += [_part(part, size * turn, size * (turn + 1)) for turn in range(number)]
    return found


def _cut_last(log: Log, run: _Run) -> list[_Run]:
    """Part the inference a log breaks off in from those before it, where the network is known."""
    due, size = len(log.listing.operators) if log.listing else 0, len(run.tags)
    end = size // due * due if due else 0
    if log.listing and 0 < end < size and all(
            log.listing.accepts(place, tag) for place, tag in enumerate(run.tags[end:])):
        return [_part(run, 0, end), _part(run, end, size)]
    return [run]


def _part(run: _Run, first: int, end: int) -> _Run:
    return _Run(table=run.table, micro=run.micro, tags=run.tags[first:end],
                values=run.values[first:end], lines=run.lines[first:end])


def _check_runs(log: Log, runs: list[_Run]) -> None:
    """Refuse runs that cannot be of one network, and tables that do not add up."""
    listed = [run for run in runs if run.table != "tags"]
    whole = max((run.tags for run in listed), key=len, default=[])
    for number, run in enumerate(listed):
        if number == 0 or log.partial:
            check_operators(log, run.tags, f"run {number}" if len(listed) > 1 else "it")
        if run.tags == listed[0].tags:
            continue
        other = len(run.tags) == len(listed[0].tags) or run.tags != whole[:len(run.tags)]
        text = (f"run {number} lists {len(run.tags)} operators"
                + (" that are not those of run 0" if other else f", run 0 {len(listed[0].tags)}"))
        if other and log.partial:
            raise MeasurementError(f"{log.where}: {text}; accepted: runs of one network, each "
                                   "from its first operator on")
        log.lack(text)
    for run in (run for run in runs if run.table == "tags"):
        if run.total is None:
            log.lack("a table per tag has no total")
        elif run.total != math.fsum(run.values):
            log.lack(f"a table per tag has a total of {run.total:,}, its tags sum to "
                     f"{sum(run.values):,}")


def _samples(number: int, run: _Run) -> list[Sample]:
    counter, clock, unit = ("latency", None, "us") if run.micro else (
        "timer_ticks", "timer", "ticks")
    if run.table == "tags":
        named = [(f"{counter}_{tag}", float(value))
                 for tag, value in zip(run.tags, run.values, strict=True)]
        if run.total is not None:
            named.append((counter, float(run.total)))
        return [Sample(run=number, counter=name, clock=clock, unit=unit, value=value)
                for name, value in named]
    return [Sample(run=number, layer=layer, counter=counter, clock=clock, unit=unit, value=value)
            for layer, value in enumerate(run.values)]
