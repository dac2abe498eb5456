"""Counters become metrics, each saying whether it was measured, simulated or modelled.

A metric made of several figures is as far from silicon as the farthest of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen

ORIGINS = ("measured", "simulated", "modelled")
"""From silicon, from an emulated board, from a prediction; in this order of distance."""

OVERHEAD_SHARE = 0.25
CACHE_SHARE = 0.30
BANDWIDTH_SHARE = 0.70
COMPUTE_SHARE = 0.70
"""Thresholds of the bottleneck classes: shares of the span, and of what core and memory can do."""

MOST_SHARE = 1.1
"""A share of a limit above this cannot be; a tenth is what a modelled figure may be off by."""

_TABLES = read_yaml_once(Path(__file__).with_name("counters.yaml"))

ALIASES: Mapping[str, Sequence[str]] = _TABLES["aliases"]
"""Names a figure goes by."""


@frozen
class Limits:
    """What a core and its memories can do at most; None is not known.

    Parameters
    ----------
    max_ipc
        Instructions per cycle.
    macs_per_cycle
        Multiply-accumulates per cycle.
    bytes_per_cycle
        Sustained, between the core and the memory of weights or arena, whichever is slower.
    refill_cycles
        Cost of one data-cache miss.
    """

    max_ipc: float | None = None
    macs_per_cycle: float | None = None
    bytes_per_cycle: float | None = None
    refill_cycles: float | None = None


@frozen
class Figure:
    """A number and where it comes from, one of `ORIGINS`."""

    value: float
    origin: str


@frozen
class Metric:
    """A derived figure.

    Parameters
    ----------
    origin
        One of `ORIGINS`.
    """

    name: str
    value: float
    unit: str
    origin: str
    formula: str


@frozen
class Bottleneck:
    """What holds a layer or a network up.

    Parameters
    ----------
    kind
        "cache", "bandwidth", "stalled", "compute" or "overhead"; "" when not known.
    severity
        Share of the span or of the limit the evidence gives, 0 to 1.
    evidence
        Figures it rests on, with their threshold.
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
        values = {**{name: float(sum(sign * values[term] for term, sign in terms.items()))
                     for name, terms in _TABLES["sums"].items() if values.keys() >= terms.keys()},
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


def derive_metrics(figures: Figures, limits: Limits) -> tuple[Metric, ...]:
    """Return every metric the figures allow.

    Parameters
    ----------
    figures
        Of one layer or of the network, one inference.

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
    for name, ratio in _TABLES["ratios"].items():
        pair = figures.get(ratio["of"], ratio["by"])
        if pair and pair[0][1]:
            found.append(Metric(name=name, unit=ratio.get("unit", ""), origin=pair[1],
                                value=ratio.get("factor", 1.0) * pair[0][0] / pair[0][1],
                                formula=f"{ratio['of']} / {ratio['by']}"))
    named = {metric.name: metric for metric in found}
    for name, of, limit in (("ipc_of_limit", "ipc", limits.max_ipc),
                            ("macs_of_limit", "macs_per_cycle", limits.macs_per_cycle),
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
    metrics
        From `derive_metrics`, by name.
    overhead_share
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
             ("compute", "macs_of_limit", COMPUTE_SHARE, "of MAC slots used"),
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
                          evidence=f"{work.value:.1%} of cycles are the core's own work "
                                   f"(>= {COMPUTE_SHARE:.0%}; vector beats and latencies "
                                   f"included); {used.value:.1%} of issue slots used")
    if used is not None:
        return Bottleneck(kind="stalled", severity=1 - min(used.value, 1.0), origin=used.origin,
                          evidence=f"{used.value:.1%} of issue slots used, < {COMPUTE_SHARE:.0%}; "
                                   "no miss or bandwidth explains it")
    macs = metrics.get("macs_of_limit")
    usage = f"{macs.value:.0%} of MAC slots used; " if macs is not None else ""
    missing = [name for name in ("cycles", "instructions") if name not in metrics]
    return Bottleneck(kind="", severity=0.0, origin="modelled", evidence=usage + (
        f"nothing counts {' or '.join(missing)}" if missing else "the core's limits are not known"))
