"""Whole networks on the N6 beside published times, with what the accuracy report promises."""

import pytest

from benchmarks.accuracy import npu_networks as report
from benchmarks.accuracy.npu_rebuilt import compare_compute_cycles
from benchmarks.accuracy.npu_snn import compare_dense, compare_elementwise, compare_phases
from benchmarks.accuracy.npu_speech import list_speech_cases


@pytest.fixture(scope="module")
def cases():
    return report.list_cases()


@pytest.mark.parametrize("predictor", [report.say_as_is, report.add_epoch_cost])
def test_networks_of_families_left_out(cases, predictor):
    error = report.median_error_pct(report.leave_family_out(cases, predictor))
    baseline = report.median_error_pct(report.leave_family_out(cases, report.say_baseline))
    flattered = report.median_error_pct(report.flatter_baseline(cases))
    assert error < 4
    assert error < min(baseline, flattered)


def test_time_is_on_the_npu_on_the_host_or_handing_over(cases):
    for case in cases:
        assert 0 < case.npu_share < 1
        assert 0 < 1 - case.npu_share - case.host_share < 1


def test_own_chaining_gives_the_compilers_cycles():
    pairs = compare_compute_cycles()
    assert all(ours == theirs for ours, theirs in pairs)


def test_networks_by_the_older_release():
    older = report.list_cases("neural-art@2.0.0")
    assert report.median_error_pct([(case, case.predicted_ms) for case in older]) < 6


def test_dense_layers_of_another_tool_run_at_the_flashs_pace():
    dense = [phases for phases in compare_phases() if phases[0].startswith("dense")]
    assert len(dense) == 2
    for _, _, theirs, ours in dense:
        assert ours["core"] == pytest.approx(theirs["core"], rel=0.02)


def test_dense_layers_on_the_host_run_without_vectors():
    dense = compare_dense()
    assert sum(count for _, count, _, _ in dense) == 53  # every dense layer of the table
    for _, _, theirs, ours in dense:
        assert ours == pytest.approx(theirs, rel=0.35)


def test_elementwise_layers_on_the_host_run_with_vectors():
    """Loops of single bytes would be 3 to 35 times too dear for all but sums and products."""
    for what, count, theirs, ours in compare_elementwise():
        assert count >= 9, what
        assert theirs / 3 < ours < theirs * 1.5, what


def test_speech_networks_of_one_column():
    for case in list_speech_cases():
        said = case.prediction
        assert said.time_us / 1e3 == pytest.approx(case.measured_ms, rel=0.15)
        if "no EC" in case.name:
            host = sum(epoch.pre_cpu_cycles + epoch.post_cpu_cycles for epoch in said.tasks)
            assert host == pytest.approx(case.measured_cpu_cycles, rel=0.05)
