"""Reports of X-CUBE-AI and ST Edge AI `validate` on a target: the network and each c-node.

Both layouts are read: "Results for N inference(s)" with "Inspector report (layer by layer)" up to
version 6, and "nb sample(s)" with "Inference time per node" from version 7 on. Times are means
over the samples; a layer is the report's c_id.

References
----------
UM2526, Getting started with X-CUBE-AI; ST Edge AI Core documentation, command-line interface,
validate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from calibration.importers.log import UNKNOWN, measurement_of, number_of
from calibration.measurement import Measurement
from calibration.sample import Sample

_NUMBER = r"\[?\s*[\d.][\d., ]*\]?"
_HEAD = {
    "latency": re.compile(rf"^\s*duration\s*:\s*(?P<value>{_NUMBER})\s*ms"),
    "cpu_cycles": re.compile(rf"^\s*(?:CPU cycles|cycles)\s*:\s*(?P<value>{_NUMBER})"),
    "macs": re.compile(rf"^\s*macc\s*:\s*(?P<value>{_NUMBER})"),
}
_RANGE = re.compile(r"by sample \(([\d.]+)/([\d.]+)/([\d.]+)\)")
_MACC = re.compile(r"\bmacc\s*[=:]\s*(\d[\d,]*)")
_CLOCK = re.compile(r"@\s*(\d+)\s*(?:MHz)?\s*/\s*(\d+)\s*MHz")
_DEVICE = re.compile(r"devid=(0x[0-9a-fA-F]+/\S+?)\s+msg|^\s*(0x[0-9a-fA-F]{3}\s*-\s*.+?)\s*@")
_NETWORK = re.compile(r"(?:Profiling results v[\d.]+|Results for|STM32 execution)\s*-?\s*"
                      r"\(?\"([^\"]+)\"")
_TOOLS = re.compile(r"(?:ST Edge AI Core|STEdgeAI|X-CUBE-AI|stm32ai)\s*[- ]?v?(\d+\.\d+\.\d+)",
                    re.IGNORECASE)
_OLD = re.compile(r"^\s*(?P<c_id>\d+)\s+(?P<m_id>\d+)\s+(?P<type>\S.*?)\s+\([\d, ]+\)\s+"
                  r"(?P<ms>\d+\.\d+)\s*$")
_NEW = re.compile(rf"^\s*(?P<c_id>\d+)\s+(?P<m_id>\S+)\s+(?P<type>\S.*?)\s+(?P<ms>\d+\.\d+)\s+"
                  rf"[\d.]+\s*%\s+[\d.]+\s*%(?:\s+(?P<cycles>{_NUMBER}))?(?:\s+(?P<name>\S.*?))?\s*$")


def _sample(counter: str, value: float, layer: int | None = None) -> Sample:
    unit, clock = {"latency": ("us", None), "cpu_cycles": ("cycles", "cpu")}.get(
        counter, ("MACs" if counter == "macs" else "us", None))
    return Sample(run=0, layer=layer, counter=counter, clock=clock, unit=unit,
                  value=value * 1e3 if unit == "us" else value)


def read_log(text: str, where: str) -> Measurement:
    """Read a report; one run, which is the mean of the tool's own."""
    samples: dict[tuple[str, int | None], Sample] = {}
    tags: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        for sample in _read_totals(line, where, number):
            samples.setdefault((sample.counter, None), sample)
        node = _OLD.match(line) or _NEW.match(line)
        if node:
            layer = int(node["c_id"])
            tags.append(node["type"])
            samples["latency", layer] = _sample("latency", float(node["ms"]), layer)
            cycles = node.groupdict().get("cycles")
            if cycles:
                samples["cpu_cycles", layer] = _sample(
                    "cpu_cycles", number_of(cycles, where, number), layer)
    told = _read_setting(text)
    timed = any(counter == "latency" for counter, _ in samples)
    version = f"@{told['version']}" if "version" in told else ""
    return measurement_of(
        list(samples.values()) if timed else [], where, runtime="x-cube-ai" + version, tags=tags,
        model=told.get("network", UNKNOWN),
        clocks_hz=[("cpu", float(told["clock"]) * 1e6)] if "clock" in told else [],
        environment=[("device", told["device"])] if "device" in told else [],
        expected='a line "duration : 62.976 ms"')


def _read_totals(line: str, where: str, number: int) -> Iterator[Sample]:
    for counter, pattern in _HEAD.items():
        match = pattern.match(line)
        if match:
            yield _sample(counter, number_of(match["value"], where, number))
    spread = _RANGE.search(line)
    if spread:
        for name, value in zip(("least", "most", "sd"), spread.groups(), strict=True):
            yield _sample(f"latency_{name}", float(value))
    macs = _MACC.search(line)
    if macs:
        yield _sample("macs", number_of(macs[1], where, number))


def _read_setting(text: str) -> dict[str, str]:
    """Return device, clock, network and tool version, as far as the report tells."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        for key, pattern in (("clock", _CLOCK), ("device", _DEVICE), ("network", _NETWORK),
                             ("version", _TOOLS)):
            match = pattern.search(line)
            if match:
                found.setdefault(key, next(group for group in match.groups() if group))
    return found
