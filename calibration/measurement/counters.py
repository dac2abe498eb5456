"""Counters become metrics, each saying whether it was measured, simulated or modelled.

A metric made of several figures is as far from silicon as the farthest of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ORIGINS = ("measured", "simulated", "modelled")
"""From silicon, from an emulated board, from a prediction; in this order of distance."""

OVERHEAD_SHARE = 0.25
CACHE_SHARE = 0.30
BANDWIDTH_SHARE = 0.70
COMPUTE_SHARE = 0.70
"""Thresholds of the bottleneck classes: shares of the span, and of what core and memory can do."""

MOST_SHARE = 1.1
"""A share of a limit above this cannot be; a tenth is what a modelled figure may be off by."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "cycles": ("cpu_cycles", "block_cpu_cycles"),
    "instructions": ("instructions", "arm_pmu_inst_retired", "inst_retired",
                     "block_instructions"),
    "loads": ("loads", "arm_pmu_ld_retired", "ld_retired", "block_loads"),
    "stores": ("stores", "arm_pmu_st_retired", "st_retired", "block_stores"),
    "accesses": ("dcache_accesses", "arm_pmu_l1d_cache", "l1d", "block_dcache_accesses",
                 "block_cache_references"),
    "misses": ("dcache_misses", "arm_pmu_l1d_cache_refill", "l1d_refill", "block_dcache_misses",
               "block_cache_misses"),
    "stalls": ("stall_cycles", "arm_pmu_stall", "stall"),
    "frontend_stalls": ("arm_pmu_stall_frontend", "stall_frontend"),
    "backend_stalls": ("arm_pmu_stall_backend", "stall_backend"),
    "code_accesses": ("icache_access", "xip_access", "arm_pmu_l1i_cache", "l1i"),
    "code_misses": ("icache_miss", "xip_miss", "arm_pmu_l1i_cache_refill", "l1i_refill"),
    "bus_accesses": ("arm_pmu_bus_access", "bus_access"),
    "branches": ("branches", "arm_pmu_pc_write_retired", "pc_write_retired", "block_branches"),
    "vector_instructions": ("arm_pmu_mve_inst_retired", "mve_inst"),
    "refill_cycles": ("refill_cycles",),
    "memory_cycles": ("memory_cycles",),
    "work_cycles": ("work_cycles",),
    "macs": ("macs",),
    "bytes": ("bytes_moved",),
    "energy_uj": ("energy", "block_package_energy"),
    "time_us": ("time_us",),
}
"""Names a figure goes by: ours first, then those of the boards' counters. Code is what the cache in
front of the flash serves, constants included."""

SUMS: Mapping[str, tuple[tuple[int, str], ...]] = {
    "icache_access": ((1, "icache_hit"), (1, "icache_miss")),
    "xip_miss": ((1, "xip_access"), (-1, "xip_hit")),
    "dcache_accesses": ((1, "dcache_read_hit"), (1, "dcache_read_miss"), (1, "dcache_write_hit"),
                        (1, "dcache_write_miss")),
    "dcache_misses": ((1, "dcache_read_miss"), (1, "dcache_write_miss")),
}
"""What vendors' cache monitors leave to be added up; only where all terms were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a core and its memories can do at most; None is not known.

    Parameters
    ----------
    max_ipc : float or None
        Instructions per cycle.
    macs_per_cycle : float or None
        Multiply-accumulates per cycle.
    bytes_per_cycle : float or None
        Sustained, between the core and the memory of weights or arena, whichever is slower.
    refill_cycles : float or None
        Cost of one data-cache miss.
    """

    max_ipc: float | None = None
    macs_per_cycle: float | None = None
    bytes_per_cycle: float | None = None
    refill_cycles: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number and where it comes from, one of `ORIGINS`."""

    value: float
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A derived figure.

    Parameters
    ----------
    name, unit : str
        What and in what.
    value : float
        The figure.
    origin : str
        One of `ORIGINS`.
    formula : str
        What it was made of.
    """

    name: str
    value: float
    unit: str
    origin: str
    formula: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """What holds a layer or a network up.

    Parameters
    ----------
    kind : str
        "cache", "bandwidth", "stalled", "compute" or "overhead"; "" when nothing tells.
    severity : float
        Share of the span or of the limit the evidence gives, 0 to 1.
    evidence : str
        Figures it rests on, with their threshold.
    origin : str
        Of the evidence.
    """

    kind: str
    severity: float
    evidence: str
    origin: str


@dataclass(slots=True)
class Figures:
    """Figures of one span, by the names of `ALIASES`; the nearest to silicon wins."""

    found: dict[str, Figure] = field(default_factory=dict)

    def add(self, values: Mapping[str, float], origin: str) -> Figures:
        """Add counters of one origin, nearer origins first; returns itself."""
        values = {**{name: float(sum(sign * values[term] for sign, term in terms))
                     for name, terms in SUMS.items() if all(term in values for _, term in terms)},
                  **values}
        for name, aliases in ALIASES.items():
            for alias in aliases:
                if alias in values and name not in self.found:
                    self.found[name] = Figure(value=float(values[alias]), origin=origin)
        return self

    def get(self, *names: str) -> tuple[list[float], str] | None:
        """Values and their farthest origin; None when one is missing."""
        if any(name not in self.found for name in names):
            return None
        figures = [self.found[name] for name in names]
        return ([figure.value for figure in figures],
                max((figure.origin for figure in figures), key=ORIGINS.index))


RATIOS = (
    ("ipc", "instructions", "cycles", "instructions/cycle"),
    ("cycles_per_mac", "cycles", "macs", "cycles/MAC"),
    ("instructions_per_mac", "instructions", "macs", "instructions/MAC"),
    ("macs_per_cycle", "macs", "cycles", "MAC/cycle"),
    ("loads_per_mac", "loads", "macs", "loads/MAC"),
    ("stores_per_mac", "stores", "macs", "stores/MAC"),
    ("miss_rate", "misses", "accesses", "misses/access"),
    ("misses_per_1k_instructions", "misses", "instructions", "misses/1000 instructions"),
    ("code_miss_rate", "code_misses", "code_accesses", "misses/access"),
    ("mac_rate", "macs", "time_us", "MMAC/s"),
    ("byte_rate", "bytes", "time_us", "MB/s"),
    ("bytes_per_cycle", "bytes", "cycles", "bytes/cycle"),
    ("arithmetic_intensity", "macs", "bytes", "MAC/byte"),
    ("stall_share", "stalls", "cycles", ""),
    ("frontend_stall_share", "frontend_stalls", "cycles", ""),
    ("backend_stall_share", "backend_stalls", "cycles", ""),
    ("memory_share", "memory_cycles", "cycles", ""),
    ("work_share", "work_cycles", "cycles", ""),
    ("branch_share", "branches", "instructions", ""),
    ("vector_share", "vector_instructions", "instructions", ""),
    ("energy_per_mac", "energy_uj", "macs", "pJ/MAC"),
)
"""Derived metrics that are quotients: name, numerator, denominator, unit ("" is a share)."""

FACTORS = {"misses_per_1k_instructions": 1e3, "energy_per_mac": 1e6}


def derive_metrics(figures: Figures, limits: Limits) -> tuple[Metric, ...]:
    """Return every metric the figures allow.

    Parameters
    ----------
    figures : Figures
        Of one layer or of the network, one inference.
    limits : Limits
        Of the core.

    Returns
    -------
    tuple of Metric
        Counters themselves first, then quotients, then shares of limits.
    """
    found = [Metric(name=name, value=figure.value, unit="", origin=figure.origin,
                    formula="counter" if figure.origin != "modelled" else "model")
             for name, figure in figures.found.items()]
    span = figures.get("time_us")
    if span and span[0][0]:
        found.append(Metric(name="throughput", value=1e6 / span[0][0], unit="inferences/s",
                            origin=span[1], formula="1 / time_us"))
    for name, above, below, unit in RATIOS:
        pair = figures.get(above, below)
        if pair and pair[0][1]:
            found.append(Metric(name=name, unit=unit, origin=pair[1],
                                value=FACTORS.get(name, 1.0) * pair[0][0] / pair[0][1],
                                formula=f"{above} / {below}"))
    named = {metric.name: metric for metric in found}
    for name, of, limit in (("ipc_of_limit", "ipc", limits.max_ipc),
                            ("mac_utilisation", "macs_per_cycle", limits.macs_per_cycle),
                            ("bandwidth_of_limit", "bytes_per_cycle", limits.bytes_per_cycle)):
        if of in named and limit:
            found.append(Metric(name=name, value=named[of].value / limit, unit="",
                                origin=named[of].origin, formula=f"{of} / {limit:g}"))
    misses = figures.get("misses", "cycles")
    if misses and limits.refill_cycles and misses[0][1]:
        found.append(Metric(
            name="refill_share", unit="", origin=misses[1],
            value=misses[0][0] * limits.refill_cycles / misses[0][1],
            formula=f"misses x {limits.refill_cycles:g} / cycles"))
    return tuple(found)


def classify(metrics: Mapping[str, Metric], overhead_share: float | None = None) -> Bottleneck:
    """Return what holds the span up, by shares of the core's limits.

    Parameters
    ----------
    metrics : mapping of str to Metric
        From `derive_metrics`, by name.
    overhead_share : float, optional
        Share of the inference that no layer accounts for.

    Returns
    -------
    Bottleneck
        The first that holds: overhead, cache, bandwidth, compute, stalled.
    """
    if overhead_share is not None and overhead_share >= OVERHEAD_SHARE:
        return Bottleneck(kind="overhead", severity=overhead_share, origin="measured",
                          evidence=f"{overhead_share:.1%} outside layers, >= {OVERHEAD_SHARE:.0%}")
    rules = (("cache", "refill_share", CACHE_SHARE, "of cycles refill the data cache"),
             ("cache", "memory_share", CACHE_SHARE, "of cycles wait for memory"),
             ("bandwidth", "bandwidth_of_limit", BANDWIDTH_SHARE, "of sustained bandwidth"),
             ("compute", "mac_utilisation", COMPUTE_SHARE, "of MAC slots used"),
             ("compute", "ipc_of_limit", COMPUTE_SHARE, "of issue slots used"))
    for _, name, _, text in rules:
        if name in metrics and metrics[name].value > MOST_SHARE:
            return Bottleneck(kind="", severity=0.0, origin=metrics[name].origin,
                              evidence=f"{metrics[name].value:.0%} {text} cannot be: what was "
                                       "counted and what was modelled are not of the same code")
    for kind, name, threshold, text in rules:
        metric = metrics.get(name)
        if metric is not None and metric.value >= threshold:
            return Bottleneck(kind=kind, severity=min(metric.value, 1.0), origin=metric.origin,
                              evidence=f"{metric.value:.1%} {text}, >= {threshold:.0%}")
    used, work = metrics.get("ipc_of_limit"), metrics.get("work_share")
    if used is not None and work is not None and COMPUTE_SHARE <= work.value <= MOST_SHARE:
        return Bottleneck(kind="compute", severity=min(work.value, 1.0), origin=work.origin,
                          evidence=f"{work.value:.1%} of cycles are the core's own work, beats of "
                                   f"vectors and latencies with it, >= {COMPUTE_SHARE:.0%}; "
                                   f"{used.value:.1%} of issue slots used")
    if used is not None:
        return Bottleneck(kind="stalled", severity=1 - min(used.value, 1.0), origin=used.origin,
                          evidence=f"{used.value:.1%} of issue slots used, < {COMPUTE_SHARE:.0%}; "
                                   "no miss or bandwidth explains it")
    macs = metrics.get("mac_utilisation")
    told = f"{macs.value:.0%} of MAC slots used; " if macs is not None else ""
    missing = [name for name in ("cycles", "instructions") if name not in metrics]
    return Bottleneck(kind="", severity=0.0, origin="modelled", evidence=told + (
        f"nothing counts {' or '.join(missing)}" if missing else "the core's limits are not known"))
