"""What a profiler's report says twice must agree: cycles and times, epochs and totals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from calibration.errors import MeasurementError
from calibration.importers.log import Log
from calibration.importers.neural_art_lines import PHASES
from calibration.measurement.measurement import Measurement

_TIMES = re.compile(r"(?P<cycles>\[[\d, ]+\]|\d+) -> (?P<ms>[\d.,]+) ms"
                    r"(?: \(\w+_freq=(?P<mhz>\d+)MHz\)(?:, (?P<sum>[\d.]+)ms)?)?")
_DURATION = re.compile(r"([\d.]+)ms \([\d.]+%\) total=[\d.]+ms")
KINDS = ("HW", "SW", "HYBRID")
LAST_MS = 0.00051
"""Half of the last place of a time."""

CONTROL_SHARE = 0.05
"""How far the NPU's own count of an inference may be from the host's: it is started apart."""


def explain_times(value: str) -> str:
    """Say why "cycles -> ms (clock)" is not true of its own numbers, "" where it is.

    Parameters
    ----------
    value
        Of a line: "[18859, 10599, 5253] -> 0.024,0.013,0.007 ms (mcu_freq=800MHz), 0.043ms".

    Notes
    -----
    Times are printed to a microsecond, clocks to a megahertz: that much they may be apart.
    """
    if "->" not in value:
        return ""
    found = _TIMES.match(value)
    if found is None:
        return "its times are not understood"
    try:
        cycles = [float(text) for text in re.findall(r"\d+", found["cycles"])]
        times_ms = [float(text) for text in found["ms"].split(",")]
        summed = [math.fsum(cycles)] if found["sum"] else []
        summed_ms = [float(found["sum"])] if found["sum"] else []
    except (ValueError, OverflowError):
        return "its times are no numbers"
    if len(cycles) != len(times_ms):
        return f"{len(cycles)} counts of cycles and {len(times_ms)} times"
    if found["mhz"] is None:
        return ""
    clock_hz = float(found["mhz"]) * 1e6
    for count, time_ms in zip(cycles + summed, times_ms + summed_ms, strict=True):
        if not agree(time_ms, count, clock_hz):
            return (f"{count:,.0f} cycles are "
                    + (f"{count / clock_hz * 1e3:.3f}" if clock_hz else "no number of")
                    + f" ms at {found['mhz']} MHz, not {time_ms:g} ms")
    return ""


def read_duration_ms(value: str) -> float:
    """Return the time of an epoch's "duration" line; ValueError when it is none."""
    found = _DURATION.match(value)
    if found is None:
        raise ValueError(value)
    return float(found[1])


def agree(time_ms: float, cycles: float, clock_hz: float) -> bool:
    """Whether a printed time is that of cycles at a printed clock."""
    if not clock_hz:
        return False
    slack = LAST_MS + 0.5e6 / clock_hz * time_ms
    return abs(time_ms - cycles / clock_hz * 1e3) <= slack


def check_durations(found: Measurement, log: Log,
                    stated_ms: Mapping[int, tuple[int, float]]) -> None:
    """Refuse times that are not those of the cycles beside them.

    Parameters
    ----------
    found
        A report, whole or not.
    stated_ms : mapping of int to (int, float)
        Line number and "duration" by epoch; with or without its extra epochs.

    Raises
    ------
    MeasurementError
        Naming line or total.
    """
    clocks = found.header.clocks

    def count(counter: str, layer: int | None = None) -> float | None:
        return float(found.values(counter, layer)[0]) if found.count(counter, layer) else None

    def phases(layer: int, extra: str) -> float:
        return math.fsum(count(f"{extra}{phase}_cycles", layer) or 0.0 for phase in PHASES)

    for layer, (number, time_ms) in stated_ms.items():
        own, extra = phases(layer, ""), phases(layer, "extra_")
        if "cpu" in clocks and own and not any(
                agree(time_ms, cycles, clocks["cpu"]) for cycles in (own, own + extra)):
            raise log.refuse(number, f"'duration' is {time_ms:g} ms, the epoch's {own + extra:,.0f}"
                                     f" MCU cycles are {(own + extra) / clocks['cpu'] * 1e3:.3f}")
    for time, clock, counter, share in (
            ("duration", "cpu", "cpu_cycles", 0.0), ("duration", "npu", "npu_cycles",
                                                     CONTROL_SHARE),
            ("npu_core_duration", "npu", "core_npu_cycles", 0.0)):
        cycles, time_us = count(counter), count(time)
        if cycles is None or time_us is None or clock not in clocks:
            continue
        expected_us = cycles / clocks[clock] * 1e6
        if not agree(time_us / 1e3, cycles, clocks[clock]) and abs(
                time_us - expected_us) > share * expected_us:
            raise MeasurementError(
                f"{log.where}: 'total duration' says {time_us / 1e3:.3f} ms where {cycles:,.0f} "
                f"cycles of the {clock} clock are {expected_us / 1e3:.3f}; the log is damaged")


_MCU = tuple(f"{extra}{phase}_cycles" for extra in ("", "extra_") for phase in PHASES)
_SUMS = (("ops", ("ops",)), ("compute_cycles", ("compute_cycles",)),
         ("max_cycles", ("max_cycles",)), ("cpu_cycles", _MCU),
         ("core_cycles", ("core_cycles", "extra_core_cycles")))
"""Totals of the whole model, and the counters of epochs they are sums of."""


def check_totals(found: Measurement, log: Log) -> None:
    """Refuse totals that are not the sums of their epochs.

    Raises
    ------
    MeasurementError
        Naming the total.

    Notes
    -----
    Software epochs print what they access, as the compiler stated, and no pools of their own.
    NPU core cycles of epochs without NPU counters are not printed, so that total may be larger
    than the sum by no more than the time those epochs took.
    """
    def total(counter: str, layers: tuple[int, ...] = found.layers) -> float:
        return math.fsum(float(found.values(counter, layer).sum()) for layer in layers
                         if found.count(counter, layer))

    pools = [name for name in found.counters if name.startswith("pool_")]
    for name, parts in (*_SUMS, *((name, (f"compiler_{name}",)) for name in pools)):
        if not found.count(name):
            continue
        stated, summed = float(found.values(name)[0]), math.fsum(total(part) for part in parts)
        if stated != summed:
            raise MeasurementError(f"{log.where}: total of {name} is {stated:,.0f}, its epochs sum "
                                   f"to {summed:,.0f}; the log is damaged or not whole")
    clocks = found.header.clocks
    if found.count("core_npu_cycles") and {"cpu", "npu"} <= clocks.keys():
        unseen = [layer for layer in found.layers if not found.count("core_npu_cycles", layer)]
        slack = math.fsum(total(part, tuple(unseen)) for part in _MCU) \
            * clocks["npu"] / clocks["cpu"] + len(found.layers)
        gap = float(found.values("core_npu_cycles")[0]) - total("core_npu_cycles")
        if not -len(found.layers) <= gap <= slack:
            raise MeasurementError(f"{log.where}: total of core_npu_cycles is {gap:+,.0f} beside "
                                   "the sum of its epochs; the log is damaged or not whole")
