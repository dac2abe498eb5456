"""Lines of Zephyr's timing functions, as its benchmarks print them: cycles and nanoseconds.

    conv_2d : 1234560 cycles , 10288000 ns

The counter may be another timer than the core's (`timing_counter_get` is the chip's choice), so
cycles are ticks of clock "timer"; a line of the clock's frequency is held against them. A name that
is of the whole (inference, invoke, total, model), or stands alone, is the whole; others are layers
in their order.

References
----------
Zephyr, doc/kernel/timing_functions; tests/benchmarks/latency_measure/README.rst.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from calibration.importers.log import Log, count, measurement_of, number_of
from calibration.importers.operators import check_operators, count_inferences
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample

EXPECTED = "lines such as `conv_2d : 1234560 cycles , 10288000 ns`"

_PREFIX = re.compile(r"\s*(?:\x1b\[[\d;]*m)*(?:\[[\d:.,]+\]\s*)?(?:<\w{3}>\s*\w+:\s*)?(?:REC:\s*)?")
_LINE = re.compile(r"\|?\s*(?P<name>[^\s|:][^|:]{0,119}?)\s*:\s*(?P<ticks>[\d,]+) cycles?\s*[,(]\s*"
                   r"(?P<time>[\d,.]+)\s*(?P<unit>ns|us)\)?\s*+[:|]?\s*+(?:\x1b\[[\d;]*m)?\s*$")
_NEARLY = re.compile(r"\d\s*cycles?\b")
_CLOCK = re.compile(r"Clock frequency: (?P<mhz>\d+) MHz")
_WHOLE = re.compile(r"(?:the )?(?:inference|invoke|total|model|network)\b", re.IGNORECASE)
_NS = {"ns": 1e-3, "us": 1.0}
_SLACK = 0.005
"""How far ticks and time may disagree from line to line, relative, besides rounding."""

_BETWEEN = 0.1
"""Share of a whole that may lie between its layers, in what calls them; assumed."""


def recognise(text: str) -> bool:
    """Whether a text has such a line."""
    return any(_match(line) for line in text.splitlines())


def _match(line: str) -> re.Match[str] | None:
    prefix = _PREFIX.match(line)
    return _LINE.match(line, prefix.end() if prefix else 0)


def read_log(log: Log) -> Measurement:
    """Read every line; names that come again are further runs.

    Raises
    ------
    MeasurementError
        For a line that is cut, or whose ticks and time are of another clock than the others', and
        for a whole its layers do not sum to.
    """
    layers: list[tuple[str, float, float]] = []
    wholes: list[tuple[float, float]] = []
    names = {match["name"] for _, line in log.lines() if (match := _match(line))}
    for number, line in log.lines():
        if clock := _CLOCK.search(line):
            stated = 1e6 * count(clock["mhz"], log, number)
            log.tick_hz = stated, stated
            log.take(number)
        elif match := _match(line):
            ticks, us = (count(match["ticks"], log, number),
                         number_of(match["time"], log, number) * _NS[match["unit"]])
            _check_clock(log, number, ticks, us, _NS[match["unit"]])
            if len(names) == 1 or _WHOLE.match(match["name"]):
                wholes.append((ticks, us))
            else:
                layers.append((match["name"], ticks, us))
            log.take(number)
        elif _NEARLY.search(line):
            raise log.refuse(number, f"{line.strip()[:60]!r} is cut or damaged; expected "
                                     f"{EXPECTED}")
    log.remark_open_end()
    tags = [name for name, _, _ in layers]
    runs = count_inferences(log, tags, [ticks for _, ticks, _ in layers]) if tags else len(wholes)
    each = len(layers) // max(runs, 1)
    for run in range(runs if tags else 0):
        check_operators(log, tags[run * each:(run + 1) * each], f"inference {run}")
    _check_sums(log, [ticks for ticks, _ in wholes],
                [sum(ticks for _, ticks, _ in layers[run * each:(run + 1) * each])
                 for run in range(runs if tags else 0)])
    rows = [(run, None, *pair) for run, pair in enumerate(wholes)] + [
        (place // each, place % each, ticks, us) for place, (_, ticks, us) in enumerate(layers)]
    return measurement_of(log, [sample for run, layer, ticks, us in rows for sample in (
        Sample(run=run, layer=layer, counter="timer_ticks", clock="timer", unit="ticks",
               value=ticks),
        Sample(run=run, layer=layer, counter="latency", unit="us", value=us))],
        tags=tags[:each], expected=EXPECTED)


def _check_sums(log: Log, wholes: Sequence[float], summed: Sequence[float]) -> None:
    """Hold each whole against the sums of layers of the runs: it holds them, and little else."""
    for whole in wholes if summed else ():
        if not min(summed) * (1 - _SLACK) <= whole <= max(summed) / (1 - _BETWEEN):
            log.lack(f"the layers sum to {min(summed):,.0f} cycles, the line of the whole says "
                     f"{whole:,.0f}")


def _check_clock(log: Log, number: int, ticks: float, us: float, step_us: float) -> None:
    """Hold a line's clock against what was stated, or the lines before."""
    slack = _SLACK + step_us / max(us, step_us)
    if not ticks or not us:
        if ticks or us > step_us:
            raise log.refuse(number, f"{ticks:,.0f} cycles in {us:,.6g} us: one of them is none")
        return
    least, most = log.tick_hz
    low, high = ticks / us * 1e6 * (1 - slack), ticks / us * 1e6 * (1 + slack)
    if low > most or high < least:
        raise log.refuse(number, f"{ticks:,.0f} cycles in {us:,.6g} us are of a clock of "
                                 f"{ticks / us:,.6g} MHz, other lines of {least / 1e6:,.6g} to "
                                 f"{most / 1e6:,.6g} MHz")
    log.tick_hz = max(low, least), min(high, most)
