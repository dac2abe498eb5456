"""Lines of the npu_profiler's report: what each says, as counters.

`EPOCH_LINES` are those of an epoch, `MODEL_LINES` those of the whole model by section.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

BURST_BEATS = (1, 2, 4, 8)
PHASES = ("pre", "core", "post")
ENGINES = "unit_STR_ENG"
"""Counter of the stream engines an epoch takes."""

_CACHE = {"R": (("hit", "hit"), ("miss", "miss"), ("alloc-miss", "alloc_miss"),
                ("evict", "evict")),
          "W": (("hit", "hit"), ("miss", "miss"), ("alloc-miss", "alloc_miss"),
                ("through", "through"))}

Found = Iterator[tuple[str, str | None, float, str]]
"""(counter, clock, value, unit); a ValueError or KeyError when a line is not understood."""


def read_groups(pattern: str, text: str) -> tuple[str, ...]:
    """Return what a pattern finds in a value; a ValueError when it is not there."""
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(pattern)
    return found.groups()


def _whole(text: str) -> float:
    return float(read_groups(r"^(\d+)(?![\d.eE])", text.replace(",", ""))[0])


def _read_cycles(counter: str, clock: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        yield counter, clock, _whole(value), "cycles"
    return read


def _read_compute(key: str, value: str) -> Found:
    yield "compute_cycles", "npu", _whole(value), "cycles"
    yield "max_cycles", "npu", float(read_groups(r"max_cycles=(\d+)", value)[0]), "cycles"


def _read_count(counter: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        yield counter, None, _whole(value), "count"
    return read


def _read_counts(prefix: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        listed = re.findall(r"'([^']+)': (\d+)", value)
        if len(listed) != value.count(":") and not value.startswith("<"):
            raise ValueError(value)
        for name, count in listed:
            yield f"{prefix}_{name}", None, float(count), "count"
    return read


def _read_accesses(key: str, value: str) -> Found:
    listed = re.findall(r"\[(\w+): r=(\d+), w=(\d+)\]", value)
    if len(listed) != value.count("["):
        raise ValueError(value)
    for pool, reads, writes in listed:
        yield f"compiler_pool_{pool}_read_bytes", None, float(reads), "bytes"
        yield f"compiler_pool_{pool}_write_bytes", None, float(writes), "bytes"


def _read_phases(prefix: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        counted = read_groups(r"^\[(\d+), (\d+), (\d+)\]", value)
        for phase, cycles in zip(PHASES, counted, strict=True):
            yield f"{prefix}{phase}_cycles", "cpu", float(cycles), "cycles"
    return read


def _read_interface(key: str, value: str) -> Found:
    name = "busif" + key.removeprefix("busif").strip()
    totals = read_groups(r"^r=(\d+)\s+w=(\d+)", value)
    for direction, amount in zip(("read", "write"), totals, strict=True):
        yield f"{name}_{direction}_bytes", None, float(amount), "bytes"
    for direction in ("read", "write"):
        listed = read_groups(rf"{direction[0]}burst\[1,2,4,8\]x8=\(([\d,]+)\)", value)[0].split(",")
        for beats, count in zip(BURST_BEATS, listed, strict=True):
            yield f"{name}_{direction}_bursts_{beats}", None, float(count), "count"


def _read_engine(key: str, value: str) -> Found:
    index, side, interface, cycles, pool, size = read_groups(
        r"^STRENG\.(\d+)\.([io]): busif=(\d+), (\d+) cycles, \[(\w+):(\d+)\]", value)
    name = f"engine_{index}_{'in' if side == 'i' else 'out'}_busif{interface}_{pool}"
    yield f"{name}_active_cycles", "npu", float(cycles), "cycles"
    yield f"{name}_buffer_bytes", None, float(size), "bytes"


def _read_cache(key: str, value: str) -> Found:
    for side, direction in (("R", "read"), ("W", "write")):
        listed = read_groups(rf"{side}\[([^\[\]]*)\]", value)[0]
        counts = dict(re.findall(r"(?<![a-z-])([a-z-]+)=(\d+)", listed))
        for theirs, ours in _CACHE[side]:
            yield f"npu_cache_{direction}_{ours}", None, float(counts[theirs]), "count"


def read_pool(key: str, value: str) -> Found:
    """Read bytes of a memory pool."""
    reads, writes = read_groups(r"^r=(\d+)\s+w=(\d+)", value)
    yield f"pool_{key}_read_bytes", None, float(reads), "bytes"
    yield f"pool_{key}_write_bytes", None, float(writes), "bytes"


def _read_duration(key: str, value: str) -> Found:
    whole, core = read_groups(r"^([\d.]+)ms, npu_core:([\d.]+)ms", value)
    yield "duration", None, float(whole) * 1e3, "us"
    yield "npu_core_duration", None, float(core) * 1e3, "us"
    shares = read_groups(r"mcu_cycles=\[([\d.]+), ([\d.]+), ([\d.]+)\]%", value)
    for phase, share in zip(PHASES, shares, strict=True):
        yield f"{phase}_share", None, float(share), "percent"


def _read_both(whole: str, core: str, clock: str) -> Callable[[str, str], Found]:
    def read(key: str, value: str) -> Found:
        yield whole, clock, _whole(value), "cycles"
        yield core, clock, float(read_groups(r"core only\s*=\s*(\d+)", value)[0]), "cycles"
    return read


POOL_SECTIONS = ("Memory bandwidth / inference",)

EPOCH_LINES: Mapping[str, Callable[[str, str], Found]] = {
    "ops": _read_count("ops"), "operations": _read_counts("operation"),
    "processor units": _read_counts("unit"), "compute cycles": _read_compute,
    "mem accesses": _read_accesses, "mcu cycles": _read_phases(""),
    "extra mcu": _read_phases("extra_"), "core npu cycles": _read_cycles("core_npu_cycles", "npu"),
    "busif 0": _read_interface, "busif 1": _read_interface, "active": _read_engine,
    "NPU cache cnts": _read_cache,
}

MODEL_LINES: dict[str, Mapping[str, Callable[[str, str], Found]]] = {
    "Compiler": {"cycles": _read_cycles("max_cycles", "npu"),
                 "ideal cycles": _read_cycles("compute_cycles", "npu"),
                 "ops": _read_count("ops")},
    "Measured": {"total duration": _read_duration,
                 "mcu cycles": _read_both("cpu_cycles", "core_cycles", "cpu"),
                 "npu cycles": _read_both("npu_cycles", "core_npu_cycles", "npu")},
}
MODEL_LINES["Target"] = MODEL_LINES["Measured"]
