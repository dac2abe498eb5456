"""Results and logs of MLPerf Tiny runs: windows of inferences, their median, energy where metered.

A log has the device's own lines (`m-lap-us-N` around each window, prefixed or not); a results file
the runner's ("Throughput", "Energy/Inf.", "Median ..."). A window is a run: its value is the mean
over its inferences, warm. Runs of one inference are those of the accuracy mode and are omitted
where there are longer ones.

References
----------
github.com/mlcommons/tiny, api/internally_implemented.cpp and the runner's results.txt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median

from calibration.importers.log import UNKNOWN, Log, measurement_of, number_of
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample

EXPECTED = "m-lap-us lines after m-infer-start-N, or lines of Throughput, Energy or medians"

_LAP = re.compile(r"m-lap-us-(\d{1,20})\b")
_START = re.compile(r"m-infer-start-(\d{1,12})\b")
_DONE = re.compile(r"m-infer-done")
_MODEL = re.compile(r"m-model-\[([^\[\]]+)\]")
_NAME = re.compile(r"m-name-dut-\[([^\[\]]+)\]")
_VALUE = r"(?P<value>-?[\d.,]+(?:e[+-]?\d+)?|nan|inf)"
_RATES = {"latency": re.compile(rf"Throughput\s*:\s*{_VALUE}\s*inf\./sec", re.IGNORECASE),
          "energy": re.compile(rf"Energy/Inf\.?\s*:\s*{_VALUE}\s*uJ/inf", re.IGNORECASE),
          "median_latency": re.compile(rf"Median throughput is\s+{_VALUE}\s*inf\./sec"),
          "median_energy": re.compile(rf"Median energy cost is\s+{_VALUE}\s*uJ/inf")}
_KNOWN = re.compile(r"\bm-[a-z]|ulp-ml:|\bdut\b|\bemon\b|\bio\b|%$"
                    r"|^(db |infer |name|profile|help)")
_MOST_US = 1 << 32
_MEDIAN_SLACK = 2e-3
"""A median is printed with the digits of its windows; even counts of them are averaged."""


@dataclass(slots=True, kw_only=True)
class _Window:
    """Inferences between two laps; `line` is where it starts."""

    line: int
    count: int
    laps: list[int]
    done: bool = False


def recognise(text: str) -> bool:
    """Whether a text is a log of a device under test, or results of its runner."""
    return bool(_LAP.search(text) or _START.search(text)
                or any(pattern.search(text) for pattern in _RATES.values()))


def read_log(log: Log) -> Measurement:
    """Read a log or a results file.

    Parameters
    ----------
    log
        A window that is not done is incomplete.

    Returns
    -------
    Measurement
        Latency, and energy where there was a meter, per window; medians as the runner states them.

    Raises
    ------
    MeasurementError
        For a rate of zero, a median that is not its windows', or a log cut in a window.
    """
    windows: list[_Window] = []
    rates: dict[str, list[float]] = {}
    for number, line in log.lines():
        _read_device(windows, number, line)
        for name, pattern in _RATES.items():
            match = pattern.search(line)
            if match:
                value = number_of(match["value"], log, number)
                if value == 0 or (name.startswith("median") and name in rates):
                    raise log.refuse(number, "a rate of zero" if value == 0 else
                                     f"{name.replace('_', ' ')} is there twice; is this two logs?")
                rates.setdefault(name, []).append(value)
                log.take(number)
        if _KNOWN.search(line.strip()):
            log.take(number)
    samples = _device_samples(log, windows) or [
        Sample(run=run, counter="latency", unit="us", value=1e6 / rate)
        for run, rate in enumerate(rates.get("latency", []))]
    samples += [Sample(run=run, counter="energy", unit="uj", value=value)
                for run, value in enumerate(rates.get("energy", []))]
    for name, unit in (("median_latency", "us"), ("median_energy", "uj")):
        if name in rates:
            stated = 1e6 / rates[name][0] if unit == "us" else rates[name][0]
            counter = name.removeprefix("median_")
            if not _check_median(log, counter, stated, samples):
                log.remarks.append(f"no {counter} of single windows: the median counts as one run")
                samples.append(Sample(run=0, counter=counter, unit=unit, value=stated))
            samples.append(Sample(run=0, counter=name, unit=unit, value=stated))
    _remark_lacks(log, rates, bool(windows), samples)
    model, device = _MODEL.search(log.text), _NAME.search(log.text)
    return measurement_of(log, samples, temperature="warm", model=model[1] if model else UNKNOWN,
                          board=device[1] if device else UNKNOWN, expected=EXPECTED)


def _remark_lacks(log: Log, rates: dict[str, list[float]], device: bool,
                  samples: list[Sample]) -> None:
    """Say what is not stated: times, and what would tell whether all windows are there."""
    for name in ("latency", "energy"):
        if name in rates and f"median_{name}" not in rates:
            log.remarks.append(f"no median {name} stated: whether all windows are there is not "
                               "checked")
    if "energy" in rates and not any(sample.counter == "latency" for sample in samples):
        log.remarks.append("no throughput: energy, and no time of an inference")
    if device and "median_latency" not in rates:
        log.remarks.append("a device's log does not say how many windows there should be")


def _read_device(windows: list[_Window], number: int, line: str) -> None:
    start, lap = _START.search(line), _LAP.search(line)
    if start:
        windows.append(_Window(line=number, count=int(start[1]), laps=[]))
    elif lap and windows and not windows[-1].done:
        windows[-1].laps.append(int(lap[1]))
    elif _DONE.search(line) and windows:
        windows[-1].done = True


def _device_samples(log: Log, windows: list[_Window]) -> list[Sample]:
    """Return the mean of each window of the longest kind."""
    most = max((window.count for window in windows), default=0)
    samples: list[Sample] = []
    for window in (one for one in windows if one.count == most):
        if not window.done or len(window.laps) != 2:
            log.lack(f"line {window.line}: the window of {window.count} inferences has "
                     f"{len(window.laps)} of 2 time stamps"
                     + ("" if window.done else " and no end"))
            continue
        if not max(window.laps) < _MOST_US:
            raise log.refuse(window.line, f"a time stamp of {max(window.laps):,} us does not fit "
                                          "the counter of 32 bits")
        span_us = (window.laps[1] - window.laps[0]) % _MOST_US
        if not span_us or not window.count:
            raise log.refuse(window.line, f"{window.count} inferences in {span_us} us")
        samples.append(Sample(run=len(samples), counter="latency", unit="us",
                              value=span_us / window.count))
    return samples


def _check_median(log: Log, counter: str, stated: float, samples: list[Sample]) -> bool:
    """Return whether there are windows; a median that is not theirs makes the log incomplete."""
    values = [sample.value for sample in samples if sample.counter == counter]
    expected = median(values) if values else stated
    if abs(stated - expected) > _MEDIAN_SLACK * expected:
        log.lack(f"the median {counter} is {stated:g}, that of its {len(values)} windows "
                 f"{expected:g}")
    return bool(values)
