"""Reports of X-CUBE-AI and ST Edge AI `validate` on a target: the network and each c-node.

Both layouts are read: "Results for N inference(s)" with "Inspector report (layer by layer)" up to
version 6, and "nb sample(s)" with "Inference time per node" from version 7 on. Times are means
over the samples; a layer is the report's c_id. On an NPU the tool counts three phases per node:
pre_cycles, core_cycles and post_cycles, in MCU cycles as for the npu-profiler.

References
----------
UM2526, Getting started with X-CUBE-AI; ST Edge AI Core documentation, command-line interface,
validate; the print_profiling of its stm_ai_runner package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from calibration.importers.log import UNKNOWN, Log, measurement_of, number_of
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample

EXPECTED = 'a report of validate on a target, with a line "duration : 62.976 ms"'

PHASES = ("pre_cycles", "core_cycles", "post_cycles")
_NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf"
_CYCLES = r"(?:\[\s*)?(?P<cycles>\d[\d,]*+(?:\s+\d[\d,]*+(?![^\s\]]))*+)(?:\s*\])?"
_DURATION = re.compile(rf"^\s*duration\s*:\s*(?P<value>{_NUMBER})\s*ms", re.IGNORECASE)
_COUNTED = re.compile(rf"^\s*(?:CPU cycles|cycles)\s*:\s*{_CYCLES}(?:\s*\(average\))?\s*$")
_RANGE = re.compile(r"by sample \(([\d.]+)/([\d.]+)/([\d.]+)\)")
_MACC = re.compile(r"\bmacc\s*[=:]\s*(\d[\d,]*)")
_CLOCK = re.compile(r"@\s*(\d{1,5})\s*(?:MHz\s*)?/\s*(\d{1,5})\s*MHz")
_DEVICE = re.compile(r"devid=(0x[0-9a-fA-F]{1,16}/\S{1,200})\s+msg"
                     r"|^\s*(0x[0-9a-fA-F]{3}\s*[-/]\s*[^\s@][^@]*)@"
                     r"|\bdevice(?:\.desc)?\s*:\s*([^\s@][^@]{0,200})@")
_NETWORK = re.compile(r"(?:Profiling results v[\d.]+|Results for|STM32 execution)\s*(?:-\s*)?"
                      r"\(?\"([^\"]+)\"")
_TOOLS = re.compile(r"(?P<tool>ST Edge AI Core|STEdgeAI|X-CUBE-AI|stm32ai)\s*[- ]?v?"
                    r"(?P<version>\d+\.\d+\.\d+)", re.IGNORECASE)
_OLD = re.compile(r"^\s*(?P<c_id>\d{1,6})\s+(?P<m_id>\d+)\s+(?P<type>\S+(?:\s+\S+)*?)\s+"
                  r"\([\d, ]+\)\s+(?P<ms>\d+\.\d+)\s*$")
_NEW = re.compile(r"^\s*(?P<c_id>\d{1,6})\s+(?P<m_id>\S+)\s+(?P<type>\S+(?:\s+\S+)*?)\s+"
                  r"(?P<ms>\d+\.\d+)\s+[\d.]+\s*%\s+[\d.]+\s*%(?P<rest>.*)")
_REST = re.compile(rf"(?:\s+{_CYCLES})?(?:\s+[^\s\[\]].*|\s*)")
_BETWEEN = re.compile(r"^\s*n/a\s+n/a\s+Inter-nodal\s+(?P<ms>\d+\.\d+)\s")
_TOTAL = re.compile(rf"^\s*(?:total\s+(?P<new>\d+\.\d++)(?:\s*{_CYCLES})?|(?P<old>\d+\.\d+)\s+"
                    r"\(total\))\s*$")
_EPOCHS = re.compile(r"^[ \t]*EpochBlock_\d+ \(c_idx=", re.MULTILINE)
_NODES = re.compile(r"Clayer\s+id\s+desc|c_id\s+m_id\s+type")
_DERIVED = re.compile(r"\s*(nb sample\(s\)|cycles/MACC)\s*:|\s*Inference time per node"
                      r"|\s*[\d.]+ inf/s\s|\s*HW: [\d.]+%")
_RANGES = ("latency_least", "latency_most", "latency_sd")
_MS_SLACK = 0.0006
"""Half a digit of a printed millisecond, and a little for its binary form."""


@dataclass(slots=True, kw_only=True)
class _Report:
    """A report as far as it was read: whole network, nodes, and what the table ends with."""

    whole: dict[str, float] = field(default_factory=dict)
    nodes: dict[int, dict[str, float]] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    between_ms: float = 0.0
    total_ms: float | None = None
    total_cycles: list[float] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)


def recognise(text: str) -> bool:
    """Whether a text is such a report; one with epochs is the npu-profiler's."""
    return not _EPOCHS.search(text) and any(_DURATION.match(line) for line in text.splitlines())


def read_log(log: Log) -> Measurement:
    """Read a report; one run, which is the mean of the tool's own.

    Raises
    ------
    MeasurementError
        For a report of two networks, nodes out of order, a table without its end, or one that
        does not sum to its total.
    """
    report = _Report()
    for number, line in log.lines():
        if _read_line(log, report, number, line):
            log.take(number)
    _check(log, report)
    samples = [_sample(counter, value, None) for counter, value in report.whole.items()]
    samples += [_sample(counter, value, layer) for layer, node in report.nodes.items()
                for counter, value in node.items()]
    settings = report.settings
    tool = "st-edge-ai" if "edge" in settings.get(
        "tool", "edge" if "ST.AI Profiling" in log.text else "").lower() else "x-cube-ai"
    if any(PHASES[0] in values for values in (report.whole, *report.nodes.values())):
        tool = "neural-art"
    version = f"@{settings['version']}" if "version" in settings else ""
    environment = [("device", settings["device"])] if "device" in settings else []
    return measurement_of(
        log, samples if "latency" in report.whole else [], runtime=tool + version,
        tags=report.tags, model=settings.get("network", UNKNOWN), expected=EXPECTED,
        clocks_hz=[("cpu", float(settings["clock"]) * 1e6)] if float(settings.get("clock", 0))
        else [], environment=environment)


def _sample(counter: str, value: float, layer: int | None) -> Sample:
    if counter.endswith("_cycles"):
        return Sample(run=0, layer=layer, counter=counter, clock="cpu", unit="cycles", value=value)
    unit = "MACs" if counter == "macs" else "us"
    return Sample(run=0, layer=layer, counter=counter, unit=unit, value=value)


def _read_line(log: Log, report: _Report, number: int, line: str) -> bool:
    """Take in one line; whether it says something this reads."""
    setting = _read_setting(report.settings, line)
    if node := _OLD.match(line):
        _add_node(log, report, number, node, None)
        return True
    if (node := _NEW.match(line)) and (rest := _REST.fullmatch(node["rest"])):
        _add_node(log, report, number, node, rest["cycles"])
        return True
    end = _TOTAL.match(line)
    if end:
        report.total_ms = float(end["new"] or end["old"])
        report.total_cycles = _list_cycles(log, number, end["cycles"])
        return True
    between = _BETWEEN.match(line)
    if between:
        report.between_ms = float(between["ms"])
        return True
    found = list(_read_totals(log, number, line))
    for counter, value in found:
        if counter != "macs" and counter in report.whole:
            raise log.refuse(number, f"{counter} is there twice; is this two reports in one?")
        report.whole.setdefault(counter, value)
    return bool(found or setting or _NODES.search(line) or _DERIVED.match(line))


def _add_node(log: Log, report: _Report, number: int, node: re.Match[str],
              cycles: str | None) -> None:
    layer = int(node["c_id"])
    due = max(report.nodes, default=-1) + 1
    if layer != due:
        raise log.refuse(number, f"c_id {layer} where {due} is due; is the report complete?")
    values = {"latency": float(node["ms"]) * 1e3}
    values |= _name_cycles(log, number, _list_cycles(log, number, cycles))
    report.nodes[layer] = values
    report.tags.append(node["type"].replace(",", ";"))


def _list_cycles(log: Log, number: int, text: str | None) -> list[float]:
    return [number_of(part, log, number) for part in (text or "").split()]


def _name_cycles(log: Log, number: int, cycles: list[float]) -> dict[str, float]:
    if len(cycles) == len(PHASES):
        return dict(zip(PHASES, cycles, strict=True)) | {"cpu_cycles": math.fsum(cycles)}
    if len(cycles) > 1:
        raise log.refuse(number, f"{len(cycles)} counts of CPU cycles; 1 or {len(PHASES)} are read")
    return {"cpu_cycles": cycles[0]} if cycles else {}


def _read_totals(log: Log, number: int, line: str) -> Iterator[tuple[str, float]]:
    duration, counted = _DURATION.match(line), _COUNTED.match(line)
    if duration:
        yield "latency", number_of(duration["value"], log, number) * 1e3
    if counted:
        yield from _name_cycles(log, number, _list_cycles(log, number, counted["cycles"])).items()
    spread = _RANGE.search(line)
    if spread:
        for name, text in zip(_RANGES, spread.groups(), strict=True):
            yield name, number_of(text, log, number) * 1e3
    macs = _MACC.search(line)
    if macs:
        yield "macs", number_of(macs[1], log, number)


def _read_setting(settings: dict[str, str], line: str) -> bool:
    """Note device, clock, network and tool version where a line states one; whether it does."""
    before = len(settings)
    for key, pattern in (("clock", _CLOCK), ("device", _DEVICE), ("network", _NETWORK)):
        match = pattern.search(line)
        if match:
            settings.setdefault(key, next(group for group in match.groups() if group).strip())
    tools = _TOOLS.search(line)
    if tools:
        settings.setdefault("tool", tools["tool"])
        settings.setdefault("version", tools["version"])
    return len(settings) > before


def _check(log: Log, report: _Report) -> None:
    """Refuse a table that was cut, or whose nodes are not its total."""
    if "latency" not in report.whole:
        return
    if _NODES.search(log.text) and not report.nodes:
        log.lack("the table of nodes is empty")
    if not report.nodes:
        log.remarks.append("no table of nodes: no times of layers")
        return
    if report.total_ms is None:
        log.lack("the table of nodes has no total")
    stated_ms = report.total_ms or report.whole["latency"] * 1e-3
    summed_ms = math.fsum(node["latency"] for node in report.nodes.values()) * 1e-3
    slack_ms = _MS_SLACK * (len(report.nodes) + 2)
    if abs(stated_ms - summed_ms - report.between_ms) > slack_ms:
        log.lack(f"the nodes sum to {summed_ms:.3f} ms, the report says {stated_ms:.3f} ms")
    if report.total_cycles and report.nodes:
        summed = math.fsum(node.get("cpu_cycles", 0.0) for node in report.nodes.values())
        if abs(math.fsum(report.total_cycles) - summed) > len(report.nodes):
            log.lack(f"the nodes sum to {summed:,.0f} CPU cycles, the report says "
                     f"{math.fsum(report.total_cycles):,.0f}")
