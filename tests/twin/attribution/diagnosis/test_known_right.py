"""A measurement known to be right: refused where it was taken otherwise; one image, one build."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from made_faults import diagnose
from made_measurements import measure

from calibration.measurement.sample import Sample
from twin.attribution.diagnosis.again import vary_clock
from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.faults import COUNTER, ONE_FACTOR
from twin.attribution.diagnosis.setup import BUILT_KINDS, SAME_IMAGE, read_build, require_alike
from twin.deployment.deploy import deploy
from twin.errors import NotTheSameError
from twin.pricing.inference import predict

ALIKE = {"compiler": "gcc 12.2.1 -O2", "firmware_sha256": "a" * 64}


@pytest.fixture(scope="module")
def deployment():
    return deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")


@pytest.fixture(scope="module")
def measured(deployment):
    return measure(predict(deployment), model="kws", runtime="firmware",
                   environment=tuple(ALIKE.items()))


def tell(measurement, environment=None, **header):
    told = header | ({} if environment is None else {
        "environment": tuple((ALIKE | environment).items())})
    return dataclasses.replace(measurement, header=dataclasses.replace(
        measurement.header, **told))


@pytest.mark.parametrize(("other", "said"), [
    ({"environment": {"compiler": "gcc 12.2.1 -Os"}},
     "compiler is gcc 12.2.1 -Os, of the measurement to diagnose gcc 12.2.1 -O2"),
    ({"runtime": "tflm"}, "runtime is tflm, of the measurement to diagnose firmware"),
    ({"clocks_hz": (("cpu", 48e6),)},
     "clocks_hz cpu is 48 MHz, of the measurement to diagnose 120 MHz")])
def test_another_set_up_is_refused_by_key_and_both_values(measured, other, said):
    with pytest.raises(NotTheSameError, match=said):
        require_alike(tell(measured, **other), measured, Path("bad"), Path("good"))


def test_the_folder_itself_is_refused_and_another_image_warned_of(measured):
    with pytest.raises(NotTheSameError, match="is the measurement to diagnose itself"):
        require_alike(measured, measured, Path("bad"), Path("x/../bad"))
    moved = tell(measured, {"firmware_sha256": "b" * 64})
    assert "another image" in require_alike(moved, measured, Path("bad"), Path("good"))
    assert require_alike(measured, measured, Path("bad"), Path("good")) == ""


def test_one_image_rules_out_what_is_built_in(deployment, measured):
    slow = dataclasses.replace(measured, samples=tuple(
        dataclasses.replace(one, value=one.value * 2) for one in measured.samples))
    found = diagnose(deployment, slow, healthy=measured)
    assert not {part for kind in found.kinds for part in kind.split(" and ")} & BUILT_KINDS
    assert SAME_IMAGE in found.observations
    linked = tell(measured, {"firmware_sha256": "b" * 64})
    assert BUILT_KINDS & set(
        diagnose(deployment, slow, healthy=linked).kinds)


def test_one_run_does_not_tell_how_well_runs_repeat(deployment, measured):
    fast = dataclasses.replace(measured, samples=tuple(
        dataclasses.replace(one, value=round(one.value * 1.005)) for one in measured.samples))
    found = diagnose(deployment, fast, healthy=measured)
    assert found.repeats is None
    assert "within 0.01 %" not in found.remedy
    if found.verdict.fault.kind == "as declared":
        assert "not known from a single one" in found.remedy


def test_a_level_the_header_names_rules_out_the_others(measured):
    own = deploy("kws", "nucleo_l4r5zi", runtime="firmware@O2")
    faults = [one for one in list_faults(own) if one.kind in ("-O0", "optimisation")]
    for level, left in (("O0", {"built without optimisation"}), ("O2", set()),
                        ("O3", {"built with -O3"})):
        out = read_build(own, tell(measured, {"compiler": f"gcc 12.2.1 -{level}"}))
        assert {one.name for one in faults if not {one.kind, one.name} & out} == left


def tick(deployment, measured, factor=1.0, stated_hz=None):
    """A log in ticks of the stated clock, of what the core takes at its own, 0.2 % off by layer."""
    hertz, random = stated_hz or deployment.board.core_clock.frequency_hz, np.random.default_rng(4)
    return dataclasses.replace(measured, header=dataclasses.replace(
        measured.header, board=deployment.board.name, runtime=deployment.runtime.identity,
        clocks_hz=(("cpu", hertz), ("timer", hertz)), environment=()), samples=tuple(
            Sample(run=run, layer=layer.index, counter="timer_ticks", unit="ticks", clock="timer",
                   value=round(factor * layer.time_us * hertz / 1e6
                               * np.exp(random.normal(0, 0.002))))
            for run in range(3) for layer in predict(deployment).layers))


@pytest.mark.parametrize(("board", "kinds"), [
    ("nucleo_h7a3zi_q", {COUNTER, "clock"}),  # its flash keeps its wait states
    ("nucleo_l4r5zi", {"clock"})])
def test_half_a_clock_is_found_beside_a_run_at_the_whole(measured, board, kinds):
    """Its factor is exact: beside a healthy run it explains times as well as a counter does."""
    deployment = deploy("kws", board, runtime="tflm-cmsis-nn@2026")
    hertz = deployment.board.core_clock.frequency_hz
    half = deployment.replace({"clocks.cpu.frequency_hz": hertz / 2})
    found = diagnose(deployment, tick(half, measured, stated_hz=hertz),
                     healthy=tick(deployment, measured))
    assert {one.fault.kind for one in found.members} == kinds
    assert f"cpu at {hertz / 2e6:g} MHz" in {one.fault.name for one in found.members}
    if len(kinds) > 1:
        assert found.answer == ONE_FACTOR and len(found.not_distinguishable) == 2
        assert "PLL" in found.remedy and "counter's prescaler" in found.remedy
        assert "host's clock" in found.telling and "--healthy" not in found.telling


@pytest.mark.parametrize("kind", ["reference kernels", "SIMD"])
def test_beside_a_healthy_run_other_kernels_are_found_about_as_surely(measured, kind):
    """What errors of these kernels a healthy run does not take away, it makes no likelier."""
    deployment = deploy("kws", "rpi_pico2", runtime="tflm-cmsis-nn@2026")
    wrong = next(one.deployment for one in list_faults(deployment) if one.kind == kind)
    slow = tick(wrong, measured)
    slow = dataclasses.replace(slow, header=tick(deployment, measured).header)
    found = diagnose(deployment, slow, healthy=tick(deployment, measured))
    assert found.verdict.kind == kind
    assert found.stated > diagnose(deployment, slow).stated - 0.06


def test_a_computers_clock_and_caches_are_no_faults(measured):
    """An operating system sets them: only what a program does is weighed, as `why` does."""
    deployment = deploy("kws", "host")
    found = diagnose(deployment, tick(deployment, measured, 1.8, stated_hz=1e6))
    kinds = {part for kind in found.kinds for part in kind.split(" and ")}
    assert not kinds & {"clock", "cache off", "placement", "wait states"}
    assert {"interrupts", "-O0", "throttling"} <= kinds


def test_a_clock_may_be_right_as_far_off_or_the_same_in_a_second_measurement(deployment):
    half = next(one for one in list_faults(deployment) if one.name == "cpu at 60 MHz")
    names = [one.name for one in vary_clock(half, deployment, {"clocks.cpu.frequency_hz": 48e6})]
    assert names == ["cpu at 60 MHz", "cpu at 60 MHz, 24 MHz in the second",
                     "cpu at 60 MHz, 60 MHz in the second"]
    assert len([*vary_clock(half, deployment, {"placement.weights": "sram"})]) == 1
