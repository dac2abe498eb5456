"""The text report of ST's npu_profiler.py, read into a measurement: one "layer" per epoch.

A layer index is the report's c_idx. Cycles name their clock: MCU cycles "cpu", NPU cycles "npu";
the two are never added. What a counter is called and counts:

    pre_cycles, core_cycles, post_cycles            MCU cycles of the three phases
    extra_pre_cycles, ...                           those of a hybrid epoch's extra epochs, besides
    core_npu_cycles, compute_cycles, max_cycles     measured; compiler's ideal and estimate
    busif0_read_bytes, busif0_read_bursts_8, ...    traffic and bursts by length per interface
    engine_4_in_busif0_octoFlash_active_cycles      activity of stream engine 4; _buffer_bytes
    npu_cache_read_miss, ...                        counters of the NPU cache
    pool_octoFlash_read_bytes, ...                  bytes per memory pool
    operation_hw.conv, unit_CONV_ACC, ops           what the compiler mapped

References
----------
ST Edge AI Core documentation, "How to profile a deployed model", npu_profiler 0.2 and later.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from calibration.errors import MeasurementError
from calibration.importers.log import UNKNOWN, Log
from calibration.importers.neural_art_checks import (
    KINDS,
    check_durations,
    check_totals,
    explain_times,
    read_duration_ms,
)
from calibration.importers.neural_art_lines import (
    EPOCH_LINES,
    MODEL_LINES,
    POOL_SECTIONS,
    read_groups,
    read_pool,
)
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import MAX_VALUE, Header, Sample

EXPECTED = "the text npu_profiler.py prints, with lines such as 'EpochBlock_1 (c_idx=0, ...)'"

_EPOCH = re.compile(r"\s*(EpochBlock_\d+) \(c_idx=(\d{1,6}), num=\S+ c_type=(\w+), "
                    r"extra=(\d{1,6})\)")
_EPOCH_ANYWHERE = re.compile(_EPOCH.pattern.replace(r"\s*", r"^[ \t]*", 1), re.MULTILINE)
_LINE = re.compile(r"\s*(?P<key>[A-Za-z<][\w\t ./()<>'\[\]-]*):\s++(?P<value>.*)$")
_INPUT = re.compile(r"\s*I\[(\d+)/\d+\] '.*' *: *(\w+\[[\d,]+\])")
_CLOCKS = {"mcu": "cpu", "npu": "npu", "noc": "noc", "nic": "nic", "axi": "nic", "ahb": "noc"}
_TIMED = ("mcu cycles", "extra mcu", "total mcu", "core npu cycles")
_OURS = re.compile(r"^predicted {2,}\S", re.MULTILINE)
_BANNER = "NPU Utility - AiRunner Profiler"
_HEADINGS = ("Summary", "Compiler", "Measured", "Target", "Memory bandwidth / inference")
_DERIVED = ("epoch type", "ops/cycle", "duration", "compute cycles ratio", "busif (total)",
            "strg engines", "henv", "total", "total r/w", "total mcu", "inf/s", "ideal ops/cycle",
            "ideal inf/s", "npu cycles")
"""Lines of an epoch or of the whole model that follow from others, except where a table reads
them."""

_SUM_LINES = {"busif (total)": "busif", "total": "pool_", "total r/w": "pool_"}
"""Derived lines that are sums of bytes, and how the counters they are sums of begin."""

_KNOWN_LINES = re.compile(
    r"\s*+((\[compiler\]|\[target\]|collect busif requests|<- done|Inference time per node)$"
    r"|I?O?\[\d+/\d+\]|Summary '|.*AiRunner|Proto-buffer driver |noc_freq=|-> collecting statistics"
    r"|collect (in|out)put streng |post-process the |ST\.AI Profiling results |c_id +m_id +type "
    r"|\d+ +\S+ +epoch |total +[\d.]+ +\[|[\d.]+ inf/s |HW: |\u2502|Table: )")
"""Lines of other parts of the log, known and omitted."""


def recognise(text: str) -> bool:
    """Whether a text is a report of the profiler, or of ours in its form."""
    return _EPOCH_ANYWHERE.search(text) is not None


def read_log(log: Log) -> Measurement:
    """Read a report.

    Returns
    -------
    Measurement
        One run, warm; whole-network counters have no layer. Of kind "predicted" where the report
        is a prediction printed in the profiler's form ("Target" heads its totals).

    Raises
    ------
    MeasurementError
        When it is no such report, a line of it is not understood, epochs or totals are missing,
        or the totals are not the sums of the epochs.
    """
    report = _Report(log=log)
    report.read_lines()
    report.check_whole()
    if not report.samples:
        raise MeasurementError(f"{log.where}: no epoch found; expected {EXPECTED}")
    found = Measurement(header=report.make_header(), samples=tuple(report.samples))
    if not log.remarks:
        check_totals(found, log)
    check_durations(found, log, report.durations_ms)
    return found


@dataclass(slots=True, kw_only=True)
class _Report:
    """A report as far as it was read."""

    log: Log
    facts: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    values: dict[int | None, dict[str, float]] = field(default_factory=dict)
    uncounted: set[int | None] = field(default_factory=set)
    inputs: dict[str, str] = field(default_factory=dict)
    sections: list[str] = field(default_factory=list)
    epoch: int | None = None
    durations_ms: dict[int, tuple[int, float]] = field(default_factory=dict)
    due: int = 0
    epochs: int = 0
    ours: bool = False
    _kind: str | None = None

    @property
    def kind(self) -> str:
        """What the log says it is, "" when it does not."""
        if self._kind is None:
            text = self.log.text
            heading = re.search(r"^[ \t]*(Measured|Target)[ \t\r]*$", text, re.MULTILINE)
            self._kind = "measured" if _BANNER in text or (heading and heading[1] == "Measured") \
                else "predicted" if heading or self.ours else ""
        return self._kind

    def __post_init__(self) -> None:
        """Note whether a report of `twin predict` stands before the epochs."""
        self.ours = _OURS.search(self.log.text) is not None

    @property
    def section(self) -> str:
        """Heading the line being read stands under."""
        return self.sections[-1] if self.sections else "initial"

    def read_lines(self) -> None:
        """Take in all lines; the last of a log that is cut is omitted where it may be half."""
        lines = list(self.log.lines())
        for number, line in lines[:-1]:
            self.read(number, line)
        if not lines:
            return
        number, line = lines[-1]
        if not self.log.text.endswith(line):
            self.read(number, line)
            return
        whole = "total r/w" in line or line.strip().startswith("total ") or not self.log.partial
        try:
            if whole:
                self.read(number, line)
        except MeasurementError as error:
            self.log.lack(f"line {number} is cut ({error})")
        if not whole:
            self.log.lack(f"line {number} has no end and is omitted")
            self.log.take(number)

    def read(self, number: int, line: str) -> None:
        """Take in one line."""
        log = self.log
        header = _EPOCH.match(line)
        if not header and not self.sections and self.ours:
            log.take(number)  # figures of layers, which are not the profiler's
        elif header:
            self._begin_epoch(number, header)
        elif line.strip(" :") in _HEADINGS and not (line.strip() == "Summary" and not self.epochs):
            self.epoch = None
            self.sections.append(line.strip(" :"))
            log.take(number)
        elif (found := _INPUT.match(line)) is not None:
            self.inputs[found[1]] = found[2]
            log.take(number)
        elif _KNOWN_LINES.match(line):
            log.take(number)
        elif (match := _LINE.match(line)) is not None:
            self._read_line(number, match["key"].strip(), match["value"].strip())

    def _begin_epoch(self, number: int, header: re.Match[str]) -> None:
        index = int(header[2])
        if f"epoch {index}" in self.environment:
            raise self.log.refuse(number, f"epoch {index} is there twice; is this two logs in one?")
        if index > self.due:
            self.log.lack(f"line {number}: epoch {index} where {self.due} is due")
        elif index < self.due:
            raise self.log.refuse(number, f"epoch {index} where {self.due} is due; lines are out "
                                          "of order")
        self.epoch, self.due = index, index + 1 + int(header[4])
        self.epochs += 1
        self.sections.append("epoch")
        self.environment[f"epoch {index}"] = f"{header[1]} {header[3]}"
        self.log.take(number)

    def _read_line(self, number: int, key: str, value: str) -> None:
        if self.section == "initial":
            self.facts.setdefault(key, value)
            self.log.take(number)
            return
        table = EPOCH_LINES if self.section == "epoch" else MODEL_LINES.get(self.section, {})
        reader = table.get(key)
        if reader is None and key not in _DERIVED and re.fullmatch(r"\w+", key) \
                and self.section in ("epoch", *POOL_SECTIONS) and value.startswith("r="):
            reader = read_pool
        if reader is None and key not in _DERIVED:
            return
        try:
            if reader is None:
                self._check_derived(number, key, value)
            else:
                self._add(number, key, list(reader(key, value)))
        except (ValueError, KeyError, OverflowError) as error:
            raise self.log.refuse(number, f"{key!r} is not understood: {value!r}") from error
        if key in _TIMED and (why := explain_times(value)):
            raise self.log.refuse(number, f"{key!r} contradicts itself: {why}")
        self.log.take(number)

    def _add(self, number: int, key: str, found: list[tuple[str, str | None, float, str]]) -> None:
        values = self.values.setdefault(self.epoch, {})
        for counter, clock, amount, unit in found:
            if counter in values:
                raise self.log.refuse(number, f"{key!r} is there twice")
            if not amount <= MAX_VALUE:
                raise ValueError(amount)
            values[counter] = amount
            self.samples.append(Sample(run=0, layer=self.epoch, counter=counter, clock=clock,
                                       value=amount, unit=unit))

    def _check_derived(self, number: int, key: str, value: str) -> None:
        """Refuse what does not follow from other lines: sums of bytes, the type of an epoch."""
        if key == "npu cycles":
            self.uncounted.add(self.epoch)
        if key == "duration" and self.epoch is not None:
            self.durations_ms[self.epoch] = (number, read_duration_ms(value))
        kind = self.environment.get(f"epoch {self.epoch}", "").rpartition(" ")[2]
        epoch_type = value.removeprefix("EpochType.").strip()
        if key == "epoch type" and kind in KINDS and epoch_type in KINDS and epoch_type != kind:
            raise self.log.refuse(number, f"'epoch type' is {epoch_type}, the epoch's first line "
                                          f"says c_type={kind}")
        if key not in _SUM_LINES:
            return
        stated = [float(text) for text in read_groups(r"^r=(\d+)\s+w=(\d+)", value)]
        for direction, expected in zip(("read", "write"), stated, strict=True):
            found = [amount for counter, amount in self.values.get(self.epoch, {}).items()
                     if counter.startswith(_SUM_LINES[key])
                     and counter.endswith(f"_{direction}_bytes")]
            if math.fsum(found) != expected:
                raise self.log.refuse(number, f"{key!r} is {expected:,.0f} bytes {direction}, the "
                                              f"lines above sum to {math.fsum(found):,.0f}")

    def check_whole(self) -> None:
        """Note what is missing: epochs, lines of an epoch, totals."""
        stated = self.facts.get("n_nodes", "")
        if stated.isdigit() and stated.lstrip("0") != str(self.epochs):
            self.log.lack(f"it has {self.epochs} of {stated} epochs")
        for name in self.environment:
            layer = int(name.removeprefix("epoch "))
            values = self.values.get(layer, {})
            if "core_cycles" not in values:
                self.log.lack(f"{name} has no MCU cycles")
            elif "core_npu_cycles" not in values and layer not in self.uncounted:
                self.log.lack(f"{name} has no NPU cycles, and no line that says so")
        for name in ("cpu_cycles", "npu_cycles", "duration"):
            if self.epochs and name not in self.values.get(None, {}):
                self.log.lack(f"the totals of the whole model have no {name}")
                break
        moved = {counter.removeprefix("compiler_") for layer, values in self.values.items()
                 if layer is not None for counter in values if "pool_" in counter}
        if missing := sorted(moved - set(self.values.get(None, {}))):
            self.log.remarks.append(f"the totals of the whole model have no {missing[0]}"
                                    + (f" and {len(missing) - 1} more" if missing[1:] else "")
                                    + ": bytes of its epochs are not checked")

    def make_header(self) -> Header:
        """Return the header: board, tools, clocks, kind."""
        facts, log = self.facts, self.log
        if not self.kind:
            raise MeasurementError(f"{log.where}: says neither 'Measured' nor '{_BANNER}': whether "
                                   "a board was measured is not known")
        device = facts.get("device.desc", "")
        tools = facts.get("runtime lib", facts.get("tools", ""))
        environment = self.environment | {key: facts[key] for key in (
            "tools", "runtime lib", "compile_datetime", "device.desc", "device.attrs")
            if key in facts}
        if self.inputs:
            environment["inputs"] = " ".join(self.inputs.values())
        if log.remarks:
            environment["remarks"] = "; ".join(log.remarks)
        return Header(kind=self.kind, model=facts.get("model", UNKNOWN),
                      board="stm32n6570_dk" if "STM32N6" in device else device or UNKNOWN,
                      runtime="neural-art" + (f", {tools}" if tools else ""),
                      clocks_hz=tuple(self._find_clocks().items()), temperature="warm",
                      source=log.where, environment=tuple(environment.items()))

    def _find_clocks(self) -> dict[str, float]:
        clocks: dict[str, float] = {}
        text = self.log.text
        for found in re.finditer(r"(mcu|npu|noc|nic|axi|ahb)_freq=(\d{1,7})MHz", text):
            name, mhz = found.groups()
            clock, hertz = _CLOCKS[name], float(mhz) * 1e6
            number = text.count("\n", 0, found.start()) + 1
            if not hertz and name in ("mcu", "npu"):
                raise self.log.refuse(number, f"{name}_freq is 0 MHz; the log is damaged")
            if clocks.setdefault(clock, hertz) != hertz:
                raise self.log.refuse(number, f"gives {name}_freq as {mhz} MHz, lines above as "
                                              f"{clocks[clock] / 1e6:g} MHz")
        return {name: hertz for name, hertz in clocks.items() if hertz}
