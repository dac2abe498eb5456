"""`twin diff`'s comparison: totals, parts, causes, limits, JUnit and Bencher's format."""

import dataclasses
import json
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_measurements import measure
from made_predictions import make_prediction

from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.attribution.side import Part, sum_parts
from twin.attribution.views import diff
from twin.cli.learn import parse_percent
from twin.deployment.deploy import deploy
from twin.errors import NotTheSameError, UsageError
from twin.pricing.inference import predict
from twin.reports.beside import say_reason
from twin.reports.ci import to_bencher, write_junit

BMF = {"type": "object", "minProperties": 1, "additionalProperties": {
    "type": "object", "minProperties": 1, "additionalProperties": {
        "type": "object", "required": ["value"], "additionalProperties": False,
        "properties": {name: {"type": "number"} for name in ("value", "lower_value",
                                                             "upper_value")}}}}
"""The format's own schema (bencher.dev/docs/reference/bencher-metric-format), made strict."""


def sides(**changes):
    before = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    return (side_of_prediction(predict(before)),
            side_of_prediction(predict(before.replace(changes.pop("set", {})))))


def test_causes_and_parts_sum_to_the_change_of_a_prediction():
    before, after = sides(set={"placement.weights": "sram"})
    found = diff(before, after)
    cycles = next(row for row in found.totals if row.name == "cycles")
    assert cycles.gap < 0
    assert sum(line.gap for line in found.main.total.lines) == cycles.gap
    assert sum(part.gap for part in found.main.parts) == cycles.gap
    assert found.main.total.moved[0].label in ("flash_wait", "data_refill")
    assert any(say_reason(part).startswith(("flash_wait", "data_refill"))
               for part in found.main.parts)
    assert [(one.level, str(one)) for one in found.findings] == [
        ("note", "placement of weights: flash -> sram")]


@settings(max_examples=20)
@given(st.integers(0, 999), st.integers(0, 999), st.integers(1, 6), st.integers(1, 6))
def test_the_difference_of_any_two_sums(seed, other, layers, more):
    before = side_of_prediction(make_prediction(layers, seed=seed))
    after = dataclasses.replace(side_of_prediction(make_prediction(more, seed=other)),
                                architecture_id="0123456789ab" if layers != more else
                                before.architecture_id)
    found = diff(before, after, anyway=True)
    cycles = next(row for row in found.totals if row.name == "cycles")
    assert sum(part.gap for part in found.main.parts) == cycles.gap
    assert sum(line.gap for line in found.main.total.lines) == cycles.gap
    there = diff(after, before, anyway=True)
    assert [row.gap for row in there.totals] == [-row.gap for row in found.totals]
    same = diff(before, before)
    assert not any(row.gap for row in (*same.totals, *same.main.parts)) and not same.findings


def test_layers_that_came_and_went_are_named():
    before = side_of_prediction(predict(deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")))
    after = side_of_prediction(predict(deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn")))
    with pytest.raises(NotTheSameError, match="other networks"):
        diff(before, after)
    found = diff(before, after, anyway=True)
    assert {"new", "gone"} <= {say_reason(part) for part in found.main.parts}
    (finding,) = found.findings
    assert finding.level == "refuse" and "kws (architecture" in finding.text
    assert "-> ad (" in finding.text


def test_measurements_are_compared_by_their_counters():
    prediction = make_prediction(3)
    slow = measure(prediction, factor=1.5, whole={"block_instructions": 3000.0},
                   environment=(("compiler", "gcc 13 -O2"),))
    fast = measure(prediction, whole={"block_instructions": 2000.0},
                   environment=(("compiler", "gcc 12 -O2"),))
    found = diff(side_of_measurement(fast), side_of_measurement(slow))
    assert [(line.counter, line.gap) for line in found.counters] == [("instructions", 1000)]
    assert [str(one) for one in found.findings] == ["compiler: gcc 12 -O2 -> gcc 13 -O2"]
    with pytest.raises(UsageError, match="twin attribute"):
        diff(side_of_prediction(prediction), side_of_measurement(slow))
    bare = dataclasses.replace(side_of_measurement(slow), whole=Part(
        index=None, amounts={"energy": 5}), parts=())
    with pytest.raises(UsageError, match="nothing to set side by side"):
        diff(side_of_measurement(fast), bare)


def test_limits_hold_for_what_grew():
    before, after = sides(set={"caches.art_d.enabled": False})
    found = diff(before, after)
    assert {"cycles", "time"} <= {row.name for row in found.exceeding(0.02)}
    assert not diff(after, before).exceeding(0.0)
    assert len(found.exceeding(0.02, with_parts=True)) > len(found.exceeding(0.02))
    assert not found.exceeding(100.0)


def test_junit_has_a_test_per_figure_and_a_failure_per_excess():
    found = diff(*sides(set={"caches.art_d.enabled": False}))
    root = ElementTree.fromstring(write_junit(found, 0.02, with_parts=True))
    suite = root.find("testsuite")
    cases = suite.findall("testcase")
    assert root.tag == "testsuites" and len(cases) == int(suite.get("tests"))
    assert len(cases) == len(found.totals) + len(found.main.parts)
    failed = [case for case in cases if case.find("failure") is not None]
    assert len(failed) == int(suite.get("failures")) == len(found.exceeding(0.02, with_parts=True))
    assert "flash_wait" in failed[0].find("failure").text
    assert int(ElementTree.fromstring(write_junit(found, 9.0)).find("testsuite").get(
        "failures")) == 0


def test_benchers_format_conforms_and_is_in_nanoseconds():
    prediction = predict(deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    side = side_of_prediction(prediction)
    document = json.loads(json.dumps(to_bencher(side)))
    jsonschema.validate(document, BMF)
    measures = document["kws/nucleo_l4r5zi/cmsis-nn@6.0"]
    assert measures["latency"]["value"] == pytest.approx(prediction.time_us * 1e3, abs=1)
    assert measures["ram-size"]["value"] == prediction.ram_bytes
    jsonschema.validate(to_bencher(side_of_measurement(measure(make_prediction(2)))), BMF)


def test_sum_of_parts_lacks_what_a_part_lacks():
    parts = (Part(index=0, amounts={"cycles": 1, "time": 2}), Part(index=1, amounts={"cycles": 3}))
    assert sum_parts(parts).amounts == {"cycles": 4}


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), (" 2.5 % ", 0.025), ("0.02", 0.02),
                                             ("0", 0.0), ("150%", 1.5)])
def test_a_percentage(text, share):
    assert parse_percent(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["two", "-1%", "", "%", "5"])
def test_no_percentage(text):
    with pytest.raises(UsageError, match="--max-increase"):
        parse_percent(text)
