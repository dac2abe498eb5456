"""What is said of a diagnosis: ratios, what to measure next, remedies a part and runtime have."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from made_faults import made_diagnosis

from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.faults import COUNTER, DECLARED, ONE_FACTOR, UNKNOWN
from twin.attribution.diagnosis.finding import say_ratio
from twin.attribution.diagnosis.ranking import _describe_fits, note_header
from twin.attribution.diagnosis.telling import tell_otherwise
from twin.attribution.diagnosis.weighing import Weight
from twin.deployment.deploy import deploy


@pytest.mark.parametrize(("ratio", "said"), [
    (1.0046, "1.005"), (0.1, "0.100"), (0.0999, "0.0999"), (0.00001234, "1.23e-05")])
def test_a_ratio_is_said_so_that_it_is_never_nought(ratio, said):
    assert say_ratio(ratio) == said


@pytest.mark.parametrize(("board", "runtime", "kind", "said", "unsaid"), [
    ("nucleo_l4r5zi", "firmware", "cache off", "ICEN of FLASH_ACR", "SCB_"),
    ("nucleo_l4r5zi", "firmware", "reference kernels", "firmware's own", "OPTIMIZED_KERNEL_DIR"),
    ("nucleo_l4r5zi", "tflm-cmsis-nn", "reference kernels", "DIR=cmsis_nn", "firmware"),
    ("nucleo_h7a3zi_q", "cmsis-nn", "cache off", "SCB_EnableICache", "FLASH_ACR"),
    ("nucleo_u575zi_q", "cmsis-nn", "cache off", "ICACHE_CR", "SCB_"),
    ("nrf52840dk", "cmsis-nn", "cache off", "NVMC_ICACHECNF", "FLASH_ACR")])
def test_a_remedy_names_what_the_part_and_the_runtime_have(board, runtime, kind, said, unsaid):
    remedies = " ".join(fault.remedy for fault in list_faults(
        deploy("kws", board, runtime=runtime)) if fault.kind == kind)
    assert said in remedies and unsaid not in remedies


@pytest.mark.parametrize(("runtime", "reference"), [
    ("tflm-cmsis-nn@2.3.1", "tflm-reference@2.3.1"), ("tflm-cmsis-nn@2023", "tflm-reference@2023"),
    ("cmsis-nn@6.0", "tflm-reference@2026")])
def test_reference_kernels_of_an_image_are_of_its_own_release(runtime, reference):
    [fault] = [one for one in list_faults(deploy("kws", "nucleo_l4r5zi", runtime=runtime))
               if one.name == "reference kernels"]
    assert fault.deployment.runtime.identity == reference


@pytest.mark.parametrize("kinds", [
    ((DECLARED, 0.6), (UNKNOWN, 0.4)), (("clock", 0.4), (COUNTER, 0.35), (DECLARED, 0.25)),
    (("placement and load", 0.4), ("load", 0.3), (DECLARED, 0.3)), ((UNKNOWN, 0.9), ("SIMD", 0.1))])
@pytest.mark.parametrize("healthy", [False, True])
def test_below_what_is_settled_a_measurement_is_named_or_none_can(kinds, healthy):
    found = made_diagnosis(kinds, healthy)
    said = tell_otherwise(found)
    assert kinds[0][0] in said and kinds[1][0] in said
    assert ("--healthy" in said) is not healthy
    assert found.remedy.startswith("if so: ") is (kinds[0][1] < 0.7)


@pytest.mark.parametrize(("kinds", "said"), [
    ((("SIMD", 0.6), (UNKNOWN, 0.3), ("load", 0.1)), "SIMD or load: "),
    ((("SIMD", 0.6), (UNKNOWN, 0.39), ("load", 0.01)), "SIMD or none of these: "),
    (((UNKNOWN, 0.6), ("SIMD", 0.2), ("load", 0.2)), "SIMD or none of these: ")])
def test_two_causes_are_told_apart_and_not_a_cause_from_none(kinds, said):
    assert tell_otherwise(made_diagnosis(kinds)).startswith(said)


@pytest.mark.parametrize("kinds", [
    (("reference kernels", 0.92), (UNKNOWN, 0.08)), (("SIMD", 0.8), ("SIMD and placement", 0.2)),
    ((DECLARED, 0.6), ("-O0", 0.4))])
def test_an_image_of_wrong_kernels_is_never_to_be_known_to_be_right(kinds):
    """It is as wrong on every board: its own build is read first, then another image measured."""
    first, second = tell_otherwise(made_diagnosis(kinds)).partition(": ")[2].split("; or ")
    assert first.startswith("read the image itself")
    assert second == "measure an image known to have the kernels asked for (--healthy)"


def test_one_measurement_that_tells_a_clock_from_a_counter_is_said_once():
    said = tell_otherwise(made_diagnosis((("clock", 0.6), (COUNTER, 0.4)), healthy=True))
    assert said.count("host's clock") == 1 and "; or " not in said
    rival = tell_otherwise(made_diagnosis(((DECLARED, 0.8), (ONE_FACTOR, 0.2))))
    assert rival.partition(": ")[2].startswith("time one run") and "--healthy" in rival


@pytest.mark.parametrize(("off", "doubted", "told"), [
    (0.01, -3.9, True), (0.01, 0.0, False), (0.08, -3.9, False)])
def test_what_fits_best_against_its_header_is_told(off, doubted, told):
    """How often a header is wrong is assumed: what only that outweighs is not kept back."""
    small, likely = made_diagnosis((("optimisation", 0.1), ("SIMD", 0.9))).findings[:2]
    found = [dataclasses.replace(small, fault=dataclasses.replace(small.fault, doubted=doubted),
                                 evidence=("measured 1.01 x what it predicts",)), likely]
    weighed = [Weight(shape=0.0, total=0.0, marks=0.0, residual=np.array([size, -size]),
                      moved=np.zeros(2), predicted=np.ones(2), counted=(), changed=np.zeros(2),
                      shift=np.zeros(2)) for size in (off, 0.1)]
    said = " ".join(note_header(found, weighed))
    assert ("optimisation fits best (measured 1.01 x" in said) is told is ("header" in said)


def test_fits_that_read_alike_get_two_more_digits():
    def describe(*spreads):
        return _describe_fits([SimpleNamespace(
            residual=np.array([-spread, spread]), predicted=np.array([4.0, 6.0]))
            for spread in spreads], 15.0)

    apart, alike = describe(0.1, 0.2), describe(0.1, 0.101)
    assert all("measured 1.50 x" in text for text in apart) and len(set(apart)) == 2
    assert all("measured 1.5000 x" in text for text in alike) and len(set(alike)) == 2
