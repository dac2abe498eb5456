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

from twin.attribution.change import compare_sides
from twin.attribution.ci import to_bencher, write_junit
from twin.attribution.sides import Part, side_of_measurement, side_of_prediction, sum_parts
from twin.cli.diff import parse_percent
from twin.deployment.deployment import deploy
from twin.errors import UsageError
from twin.prediction.prediction import predict

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
    found = compare_sides(before, after)
    cycles = next(move for move in found.totals if move.name == "cycles")
    assert cycles.change < 0
    assert sum(cause.change for cause in found.causes) == cycles.change
    assert sum(part.change for part in found.parts) == cycles.change
    assert found.causes[0].name in ("flash_wait", "dcache_refill")
    assert any(part.reason.startswith(("flash_wait", "dcache_refill")) for part in found.parts)
    assert found.setup == ("placement of weights: flash -> sram",)


@settings(max_examples=20)
@given(st.integers(0, 999), st.integers(0, 999), st.integers(1, 6), st.integers(1, 6))
def test_the_difference_of_any_two_sums(seed, other, layers, more):
    before = side_of_prediction(make_prediction(layers, seed=seed))
    after = dataclasses.replace(side_of_prediction(make_prediction(more, seed=other)),
                                architecture_id="0123456789ab" if layers != more else
                                before.architecture_id)
    found = compare_sides(before, after)
    cycles = next(move for move in found.totals if move.name == "cycles")
    assert sum(part.change for part in found.parts) == cycles.change
    assert sum(cause.change for cause in found.causes) == cycles.change
    there = compare_sides(after, before)
    assert [move.change for move in there.totals] == [-move.change for move in found.totals]
    same = compare_sides(before, before)
    assert not any(move.change for move in (*same.totals, *same.parts)) and not same.setup


def test_layers_that_came_and_went_are_named():
    before = side_of_prediction(predict(deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")))
    after = side_of_prediction(predict(deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn")))
    found = compare_sides(before, after)
    assert {"new", "gone"} <= {part.reason for part in found.parts}
    assert "model: kws -> ad" in found.setup
    assert "model file: another architecture" in found.setup


def test_measurements_are_compared_by_their_counters():
    prediction = make_prediction(3)
    slow = measure(prediction, factor=1.5, whole={"block_instructions": 3000.0},
                   environment=(("compiler", "gcc 13 -O2"),))
    fast = measure(prediction, whole={"block_instructions": 2000.0},
                   environment=(("compiler", "gcc 12 -O2"),))
    found = compare_sides(side_of_measurement(fast), side_of_measurement(slow))
    assert [(move.name, move.change) for move in found.causes] == [("instructions", 1000)]
    assert found.setup == ("compiler: gcc 12 -O2 -> gcc 13 -O2",)
    with pytest.raises(UsageError, match="twin attribute"):
        compare_sides(side_of_prediction(prediction), side_of_measurement(slow))
    bare = dataclasses.replace(side_of_measurement(slow), whole=Part(
        index=None, amounts={"energy": 5}), parts=())
    with pytest.raises(UsageError, match="nothing to compare"):
        compare_sides(side_of_measurement(fast), bare)


def test_limits_hold_for_what_grew():
    before, after = sides(set={"caches.art_d.enabled": False})
    found = compare_sides(before, after)
    assert {"cycles", "time"} <= {move.name for move in found.exceeding(0.02)}
    assert not compare_sides(after, before).exceeding(0.0)
    assert len(found.exceeding(0.02, with_parts=True)) > len(found.exceeding(0.02))
    assert not found.exceeding(100.0)


def test_junit_has_a_test_per_figure_and_a_failure_per_excess():
    found = compare_sides(*sides(set={"caches.art_d.enabled": False}))
    root = ElementTree.fromstring(write_junit(found, 0.02, with_parts=True))
    suite = root.find("testsuite")
    cases = suite.findall("testcase")
    assert root.tag == "testsuites" and len(cases) == int(suite.get("tests"))
    assert len(cases) == len(found.totals) + len(found.parts)
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
