"""Whole networks on the N6 beside published times, with what the accuracy report promises."""

import pytest

from benchmarks.accuracy import npu_networks as report
from benchmarks.accuracy.npu_rebuilt import compare_compute_cycles
from benchmarks.accuracy.npu_snn import compare_dense, compare_elementwise, compare_phases
from benchmarks.accuracy.npu_speech import list_speech_cases
from twin.deployment.deploy import deploy
from twin.network.zoo.builder import Builder
from twin.pricing.inference import predict


@pytest.fixture(scope="module")
def cases():
    return report.list_cases()


@pytest.mark.parametrize("predictor", [report.say_as_is, report.add_epoch_cost])
def test_networks_of_families_left_out(cases, predictor):
    error = report.median_error_pct(report.leave_family_out(cases, predictor))
    baseline = report.median_error_pct(report.leave_family_out(cases, report.say_baseline))
    flattered = report.median_error_pct(report.flatter_baseline(cases))
    assert error < 4
    assert report.high_error_pct(report.leave_family_out(cases, predictor)) < 10
    assert error < min(baseline, flattered)


def test_time_is_on_the_npu_on_the_host_or_handing_over(cases):
    for case in cases:
        assert 0 < case.npu_share < 1
        assert 0 < 1 - case.npu_share - case.host_share < 1


def test_own_chaining_gives_the_compilers_cycles():
    pairs = compare_compute_cycles()
    assert len(pairs) > 5 and all(ours == theirs for ours, theirs in pairs)


def test_networks_by_the_older_release():
    older = report.list_cases("neural-art@2.0.0")
    assert report.median_error_pct([(case, case.predicted_ms) for case in older]) < 6


def plan_convolution(side, depth, outputs, kernel=3, stride=1, clipped=True, pooled=False):
    """The epochs of a convolution behind another one, after those of that one."""
    net = Builder("convolution", 1)
    x = net.conv(net.input((1, side, side, depth)), depth, 1,
                 activation="relu" if clipped else None)
    x = net.conv(x, outputs, kernel, stride)
    x = net.pool("max_pool_2d", x, 2) if pooled else x
    deployment = deploy(net.finish(x), "stm32n6570_dk", runtime="neural-art@3.0.0")
    return [step.task for step in deployment.plan.steps if step.task is not None][-1]


@pytest.mark.parametrize(("asked", "units", "cycles"), [
    # Tiny YOLOv2 by 2.0.0 and 3.0.0: 16-bit inputs; passes x elements of the frames a unit reads.
    ({"side": 112, "depth": 16, "outputs": 32, "clipped": False}, 2, 8 * 100_352),
    ({"side": 56, "depth": 32, "outputs": 64, "clipped": False}, 4, 16 * 25_088),
    ({"side": 28, "depth": 64, "outputs": 128, "clipped": False}, 4, 64 * 6_272),
    ({"side": 14, "depth": 128, "outputs": 256, "clipped": False}, 4, 256 * 1_568),
    # EfficientNetV2-B1 by 3.0.0: 48 channels by three units; 8-bit inputs read whole to stride.
    ({"side": 30, "depth": 48, "outputs": 192, "clipped": False}, 3, 96 * 7_200),
    ({"side": 60, "depth": 32, "outputs": 128, "stride": 2}, 4, 16 * 28_800),
])
def test_dense_windows_pass_as_often_as_compiled_programs_say(asked, units, cycles):
    work = next(unit for unit in plan_convolution(**asked).units if unit.kind == "CONV_ACC")
    assert (work.count, work.compute_cycles) == (units, cycles)


def test_a_maximum_without_padding_shares_the_epoch():
    fused = plan_convolution(56, 32, 64, pooled=True)
    assert [unit.kind for unit in fused.units].count("POOL_ACC") == 1
    assert sum(one.bytes for one in fused.transfers if one.direction == "out") == 28 * 28 * 64


@pytest.mark.parametrize(("outputs", "kernel", "core_cycles"), [
    (16, 3, 53_804), (32, 3, 106_920), (64, 3, 212_980), (32, 5, 108_033), (32, 1, 105_738),
    (32, 7, 114_021 + 106_483 + 105_855)])
def test_one_convolution_on_silicon(outputs, kernel, core_cycles):
    """MCU cycles at 800 MHz, 64x64x3 and a mean, 2.2.0 on an N6 (github.com/Magnus3327/
    stm32n6-edge-ai-benchmarks, Output/Output_Baseline)."""
    net = Builder("convolution", 1)
    x = net.conv(net.input((1, 64, 64, 3)), outputs, kernel)
    said = predict(deploy(net.finish(x), "stm32n6570_dk", runtime="neural-art@3.0.0"))
    core_us = sum(task.run.core_npu_cycles for task in said.tasks if task.kind == "hw") / 1e3
    assert core_us == pytest.approx(core_cycles / 800, rel=0.05)


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
    compared = compare_elementwise()
    assert len(compared) > 3
    for what, count, theirs, ours in compared:
        assert count >= 9, what
        assert theirs / 3 < ours < theirs * 1.5, what


def test_speech_networks_of_one_column():
    cases = list_speech_cases()
    assert len(cases) == 3 and any("no EC" in one.name for one in cases)
    for case in cases:
        said = case.prediction
        assert said.time_us / 1e3 == pytest.approx(case.measured_ms, rel=0.15)
        if "no EC" in case.name:
            host = sum(epoch.pre_cpu_cycles + epoch.post_cpu_cycles for epoch in said.tasks)
            assert host == pytest.approx(case.measured_cpu_cycles, rel=0.05)
