"""The set-up a measurement claims: from its header, and which faults that rules out."""

import dataclasses
import re
import shutil

import numpy as np
import pytest
from made_faults import diagnose, measure_fault, only_cycles

from calibration.importers import import_log
from calibration.measurement.measurement import TIMED_BY_MS
from calibration.measurement.sample import Sample
from twin.attribution.diagnosis.diagnosis import BEGINS, SLOW_SERVED
from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.faults import (
    COUNTER,
    DECLARED,
    FIRST_RUN,
    NETWORK,
    OTHER_WORK,
)
from twin.attribution.diagnosis.setup import (
    deploy_measured,
    find_model,
    find_runtime,
    is_stand_in,
    measured_runtime,
    read_build,
    unread_build,
)
from twin.attribution.measured import find_unsteady, time_by_log
from twin.deployment.deploy import deploy
from twin.errors import BuildRefusedError, UsageError
from twin.network.rewrites.channels import repeat_channels, trace_channels
from twin.pricing.inference import predict
from twin.program.image.compile.build import build_firmware, find_missing
from twin.program.image.compile.permission import building_refused
from twin.program.image.compile.ports import load_port


@pytest.fixture(scope="module")
def deployment():
    return deploy("kws", "nucleo_h7a3zi_q", runtime="cmsis-nn")


def test_levels_the_header_rules_out_are_no_faults(deployment):
    own = deploy("kws", "nucleo_h7a3zi_q", runtime="firmware@Os")
    right = list_faults(deployment)[0]
    others = {"-O0", *(f"built with -{level}" for level in ("O1", "O3", "Os"))}
    for level, out in (("-Os", {"optimisation", "-O0"}), ("-O2", others),
                       ("-O0", {"optimisation"})):
        told = measure_fault(deployment, right, runtime="firmware",
                             environment=(("compiler", f"gcc 12.2.1 {level}"),))
        assert read_build(own, told) == out


def test_the_level_of_optimisation_is_read_from_the_header(deployment):
    right = list_faults(deployment)[0]
    small = measure_fault(deployment, right, runtime="firmware",
                          environment=(("compiler", "gcc 12.2.1 -Os"),))
    assert measured_runtime(small) == "firmware@Os"
    unread = measure_fault(deployment, right, runtime="firmware",
                           environment=(("compiler", "gcc 12.2.1 -O0"),))
    own = deploy("kws", "nucleo_h7a3zi_q", runtime="firmware")
    assert measured_runtime(unread) == "firmware" and "-O0" in unread_build(own, unread)
    assert unread_build(own, small) == "" == unread_build(deployment, unread)


def test_the_setup_is_taken_from_the_header(deployment):
    measured = measure_fault(deployment, list_faults(deployment)[0])
    found, remark = deploy_measured(measured)
    assert remark == "" and found.runtime.identity == "cmsis-nn@6.0"
    unknown = dataclasses.replace(measured, header=dataclasses.replace(
        measured.header, runtime="somebody-elses@3"))
    found, remark = deploy_measured(unknown)
    assert "stands in for somebody-elses@3" in remark and is_stand_in(found, unknown)
    some = dataclasses.replace(unknown, header=dataclasses.replace(
        unknown.header, runtime="tflm"))
    found, remark = deploy_measured(some)
    assert found.runtime.name == "tflm-cmsis-nn" and "stands in for tflm" in remark
    assert not is_stand_in(found, some)  # as one that --runtime states
    esp_nn = dataclasses.replace(some, header=dataclasses.replace(some.header, runtime="esp-nn"))
    ansi, _ = deploy_measured(esp_nn, board="esp32s3_devkitc", runtime="esp-nn-ansi")
    assert is_stand_in(ansi, esp_nn)  # other kernels, though the name begins alike
    xtensa, _ = deploy_measured(some, board="esp32s3_devkitc")
    assert xtensa.runtime.name == "tflm-esp-nn"  # CMSIS-NN does not run there
    assert find_runtime(some, "kws", "esp32s3_devkitc") == "tflm-esp-nn"
    assert find_runtime(some, "kws", "rpi_pico") == "tflm-cmsis-nn"
    other = dataclasses.replace(measured, header=dataclasses.replace(
        measured.header, board="stm32n6570_dk", runtime="neural-art, atonn-v1.0.0-rc0"))
    found, remark = deploy_measured(other)
    assert remark == "" and found.runtime.name == "neural-art" and not is_stand_in(found, other)
    stated = dataclasses.replace(measured, samples=(), header=dataclasses.replace(
        measured.header, clocks_hz=(("cpu", 140e6),)))  # times alone: --cpu-clock
    assert deploy_measured(stated)[0].board.core_clock.frequency_hz == 140e6
    assert deploy_measured(stated, clock_hz=100e6)[0].board.core_clock.frequency_hz == 100e6
    for board, said in (("not known", "which board .* --board"), ("mine", "'mine': .*-b FILE")):
        other = dataclasses.replace(measured, header=dataclasses.replace(
            measured.header, board=board))
        with pytest.raises(UsageError, match=said):
            deploy_measured(other)
    with pytest.raises(UsageError, match="no network of `twin models`"):
        find_model("mine", None)
    with pytest.raises(UsageError, match="SHA-256"):
        find_model("kws", "0" * 64)


def _with_clock(measurement, said):
    return dataclasses.replace(measurement, header=dataclasses.replace(
        measurement.header, environment=(("clock_by_host", said),)))


@pytest.mark.parametrize(("said", "kind", "least"), [
    ("0.87767 +- 0.11871", DECLARED, 0.6), ("0.97000 +- 0.05000", DECLARED, 0.6),
    ("0.66667 +- 0.00100", "clock", 0.8), ("0.40000 +- 0.02000", "clock", 0.8)])
def test_a_clock_counts_as_surely_as_its_check_states(said, kind, least):
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    right = only_cycles(measure_fault(deployment, list_faults(deployment)[0], seed=1,
                                      clocks_hz=(("cpu", 120e6),)))
    found = diagnose(deployment, _with_clock(right, said))
    assert next(iter(found.kinds)) == kind and found.stated > least, found.kinds
    assert all(one.fault.clock_log is None or one.fault.clock_log < 0 for one in found.findings)


def test_a_counter_that_counts_double_is_no_clock_the_part_cannot_have():
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    right = only_cycles(measure_fault(deployment, list_faults(deployment)[0], seed=1,
                                      clocks_hz=(("cpu", 120e6),)))
    double = dataclasses.replace(right, samples=tuple(
        dataclasses.replace(one, value=2 * one.value) for one in right.samples))
    found = diagnose(deployment, _with_clock(double, "2.00000 +- 0.00100"))
    assert next(iter(found.kinds)) == COUNTER and found.stated > 0.8, found.kinds
    assert not any("240" in one.fault.name for one in found.findings)


def _repeat(measurement, factors):
    return dataclasses.replace(measurement, samples=tuple(
        dataclasses.replace(one, run=run, value=round(one.value * factor))
        for run, factor in enumerate(factors) for one in measurement.samples))


def test_a_step_of_the_level_is_no_interrupts():
    """Slower from run 5 of 10 on; what is not significant is not printed as zero."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    random = np.random.default_rng(3)
    right = only_cycles(measure_fault(deployment, list_faults(deployment)[0], seed=1,
                                      clocks_hz=(("cpu", 120e6),)))
    noise = 1 + random.normal(0, 1e-4, 10)
    found = diagnose(deployment, _repeat(right, noise * np.repeat([1.0, 1.3], 5)))
    assert next(iter(found.kinds)) == OTHER_WORK, found.kinds
    # A core's own cycles do not grow where its clock slows down; those of another timer do.
    assert found.verdict.fault.name == BEGINS and "clock" not in found.remedy
    timed = dataclasses.replace(right, samples=tuple(dataclasses.replace(
        one, counter="latency", unit="us", clock=None, value=one.value / 120)
        for one in right.samples))
    late = diagnose(deployment, dataclasses.replace(timed, samples=tuple(
        dataclasses.replace(one, run=run, value=one.value * factor)
        for run, factor in enumerate(noise * np.repeat([1.0, 1.3], 5)) for one in timed.samples)))
    assert late.verdict.fault.kind == "throttling"
    assert late.verdict.fault.name == "the clock slows down during the runs"
    assert any("+30.0% from run 5 on of 10 runs" in text for text in found.observations)
    mixed = diagnose(deployment, _repeat(right, noise * np.array([1, 1.3] * 5)))
    assert mixed.kinds[OTHER_WORK] < 0.1
    assert any("no drift over the runs that is more than chance" in text
               for text in mixed.observations)


@pytest.fixture(scope="module")
def stepping():
    """A board whose runs take 12 % longer from run 10 of 20 on, and what it was deployed as."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    right = only_cycles(measure_fault(deployment, list_faults(deployment)[0], seed=1, scatter=0.01,
                                      clocks_hz=(("cpu", 120e6),)))
    noise = 1 + np.random.default_rng(3).normal(0, 1e-4, 20)
    return deployment, _repeat(right, noise * np.repeat([1.0, 1.12], 10))


def _count_interrupts(measurement, counts):
    return dataclasses.replace(measurement, samples=(*measurement.samples, *(
        Sample(run=run, layer=None, counter="interrupts", value=float(count), unit="events",
               clock=None) for run, count in enumerate(counts))))


def test_interrupts_counted_in_the_slow_runs_alone_are_the_cause(stepping):
    """As many in each run, or in others than the slow ones, they are not."""
    deployment, step = stepping
    served = diagnose(deployment, _count_interrupts(step, [0] * 10 + [144] * 10))
    assert next(iter(served.kinds)) == "interrupts" and served.stated > 0.95, served.kinds
    assert served.verdict.fault.name == SLOW_SERVED and "--mask" in served.remedy
    assert served.declared_ratio == pytest.approx(1, abs=0.03)  # the runs without any
    assert any(text.startswith("0 to 144 interrupts a run") for text in served.observations)
    for counts in ([0, 144] * 10, [72] * 20):
        other = diagnose(deployment, _count_interrupts(step, counts))
        assert next(iter(other.kinds)) == OTHER_WORK, (counts, other.kinds)


def test_runs_that_interrupts_hit_may_come_in_order_by_chance(stepping):
    """Of twelve runs the later ones are hit more, with a chance of 0.6 %, but lie on no line."""
    deployment, step = stepping
    right = dataclasses.replace(step, samples=tuple(
        dataclasses.replace(one, run=0) for one in step.samples if one.run == 0))
    hit = 1 + np.array([0, 1, 0, 3, 2, 0, 5, 4, 9, 3, 12, 8]) / 100
    quiet = _repeat(right, 1 + np.random.default_rng(5).normal(0, 1e-4, 12))
    found = diagnose(deployment, _repeat(right, hit), healthy=quiet)
    assert "drift: " in " ".join(found.observations) and "from the first to the last" in " ".join(
        found.observations)
    assert next(iter(found.kinds)) == "interrupts", found.kinds
    line = diagnose(deployment, _repeat(right, np.linspace(1, 1.1, 12)), healthy=quiet)
    assert next(iter(line.kinds)) == OTHER_WORK and line.stated > 0.9, line.kinds


def test_one_step_has_one_figure_and_one_remedy(stepping):
    deployment, step = stepping
    found = diagnose(deployment, step)
    warnings = find_unsteady(step)
    assert [one.name for one in warnings] == ["step"]
    assert "+12.0% from run 10 on" in warnings[0].evidence
    assert f"step: {warnings[0].evidence}" in found.observations
    for remedy in (found.remedy, warnings[0].remedy):
        assert "mask" in remedy and "temperature" not in remedy


@pytest.mark.parametrize("runs", [6, 20])
def test_a_first_run_that_alone_is_slow_is_no_interrupts(runs):
    """As every log of TFLite Micro begins: caches and allocation are cold in it."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    right = only_cycles(measure_fault(deployment, list_faults(deployment)[0], seed=1, scatter=0.01,
                                      clocks_hz=(("cpu", 120e6),)))
    noise = 1 + np.random.default_rng(3).normal(0, 1e-3, runs)
    cold = diagnose(deployment, _repeat(right, noise * np.array([1.5] + [1.0] * (runs - 1))))
    assert next(iter(cold.kinds)) == FIRST_RUN and cold.stated > 0.7, cold.kinds
    assert "first run alone is slow, +50 %" in cold.verdict.fault.name
    assert "of the others measured is 1.0" in cold.remedy and "--warmup" in cold.remedy
    assert cold.declared_ratio == pytest.approx(1, abs=0.03)
    for factors in (noise, noise * np.where(np.arange(runs) == 3, 1.5, 1.0)):
        assert FIRST_RUN not in diagnose(deployment, _repeat(right, factors)).kinds


def test_no_other_library_stands_in_where_building_is_refused(deployment):
    """A kept diagnosis asked again without a compiler would have another verdict."""
    told = measure_fault(deployment, list_faults(deployment)[0], runtime="firmware",
                         environment=(("compiler", "gcc 12.2.1 -O2"),))
    with building_refused("accepted: --build"), pytest.raises(BuildRefusedError, match="--build"):
        deploy_measured(told)


@pytest.mark.skipif(bool(find_missing("nucleo_l4r5zi")), reason="needs compiler and make")
def test_a_log_of_our_firmware_may_be_of_another_width():
    """A folder our firmware sent says its network; a log of a profiler only lists operators."""
    own = deploy("kws", "nucleo_l4r5zi", runtime="firmware")
    half = deploy(repeat_channels(trace_channels(own.graph), 0.5), own.board, runtime="firmware")
    planted = dataclasses.replace(list_faults(own)[0], deployment=half)
    sent = measure_fault(own, planted, runtime="firmware")
    assert NETWORK not in diagnose(own, sent).kinds
    log = dataclasses.replace(sent, header=dataclasses.replace(
        sent.header, environment=(
            ("operators", ",".join(layer.op for layer in own.graph.layers)),)))
    verdict = diagnose(own, log).verdict.fault
    assert (verdict.kind, verdict.name) == (NETWORK, "a network 0.5 x as wide")


def test_milliseconds_a_log_was_imported_against_are_evidence_of_its_clock(tmp_path):
    """They say 60 MHz; --anyway took its ticks for those of 120 MHz, at which nothing is odd."""
    own = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    (log := tmp_path / "log").write_text("".join(
        f"{layer.op.upper()} took {layer.cycles:.0f} ticks ({layer.cycles / 60e3:.0f} ms).\n"
        for layer in predict(own).layers))
    read = import_log("tflm", log, board="nucleo_l4r5zi", model="kws", clock_hz=120e6,
                      anyway=True).measurement
    timed = time_by_log(read)
    warning = timed.header.facts[TIMED_BY_MS]
    clock = re.search(r"ticks ((59|60)\.\d MHz)", warning)
    assert clock and "--anyway" in warning
    assert time_by_log(timed) == timed
    assert diagnose(own, read).verdict.fault.kind == DECLARED
    found = diagnose(own, timed)
    assert found.verdict.fault.kind == "clock" and found.verdict.fault.name == f"cpu at {clock[1]}"
    agreed = import_log("tflm", log, board="nucleo_l4r5zi", model="kws", clock_hz=60e6).measurement
    assert time_by_log(agreed) == agreed


@pytest.mark.skipif(bool(find_missing("nucleo_l4r5zi")), reason="needs compiler and make")
def test_an_image_beside_the_measurement_is_read_where_none_can_be_built(tmp_path, monkeypatch):
    """Without it CMSIS-NN stood in, and what had been sure was not."""
    own = deploy("kws", "nucleo_l4r5zi", runtime="firmware")
    built = build_firmware(own.graph, load_port("nucleo_l4r5zi"), tmp_path / "firmware",
                           deployment=own)
    sent = measure_fault(own, list_faults(own)[0], runtime="firmware", environment=(
        ("compiler", built.compiler), ("port", "nucleo_l4r5zi")))
    (tools := tmp_path / "tools").mkdir()
    (tools / "arm-none-eabi-objdump").symlink_to(shutil.which("arm-none-eabi-objdump"))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path / "images"))
    assert "make is not installed" in deploy_measured(sent)[1]
    read, remark = deploy_measured(sent, tmp_path / "warm")
    assert remark == "" and read.runtime.identity == own.runtime.identity
    found = diagnose(read, sent)
    assert found.verdict.fault.kind == DECLARED and found.declared_ratio == pytest.approx(1, 0.01)
    listed = {one.fault.kind: one.fault for one in found.findings}
    assert listed["SIMD"].versus is not None  # which needs no image of its own
    assert listed["placement"].versus is not None and "optimisation" not in listed
    _, remark = deploy_measured(sent, tmp_path / "warm", weights="sram")
    assert "no image that is there is of this deployment" in remark
