"""The report of ST's profiler as text, from counters by its names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from hwmodels.schedule import BURST_BEATS
from twin.runtimes.compiler import Clocks
from twin.runtimes.task_lines import PHASES, Counters

_ENGINE = re.compile(r"engine_(\d+)_(in|out)_(busif\d+)_(\w+)_active_cycles")


def list_task(name: str, kind: str, index: int, counters: Counters, totals: Counters,
              clocks_hz: Clocks) -> list[str]:
    """Return the lines of an epoch; `twin.runtimes.compiler.Compiler.list_task` says of what."""
    number = name.rpartition("_")[2]
    return [f"{name} (c_idx={index}, num={number}:{number}, c_type={kind}, extra=0)",
            "[compiler]", *_compiler_lines(counters, kind),
            "[target]", *_target_lines(counters, totals, clocks_hz)]


def _field(label: str, text: str) -> str:
    return f"  {label:22} : {text}"


def _compiler_lines(counters: Counters, kind: str) -> Iterator[str]:
    yield _field("epoch type", f"EpochType.{kind}")
    yield _field("operations", str(_listed(counters, "operation_")))
    yield _field("processor units", str(_listed(counters, "unit_")))
    yield _field("ops", f"{_whole(counters, 'ops')}")
    compute, maximum = counters.get("compute_cycles", 0.0), counters.get("max_cycles", 0.0)
    yield _field("compute cycles", f"{compute:.0f} (max_cycles={maximum:.0f})")
    ops = counters.get("ops", 0.0)
    yield _field("ops/cycle", f"{ops / maximum:.1f} GOPS (ideal={ops / compute:.1f})"
                 if ops and maximum and compute else "<no ops available>")
    pools = _pools(counters, "compiler_pool_")
    yield _field("mem accesses", " ".join(f"[{name}: r={reads:.0f}, w={writes:.0f}]"
                                          for name, (reads, writes) in pools.items()) or "none")


def _target_lines(counters: Counters, totals: Counters, clocks_hz: Clocks) -> Iterator[str]:
    host_hz, npu_hz = clocks_hz["cpu"], clocks_hz["npu"]
    phases = [counters.get(f"{phase}_cycles", 0.0) for phase in PHASES]
    times = [cycles / host_hz * 1e3 for cycles in phases]
    total_ms = totals.get("duration", 0.0) / 1e3
    share = 100 * sum(times) / total_ms if total_ms else 0.0
    yield _field("duration", f"{sum(times):.3f}ms ({share:.1f}%) total={total_ms:.3f}ms")
    yield _field("mcu cycles", f"[{', '.join(f'{cycles:.0f}' for cycles in phases)}] -> "
                 f"{','.join(f'{time:.3f}' for time in times)} ms (mcu_freq="
                 f"{host_hz / 1e6:.0f}MHz), {sum(times):.3f}ms")
    core = counters.get("core_npu_cycles")
    if core is None:
        yield _field("npu cycles", "n.a.")
        return
    yield from _core_lines(counters, core, sum(times), npu_hz)
    yield from _interface_lines(counters, core / npu_hz)
    ops = counters.get("ops", 0.0)
    whole = sum(times) / 1e3 * npu_hz
    yield _field("ops/cycle", f"{ops / whole:.1f} GOPS (core only: {ops / core:.1f})"
                 if ops and core and whole else "<no ops available>")
    yield from _engine_lines(counters, core)
    yield _field("NPU cache cnts", "R[" + ", ".join(
        f"{label}={_whole(counters, f'npu_cache_read_{name}')}" for label, name in (
            ("hit", "hit"), ("miss", "miss"), ("alloc-miss", "alloc_miss"), ("evict", "evict")))
        + "], W[" + ", ".join(
        f"{label}={_whole(counters, f'npu_cache_write_{name}')}" for label, name in (
            ("hit", "hit"), ("miss", "miss"), ("alloc-miss", "alloc_miss"),
            ("through", "through"))) + "]")
    pools = _pools(counters, "pool_")
    for name, (reads, writes) in (pools | _sum_pools(pools)).items():
        yield _field(f" {name}", f"r={reads:<10.0f} w={writes:<10.0f} -> "
                     f"{_rate(reads + writes, core / npu_hz)}")


def _core_lines(counters: Counters, core: float, whole_ms: float, npu_hz: float) -> Iterator[str]:
    compute, maximum = counters.get("compute_cycles", 0.0), counters.get("max_cycles", 0.0)
    off = core - maximum
    percent = f" ({100 * off / core:.2f}%)" if core else ""
    yield _field("core npu cycles", f"{core:.0f} -> {core / npu_hz * 1e3:.3f} ms (npu_freq="
                 f"{npu_hz / 1e6:.0f}MHz) diff. vs max_cycles from compiler: {off:+.0f}"
                 f"{percent}")
    whole = whole_ms / 1e3 * npu_hz
    yield _field("compute cycles ratio", f"{100 * compute / whole:.2f}% (core only: "
                 f"{100 * compute / core:.2f}%)" if compute and whole and core
                 else "<no compute cycles available>")


def _interface_lines(counters: Counters, core_s: float) -> Iterator[str]:
    names = list(dict.fromkeys(match[1] for match in (
        re.fullmatch(r"(busif\d+)_read_bytes", name) for name in counters) if match))
    sums = [0.0, 0.0]
    for name in names:
        moved = [counters[f"{name}_{way}_bytes"] for way in ("read", "write")]
        bursts = [",".join(str(_whole(counters, f"{name}_{way}_bursts_{beats}"))
                           for beats in BURST_BEATS) for way in ("read", "write")]
        sums = [a + b for a, b in zip(sums, moved, strict=True)]
        yield _field(f"busif {name.removeprefix('busif')}",
                     f"r={moved[0]:<8.0f} w={moved[1]:<8.0f} rburst[1,2,4,8]x8=({bursts[0]}) "
                     f"wburst[1,2,4,8]x8=({bursts[1]}) -> {_rate(sum(moved), core_s)}")
    yield _field("busif (total)", f"r={sums[0]:<10.0f} w={sums[1]:<10.0f} -> "
                 f"{_rate(sum(sums), core_s)}")


def _engine_lines(counters: Counters, core: float) -> Iterator[str]:
    found = sorted(((match, counters[name]) for name in counters
                    if (match := _ENGINE.fullmatch(name))), key=lambda pair: int(pair[0][1]))
    if not found or not core:
        yield _field("strg engines", "0.00% (id=-1)")
        return
    busiest, most = max(found, key=lambda pair: pair[1])
    yield _field("strg engines", f"{100 * most / core:.2f}% (id={busiest[1]})")
    for match, cycles in found:
        size = counters.get(match[0].replace("_active_cycles", "_buffer_bytes"), 0.0)
        yield _field(" active", f"STRENG.{match[1]}.{match[2][0]}: busif={match[3][5:]}, "
                     f"{cycles:.0f} cycles, [{match[4]}:{size:.0f}], {100 * cycles / core:.0f}%")


def list_model(totals: Counters, clocks_hz: Clocks) -> list[str]:
    """Return the final part of the profiler's report: compiler, target, memory bandwidth."""
    npu_hz = clocks_hz["npu"]
    ops, maximum, compute = (totals.get(name, 0.0) for name in (
        "ops", "max_cycles", "compute_cycles"))
    duration_s = totals.get("duration", 0.0) * 1e-6
    core = totals.get("core_npu_cycles", 0.0)
    shares = [totals.get(f"{phase}_share", 0.0) for phase in PHASES]
    npu_cycles = totals.get("npu_cycles", duration_s * npu_hz)
    lines = ["Compiler",
             _field("cycles", f"{maximum:.0f} (total max_cycles)"),
             _field("ideal cycles", f"{compute:.0f} (total compute_cycles)"),
             _field("ops", f"{ops:.0f}"),
             _field("ops/cycle", _ratio(ops, maximum)),
             _field("inf/s", f"{_ratio(npu_hz, maximum, 1)} (based on estimated total "
                             "max_cycles)"),
             _field("ideal ops/cycle", _ratio(ops, compute)),
             _field("ideal inf/s", _ratio(npu_hz, compute, 1)),
             "Target",
             _field("total duration", f"{duration_s * 1e3:.3f}ms, npu_core:"
                    f"{core / npu_hz * 1e3:.3f}ms ({_ratio(100 * core, npu_cycles, 2)}%), "
                    f"mcu_cycles=[{', '.join(f'{share:.2f}' for share in shares)}]%"),
             _field("mcu cycles", f"{totals.get('cpu_cycles', 0.0):.0f} (core only = "
                                  f"{totals.get('core_cycles', 0.0):.0f})"),
             _field("npu cycles", f"{npu_cycles:.0f} (core only = {core:.0f})"),
             _field("ops/cycle", f"{_ratio(ops, npu_cycles, 1)} GOPS / including SW epochs "
                                 f"(core only = {_ratio(ops, core, 1)})"),
             _field("inf/s", f"{_ratio(1.0, duration_s, 1)} ({duration_s * 1e3:.3f}ms)"),
             _field("compute cycles ratio", f"{_ratio(100 * compute, npu_cycles, 2)}% (core only: "
                                            f"{_ratio(100 * compute, core, 2)}%)"),
             "Memory bandwidth / inference"]
    pools = _pools(totals, "pool_")
    for name, (reads, writes) in (pools | _sum_pools(pools)).items():
        lines.append(_field(name, f"r={reads:<10.0f} w={writes:<10.0f} -> "
                            f"{_rate(reads + writes, core / npu_hz)} (peak), "
                            f"{_rate(reads + writes, duration_s)} (average)"))
    return lines


def _listed(counters: Counters, prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): round(value) for name, value in counters.items()
            if name.startswith(prefix)}


def _pools(counters: Counters, prefix: str) -> dict[str, tuple[float, float]]:
    names = [name.removeprefix(prefix).removesuffix("_read_bytes") for name in counters
             if name.startswith(prefix) and name.endswith("_read_bytes")]
    return {name: (counters[f"{prefix}{name}_read_bytes"],
                   counters.get(f"{prefix}{name}_write_bytes", 0.0)) for name in names}


def _sum_pools(pools: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    return {"total": (math.fsum(reads for reads, _ in pools.values()),
                      math.fsum(writes for _, writes in pools.values()))}


def _whole(counters: Counters, name: str) -> int:
    return round(counters.get(name, 0.0))


def _ratio(a: float, b: float, decimals: int = 0) -> str:
    return f"{a / b:.{decimals}f}" if b else "not known"


def _rate(moved_bytes: float, seconds: float) -> str:
    """Bytes per second, in decimal units as the profiler prints them."""
    rate = moved_bytes / seconds if seconds else 0.0
    for factor, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "KB/s")):
        if rate >= factor:
            return f"{rate / factor:.2f} {unit}"
    return f"{rate:.0f} B/s"
