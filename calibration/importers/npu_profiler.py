"""The text report of ST's npu_profiler.py, read into a measurement: one "layer" per epoch.

A layer index is the report's c_idx. Cycles name their clock: MCU cycles "cpu", NPU cycles "npu";
the two are never added. What a counter is called and counts:

    pre_cycles, core_cycles, post_cycles            MCU cycles of the three phases, extra epochs in
    extra_pre_cycles, ...                           of those, the extra epochs of a hybrid one
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

import re
from collections.abc import Callable, Iterator, Mapping

from calibration.errors import MeasurementError
from calibration.measurement import Measurement
from calibration.sample import Header, Sample

BURST_BEATS = (1, 2, 4, 8)
_PHASES = ("pre", "core", "post")
_CACHE = {"R": (("hit", "hit"), ("miss", "miss"), ("alloc-miss", "alloc_miss"),
                ("evict", "evict")),
          "W": (("hit", "hit"), ("miss", "miss"), ("alloc-miss", "alloc_miss"),
                ("through", "through"))}

_EPOCH = re.compile(r"\s*(EpochBlock_\d+) \(c_idx=(\d+), num=\S+ c_type=(\w+), extra=\d+\)")
_LINE = re.compile(r"\s*(?P<key>[A-Za-z][\w ./()-]*?)\s*:\s+(?P<value>.*?)\s*$")
_CLOCKS = {"mcu": "cpu", "npu": "npu", "noc": "noc", "nic": "nic"}

Found = Iterator[tuple[str, str | None, float, str]]
"""(counter, clock, value, unit)."""


def read_log(text: str, where: str) -> Measurement:
    """Read a report.

    Parameters
    ----------
    text : str
        Of the whole log.
    where : str
        File, for errors and as source.

    Returns
    -------
    Measurement
        One run, warm; whole-network counters have no layer.

    Raises
    ------
    MeasurementError
        When it is no such report, or a line of it is not understood.
    """
    facts: dict[str, str] = {}
    environment: dict[str, str] = {}
    samples: list[Sample] = []
    epoch: int | None = None
    section = "initial"
    for number, line in enumerate(text.splitlines(), start=1):
        header = _EPOCH.match(line)
        if header:
            epoch, section = int(header[2]), "epoch"
            environment[f"epoch {epoch}"] = f"{header[1]} {header[3]}"
        elif line.strip() in ("Summary", "Compiler", "Measured", "Memory bandwidth / inference"):
            epoch, section = None, line.strip()
        match = _LINE.match(line)
        if match is None:
            continue
        key, value = match["key"].strip(), match["value"]
        if section == "initial":
            facts.setdefault(key, value)
            continue
        table = _EPOCH_LINES if section == "epoch" else _MODEL_LINES.get(section, {})
        reader = table.get(key) or (_read_pool if section in ("epoch", *_POOL_SECTIONS) and
                                    re.match(r"r=\d+\s+w=\d+", value) else None)
        if reader is None:
            continue
        try:
            samples += [Sample(run=0, layer=epoch, counter=counter, clock=clock, value=amount,
                               unit=unit) for counter, clock, amount, unit in reader(key, value)]
        except (ValueError, KeyError) as error:
            raise MeasurementError(f"{where}:{number}: {key!r} is not understood: {value!r}"
                                   ) from error
    if not any(sample.layer is not None for sample in samples):
        raise MeasurementError(f"{where}: no epoch found; accepted: the text npu_profiler.py "
                               "prints, with lines such as 'EpochBlock_1 (c_idx=0, ...)'")
    clocks = {_CLOCKS[name]: float(mhz) * 1e6
              for name, mhz in re.findall(r"(mcu|npu|noc|nic)_freq=(\d+)MHz", text)}
    return Measurement(header=_make_header(facts, environment, clocks, where),
                       samples=tuple(samples))


def _make_header(facts: Mapping[str, str], environment: dict[str, str],
                 clocks: Mapping[str, float], where: str) -> Header:
    device = facts.get("device.desc", "")
    tools = facts.get("runtime lib", facts.get("tools", "npu_profiler"))
    environment |= {key: facts[key] for key in ("tools", "runtime lib", "compile_datetime",
                                                "device.desc", "device.attrs") if key in facts}
    return Header(kind="measured", model=facts.get("model", "network"),
                  board="stm32n6570_dk" if "STM32N6" in device else device or "not stated",
                  runtime=f"neural-art, {tools}", clocks_hz=tuple(clocks.items()),
                  temperature="warm", source=where, environment=tuple(environment.items()))


def _groups(pattern: str, text: str) -> tuple[str, ...]:
    """What a pattern finds in a value; a ValueError when it is not there."""
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(pattern)
    return found.groups()


def _whole(text: str) -> float:
    return float(_groups(r"^(\d+)", text.replace(",", ""))[0])


def _read_cycles(counter: str, clock: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        yield counter, clock, _whole(value), "cycles"
    return read


def _read_compute(key: str, value: str) -> Found:
    yield "compute_cycles", "npu", _whole(value), "cycles"
    yield "max_cycles", "npu", float(_groups(r"max_cycles=(\d+)", value)[0]), "cycles"


def _read_count(counter: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        yield counter, None, _whole(value), "count"
    return read


def _read_counts(prefix: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        for name, count in re.findall(r"'([^']+)': (\d+)", value):
            yield f"{prefix}_{name}", None, float(count), "count"
    return read


def _read_accesses(key: str, value: str) -> Found:
    for pool, reads, writes in re.findall(r"\[(\w+): r=(\d+), w=(\d+)\]", value):
        yield f"compiler_pool_{pool}_read_bytes", None, float(reads), "bytes"
        yield f"compiler_pool_{pool}_write_bytes", None, float(writes), "bytes"


def _read_phases(prefix: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        counted = _groups(r"^\[(\d+), (\d+), (\d+)\]", value)
        for phase, cycles in zip(_PHASES, counted, strict=True):
            yield f"{prefix}{phase}_cycles", "cpu", float(cycles), "cycles"
    return read


def _read_interface(key: str, value: str) -> Found:
    name = "busif" + key.removeprefix("busif").strip()
    totals = _groups(r"^r=(\d+)\s+w=(\d+)", value)
    for direction, amount in zip(("read", "write"), totals, strict=True):
        yield f"{name}_{direction}_bytes", None, float(amount), "bytes"
    for direction in ("read", "write"):
        listed = _groups(rf"{direction[0]}burst\[1,2,4,8\]x8=\(([\d,]+)\)", value)[0].split(",")
        for beats, count in zip(BURST_BEATS, listed, strict=True):
            yield f"{name}_{direction}_bursts_{beats}", None, float(count), "count"


def _read_engine(key: str, value: str) -> Found:
    index, side, interface, cycles, pool, size = _groups(
        r"^STRENG\.(\d+)\.([io]): busif=(\d+), (\d+) cycles, \[(\w+):(\d+)\]", value)
    name = f"engine_{index}_{'in' if side == 'i' else 'out'}_busif{interface}_{pool}"
    yield f"{name}_active_cycles", "npu", float(cycles), "cycles"
    yield f"{name}_buffer_bytes", None, float(size), "bytes"


def _read_cache(key: str, value: str) -> Found:
    for side, direction in (("R", "read"), ("W", "write")):
        listed = _groups(rf"{side}\[([^\]]*)\]", value)[0]
        counts = dict(re.findall(r"([a-z-]+)=(\d+)", listed))
        for theirs, ours in _CACHE[side]:
            yield f"npu_cache_{direction}_{ours}", None, float(counts[theirs]), "count"


def _read_pool(key: str, value: str) -> Found:
    if key.startswith("total") or not re.fullmatch(r"\w+", key):
        return
    reads, writes = _groups(r"^r=(\d+)\s+w=(\d+)", value)
    yield f"pool_{key}_read_bytes", None, float(reads), "bytes"
    yield f"pool_{key}_write_bytes", None, float(writes), "bytes"


def _read_duration(key: str, value: str) -> Found:
    whole, core = _groups(r"^([\d.]+)ms, npu_core:([\d.]+)ms", value)
    yield "duration", None, float(whole) * 1e3, "us"
    yield "npu_core_duration", None, float(core) * 1e3, "us"
    shares = _groups(r"mcu_cycles=\[([\d.]+), ([\d.]+), ([\d.]+)\]%", value)
    for phase, share in zip(_PHASES, shares, strict=True):
        yield f"{phase}_share", None, float(share), "percent"


def _read_both(whole: str, core: str, clock: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        yield whole, clock, _whole(value), "cycles"
        yield core, clock, float(_groups(r"core only\s*=\s*(\d+)", value)[0]), "cycles"
    return read


_POOL_SECTIONS = ("Memory bandwidth / inference",)

_EPOCH_LINES: Mapping[str, Callable[[str, str], Found]] = {
    "ops": _read_count("ops"), "operations": _read_counts("operation"),
    "processor units": _read_counts("unit"), "compute cycles": _read_compute,
    "mem accesses": _read_accesses, "mcu cycles": _read_phases(""),
    "extra mcu": _read_phases("extra_"), "core npu cycles": _read_cycles("core_npu_cycles", "npu"),
    "busif 0": _read_interface, "busif 1": _read_interface, "active": _read_engine,
    "NPU cache cnts": _read_cache,
}

_MODEL_LINES: Mapping[str, Mapping[str, Callable[[str, str], Found]]] = {
    "Compiler": {"cycles": _read_cycles("max_cycles", "npu"),
                 "ideal cycles": _read_cycles("compute_cycles", "npu"),
                 "ops": _read_count("ops")},
    "Measured": {"total duration": _read_duration,
                 "mcu cycles": _read_both("cpu_cycles", "core_cycles", "cpu"),
                 "npu cycles": _read_both("npu_cycles", "core_npu_cycles", "npu")},
}
