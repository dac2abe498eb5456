"""Findings are made where a symptom was planted and not elsewhere; metrics keep their origin."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.measurement.counters import Figures, Limits, Metric, classify, derive_metrics
from calibration.measurement.quality import (
    find_checksum_errors,
    find_clock_error,
    find_drift,
    find_first_run,
    find_modes,
    find_preemption,
    find_spread,
    find_wraps,
    judge_runs,
    median_interval,
    wants_more_runs,
)


def noise(seed: int, runs: int = 100, sd: float = 10.0) -> np.ndarray:
    return 10_000 + np.random.default_rng(seed).normal(0, sd, runs)


def test_planted_drift_is_found_and_noise_is_not():
    assert all(find_drift(noise(seed)) is None for seed in range(20))
    for seed in range(20):
        found = find_drift(noise(seed) + np.linspace(0, 200, 100))  # 2 % over the measurement
        assert found is not None and found.name == "drift" and not found.serious
    assert find_drift(noise(0) + np.linspace(0, 1000, 100)).serious
    assert find_drift(np.full(100, 5.0)) is None


def test_drift_is_the_change_from_the_first_run_to_the_last():
    # Eleven runs, ten steps of 0.9 % of the median: 9.0 %, not 9.9.
    found = find_drift([1000 + 9 * run for run in range(-5, 6)])
    assert found.evidence.startswith("+9.0% from the first to the last of 11 runs")
    mixed = [1000 + 9 * run for run in (-4, -3, -1, -2, 0, 1, 2, 3, 4)]
    assert find_drift(mixed) is None  # of nine runs, unless each is longer than the last
    assert find_drift(sorted(mixed)).evidence.startswith("+7.2% from the first")


def test_a_step_is_one_finding_with_the_size_of_the_step():
    for seed in range(20):
        values = noise(seed, 20) * np.repeat([1.0, 1.12], (12, 8))
        found = judge_runs(values)
        assert [one.name for one in found] == ["step", "spread"]
        assert "from run 12 on of 20 runs" in found[0].evidence and found[0].serious
        assert found[0].share == pytest.approx(0.12, abs=3e-3)
        assert "temperature" in found[0].remedy
        assert "no cycles" in judge_runs(values, cycles=True)[0].remedy


def test_planted_modes_are_found_and_noise_is_not():
    for seed in range(20):
        assert find_modes(noise(seed)) is None
        hit = np.random.default_rng(seed).random(100) < 0.2
        found = find_modes(noise(seed) + 120 * hit)
        assert found is not None and f"{hit.sum()} near" in found.evidence
    # equal values with two outliers: no mode has 5 % of the runs
    assert find_modes([100.0] * 98 + [150.0] * 2) is None
    assert find_modes(np.random.default_rng(0).exponential(1, 200) + 1000) is None


def test_first_run_and_spread():
    values = noise(1)
    assert find_first_run(values) is None
    values[0] = 12_000
    assert "+20" in find_first_run(values).evidence
    values[50] = 10_600  # a quarter of it: another run is off, too
    assert find_first_run(values) is None
    assert find_first_run(noise(2), first=15_000.0).remedy.startswith("Caches")
    assert find_spread(noise(3)) is None
    wide = np.where(np.arange(100) % 10, 100.0, 110.0)[::-1]
    assert find_spread(wide).evidence.startswith("p95 / p50 - 1 = 10.0%")
    assert [f.name for f in judge_runs(wide)] == ["bimodal", "spread"]
    assert judge_runs([]) == []


def test_wraps_clock_and_checksums():
    widths = {"dwt_cpi": 8, "cpu_cycles": 32}
    assert find_wraps(widths, 255) is None
    found = find_wraps(widths, 256)
    assert "dwt_cpi:" in found.evidence and "modulo 256 only" in found.evidence
    assert "modulo 256, 4294967296" in find_wraps(widths, 2.0**32).evidence
    assert find_wraps({"cpu_cycles": 64}, 1e30) is None
    assert find_clock_error(1.004, 0.001) is None
    assert find_clock_error(0.5, 0.001).serious
    assert find_clock_error(1.05, 0.03) is None, "within three times the uncertainty"
    assert find_checksum_errors(0, 10) is None
    assert "2 of 10" in find_checksum_errors(2, 10).evidence


def test_interval_of_the_median_covers_it():
    # 1000 draws of 30 exponential values, true median ln 2: about 95 % of intervals hold it
    random = np.random.default_rng(5)
    inside = sum(low <= np.log(2) <= high for low, high in
                 (median_interval(random.exponential(1, 30)) for _ in range(1000)))
    assert 930 <= inside <= 985
    assert not wants_more_runs(noise(1))
    assert wants_more_runs(random.exponential(1, 50) + 10)


MEASURED = {"cpu_cycles": 1000.0, "time_us": 10.0}
MODELLED = {"instructions": 900.0, "macs": 500.0, "bytes_moved": 200.0, "loads": 300.0,
            "stores": 50.0, "dcache_accesses": 350.0, "dcache_misses": 7.0}
LIMITS = Limits(max_ipc=1.0, macs_per_cycle=2.0, bytes_per_cycle=4.0,
                refill_cycles=20.0)


def metrics_of(measured=MEASURED, modelled=MODELLED, limits=LIMITS):
    figures = Figures().add(measured, "measured").add(modelled, "modelled")
    return {metric.name: metric for metric in derive_metrics(figures, limits)}


def test_at_least_eight_metrics_with_their_origin():
    metrics = metrics_of()
    assert len(metrics) >= 8 + 8
    assert {m.origin for m in metrics.values()} == {"measured", "modelled"}
    assert metrics["throughput"].value == pytest.approx(1e5)  # 1 / 10 us
    assert metrics["throughput"].origin == "measured"
    assert metrics["mac_rate"].value == pytest.approx(50)  # MMAC/s
    assert (metrics["ipc"].value, metrics["ipc"].origin) == (0.9, "modelled")
    assert metrics["refill_share"].value == pytest.approx(7 * 20 / 1000)
    measured = metrics_of({**MEASURED, "arm_pmu_inst_retired": 800.0})
    assert (measured["ipc"].value, measured["ipc"].origin) == (0.8, "measured")


PLATFORMS = {
    "Cortex-M0+ with XIP monitors": {"cpu_cycles": 1e6, "time_us": 8e3, "xip_hit": 9e5,
                                     "xip_access": 1e6},
    "Cortex-M4": {"cpu_cycles": 1e6, "time_us": 8e3, "dwt_cpicnt": 3, "dwt_lsucnt": 4},
    "STM32U5": {"cpu_cycles": 1e6, "time_us": 6e3, "icache_hit": 9e5, "icache_miss": 1e5},
    "Cortex-M55": {"cpu_cycles": 1e6, "inst_retired": 8e5, "ld_retired": 2e5, "l1d": 2e5,
                   "l1d_refill": 10.0},
    "host without counters": {"time_us": 120.0},
}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_has_eight_metrics(platform):
    """With nothing but the model file beside what the platform counts; no prediction at all."""
    nominal = {"macs": 2e6, "bytes_moved": 1e5}
    metrics = metrics_of(PLATFORMS[platform], nominal, Limits(macs_per_cycle=2.0))
    own = {name for name in PLATFORMS[platform] if name.startswith("dwt")}  # shown as they are
    reported = {"interrupts", "setup", "read_overhead"}  # by the firmware on every port
    assert len(metrics) + len(own) + len(reported) >= 8, sorted(metrics)
    assert all(metric.origin in ("measured", "modelled") for metric in metrics.values())
    if "code_miss_rate" in metrics:
        assert metrics["code_miss_rate"].value == pytest.approx(0.1)


@pytest.mark.parametrize(("change", "kind"), [
    ({"dcache_misses": 20.0}, "cache"),           # 20 x 20 / 1000 = 40 %
    ({"bytes_moved": 3000.0}, "bandwidth"),       # 3 of 4 bytes a cycle
    ({"instructions": 750.0}, "compute"),         # 75 % of the issue slots
    ({"instructions": 400.0}, "stalled"),
    ({"memory_cycles": 350.0}, "cache"),
])
def test_bottlenecks_by_shares_of_limits(change, kind):
    found = classify(metrics_of(modelled={**MODELLED, **change}))
    assert found.kind == kind and 0 < found.severity <= 1 and any(c in found.evidence for c in "<>")


@pytest.mark.parametrize(("instructions", "said"), [(698.0, "69.8% of issue slots used, < 70%"),
                                                    (702.0, "70.2% of issue slots used, >= 70%")])
def test_evidence_beside_a_limit_does_not_contradict_it(instructions, said):
    found = classify(metrics_of(modelled={**MODELLED, "instructions": instructions}))
    assert said in found.evidence


def test_a_core_busy_with_vector_beats_is_compute_bound():
    """A vector instruction holds the core for two cycles: few issue slots, and all of them work."""
    few = {**MODELLED, "instructions": 400.0}
    assert classify(metrics_of(modelled=few)).kind == "stalled"
    cycles = metrics_of(modelled=few)["cycles"].value
    found = classify(metrics_of(modelled={**few, "work_cycles": 0.98 * cycles}))
    assert found.kind == "compute" and "98.0% of cycles" in found.evidence
    assert found.origin == "modelled"
    idle = classify(metrics_of(modelled={**few, "work_cycles": 0.3 * cycles}))
    assert idle.kind == "stalled"


def test_overhead_and_ignorance():
    assert classify(metrics_of(), 0.4).kind == "overhead"
    slow = classify(metrics_of(modelled={**MODELLED, "instructions": 4000.0}))
    assert slow.kind == "" and "400% of issue slots used cannot be" in slow.evidence
    unknown = classify(metrics_of(modelled={}))
    assert unknown.kind == "" and "nothing counts instructions" in unknown.evidence
    assert "limits are not known" in classify(metrics_of(limits=Limits())).evidence


def of_shares(**shares):
    """Metrics of these values alone, each measured."""
    return {name: Metric(name=name, value=value, unit="", origin="measured", formula="f")
            for name, value in shares.items()}


@pytest.mark.parametrize(("shares", "kind", "severity", "evidence"), [
    ({"refill_share": 0.3}, "cache", 0.3, "30.0% of cycles refill the data cache, >= 30%"),
    ({"refill_share": 0.29, "memory_share": 0.3}, "cache", 0.3, "30.0% of cycles wait for memory"),
    ({"bandwidth_of_limit": 1.05}, "bandwidth", 1.0, "105.0% of sustained bandwidth, >= 70%"),
    ({"macs_of_limit": 0.7}, "compute", 0.7, "70.0% of MAC slots used, >= 70%"),
    ({"ipc_of_limit": 0.7, "macs_of_limit": 0.1}, "compute", 0.7, "70.0% of issue slots used"),
    ({"ipc_of_limit": 0.6, "work_share": 1.05}, "compute", 1.0, "105.0% of cycles are the core's"),
    ({"ipc_of_limit": 0.6, "work_share": 0.69}, "stalled", 0.4, "60.0% of issue slots used, < 70%"),
    ({"ipc_of_limit": 0.6, "work_share": 1.2}, "stalled", 0.4, "60.0% of issue slots used, < 70%"),
    ({"macs_of_limit": 1.11}, "", 0.0, "111% of MAC slots used cannot be: what was counted and"),
    ({"macs_of_limit": 0.2}, "", 0.0, "20% of MAC slots used; nothing counts cycles or instru"),
    ({"cycles": 9.0, "instructions": 8.0}, "", 0.0, "the core's limits are not known"),
    ({}, "", 0.0, "nothing counts cycles or instructions")])
def test_the_first_limit_that_is_reached_holds_a_span_up(shares, kind, severity, evidence):
    found = classify(of_shares(**shares))
    assert found.kind == kind and found.severity == pytest.approx(severity)
    assert found.evidence.startswith(evidence)
    reached = kind or "cannot be" in found.evidence
    assert found.origin == ("measured" if reached else "modelled")


def test_what_no_layer_accounts_for_comes_before_any_limit():
    found = classify(of_shares(refill_share=0.9), 0.25)
    assert (found.kind, found.severity, found.origin) == ("overhead", 0.25, "measured")
    assert found.evidence == "25.0% outside layers, >= 25%"
    assert classify(of_shares(refill_share=0.9), 0.24).kind == "cache"


def test_a_metric_of_several_figures_is_as_far_from_silicon_as_the_farthest():
    figures = Figures().add({"cpu_cycles": 100.0}, "measured").add(
        {"instructions": 80.0}, "simulated").add({"cpu_cycles": 999.0, "macs": 50.0}, "modelled")
    assert figures.get("cycles") == ([100.0], "measured")  # the nearest wins
    assert figures.get("cycles", "instructions") == ([100.0, 80.0], "simulated")
    assert figures.get("cycles", "instructions", "macs")[1] == "modelled"
    assert figures.get("cycles", "loads") is None
    named = {one.name: one for one in derive_metrics(figures, Limits(max_ipc=2.0))}
    assert (named["ipc"].value, named["ipc"].formula) == (0.8, "instructions / cycles")
    assert (named["ipc_of_limit"].value, named["ipc_of_limit"].formula) == (0.4, "ipc / 2")
    assert (named["cycles"].formula, named["macs"].formula) == ("counter", "model")
    assert "throughput" not in named and "macs_of_limit" not in named
    limited = {one.name: one for one in derive_metrics(
        figures.add({"bytes_moved": 200.0}, "modelled"),
        Limits(macs_per_cycle=2.0, bytes_per_cycle=8.0))}
    assert (limited["macs_of_limit"].value, limited["macs_of_limit"].origin) == (0.25, "modelled")
    assert limited["bandwidth_of_limit"].value == 0.25 and "ipc_of_limit" not in limited


def test_a_first_run_is_named_with_its_size_and_how_likely_it_is_by_chance():
    """Others 100 to 104 about 102: the farthest is 2 off, the first 10, so (2 / 10)^(5 - 1)."""
    found = find_first_run([112.0, 100.0, 101.0, 102.0, 103.0, 104.0])
    assert (found.name, found.size, found.run) == ("first_run", 10.0, 0)
    assert found.share == pytest.approx(10 / 102) and found.chance == pytest.approx(0.2**4)
    assert found.evidence == "the first run took 112, the others 102 (+9.8%)"
    assert found.remedy.endswith("make more warm-up runs (--warmup)")
    assert find_first_run([92.0, 100.0, 101.0, 102.0, 103.0, 104.0]).size == -10.0
    assert find_first_run([109.9, 100.0, 101.0, 102.0, 103.0, 104.0]) is None  # four times as far
    assert find_first_run([112.0, 100.0, 101.0, 102.0]) is None  # set against three
    apart = find_first_run([100.0, 100.0, 101.0, 102.0, 102.0], first=150.0)
    assert "warm-up" not in apart.remedy and apart.size == 49.0


@pytest.mark.parametrize(("waited", "median", "parts", "evidence"), [
    (None, 106.0, 100.0, "the median inference takes 1.06 times what the medians of its parts"),
    (0.04, 106.0, 100.0, "the median inference takes 1.06 times"), (None, 104.9, 100.0, None),
    (None, 100.0, 0.0, None), (None, 100.0, 120.0, None), (0.05, 100.0, 100.0, None),
    (0.06, 100.0, 100.0, "other programs had the processor for 6% of the time")])
def test_something_that_ran_in_between_is_in_no_part(waited, median, parts, evidence):
    found = find_preemption(waited, median, parts)
    if evidence is None:
        assert found is None
        return
    assert found.name == "preempted" and found.serious and found.evidence.startswith(evidence)
    assert found.remedy.startswith("End them" if "other" in evidence[:6] else "Mask interrupts")
