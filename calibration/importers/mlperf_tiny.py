"""Results and logs of MLPerf Tiny runs: windows of inferences, their median, energy where metered.

A log has the device's own lines (`m-lap-us-N` around each window, prefixed or not); a results file
the runner's ("Runtime", "Throughput", "Energy/Inf.", "Median ..."). A window is a run: its
value is the mean over its inferences, warm.

References
----------
github.com/mlcommons/tiny, api/internally_implemented.cpp and the runner's results.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from calibration.importers.log import UNKNOWN, measurement_of
from calibration.measurement import Measurement
from calibration.sample import Sample

_LAP = re.compile(r"m-lap-us-(\d+)")
_START = re.compile(r"m-infer-start-(\d+)")
_DONE = re.compile(r"m-infer-done")
_MODEL = re.compile(r"m-model-\[([^\]]+)\]")
_NAME = re.compile(r"m-name-dut-\[([^\]]+)\]")
_THROUGHPUT = re.compile(r"Throughput\s*:\s*([\d.]+)\s*inf\./sec", re.IGNORECASE)
_ENERGY = re.compile(r"Energy/Inf\.?\s*:\s*([\d.]+)\s*uJ/inf", re.IGNORECASE)
_MEDIANS = {"median_latency": re.compile(r"Median throughput is\s+([\d.]+)\s*inf\./sec"),
            "median_energy": re.compile(r"Median energy cost is\s+([\d.]+)\s*uJ/inf")}
_MOST_US = 1 << 32


def _windows(lines: list[str]) -> Iterator[tuple[int, float]]:
    """Yield inferences and microseconds of each window of a log."""
    count = 0
    laps: list[int] = []
    for line in lines:
        start, lap = _START.search(line), _LAP.search(line)
        if start:
            count, laps = int(start[1]), []
        elif lap and count:
            laps.append(int(lap[1]))
        elif _DONE.search(line) and count and len(laps) >= 2:
            yield count, float((laps[-1] - laps[0]) % _MOST_US)
            count = 0


def read_log(text: str, where: str) -> Measurement:
    """Read a log or a results file; accuracy runs of one inference each are left out."""
    lines = text.splitlines()
    windows = list(_windows(lines))
    most = max((count for count, _ in windows), default=0)
    samples = [Sample(run=run, counter="latency", unit="us", value=span / count)
               for run, (count, span) in enumerate(one for one in windows if one[0] == most)
               if span > 0]
    if not samples:
        rates = [float(match[1]) for line in lines if (match := _THROUGHPUT.search(line))]
        samples = [Sample(run=run, counter="latency", unit="us", value=1e6 / rate)
                   for run, rate in enumerate(rates) if rate > 0]
    energies = [float(match[1]) for line in lines if (match := _ENERGY.search(line))]
    samples += [Sample(run=run, counter="energy", unit="uj", value=value)
                for run, value in enumerate(energies)]
    for name, pattern in _MEDIANS.items():
        match = pattern.search(text)
        if match and float(match[1]) > 0:
            latency = name == "median_latency"
            samples.append(Sample(run=0, counter=name, unit="us" if latency else "uj",
                                  value=1e6 / float(match[1]) if latency else float(match[1])))
    model, device = _MODEL.search(text), _NAME.search(text)
    return measurement_of(samples, where, temperature="warm",
                          model=model[1] if model else UNKNOWN,
                          board=device[1] if device else UNKNOWN,
                          expected="m-lap-us lines, or lines of Throughput, Energy or medians")
