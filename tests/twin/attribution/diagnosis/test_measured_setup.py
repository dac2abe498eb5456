"""The set-up a measurement claims: from its header, and which faults that rules out."""

import dataclasses

import pytest
from made_faults import measure_fault

from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.setup import (
    deploy_measured,
    find_model,
    is_stand_in,
    measured_runtime,
    read_build,
    unread_build,
)
from twin.deployment.deployment import deploy
from twin.errors import UsageError


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
    assert "stands in for somebody-elses@3" in remark
    other = dataclasses.replace(measured, header=dataclasses.replace(
        measured.header, board="stm32n6570_dk", runtime="neural-art, atonn-v1.0.0-rc0"))
    found, remark = deploy_measured(other)
    assert remark == "" and found.runtime.name == "neural-art" and not is_stand_in(found, other)
    with pytest.raises(UsageError, match=r"which board .* --board"):
        deploy_measured(dataclasses.replace(measured, header=dataclasses.replace(
            measured.header, board="not known")))
    with pytest.raises(UsageError, match="no network of `twin models`"):
        find_model("mine", None)
    with pytest.raises(UsageError, match="SHA-256"):
        find_model("kws", "0" * 64)
