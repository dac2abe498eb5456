"""The JSON document: its schema, its sums, its bytes."""

import json
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_predictions import make_prediction

from hwmodels.counts import CAUSES, CountLine, Counts, Price, Prices, make_bill, merge_bills
from twin.documents import dump_document
from twin.pricing.document import load_schema, to_document
from twin.pricing.ledger import make_ledger, percentages, share_out


def validate(document: dict) -> None:
    schema = load_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("energy", [True, False])
def test_document_conforms_to_its_schema(energy):
    document = to_document(make_prediction(energy=energy))
    validate(json.loads(dump_document(document)))
    assert (document["total"]["energy_uj"] is None) is not energy


def test_schema_lists_the_causes_of_the_bill_and_refuses_others():
    assert tuple(load_schema()["$defs"]["Line"]["properties"]["cause"]["enum"]) == CAUSES
    document = to_document(make_prediction())
    document["layers"][0]["bill"][0]["cause"] = "magic"
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def test_time_has_one_shape_and_its_interval_a_key_of_its_own():
    document = to_document(make_prediction())
    assert document["schema"] == 2 and document["total"]["time_interval_us"] is None
    document["total"]["time_interval_us"] = {"low": 9.0, "high": 11.0, "level": 0.9}
    validate(document)
    document["total"]["time_interval_us"]["level"] = 90
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), layers=st.integers(1, 12))
def test_cycles_sum_exactly_from_lines_to_layers_to_total(seed, layers):
    document = to_document(make_prediction(layers, seed=seed))
    for layer in document["layers"]:
        assert layer["cycles"] == sum(line["cycles"] for line in layer["bill"])
        assert all(line["cycles"] >= 0 for line in layer["bill"])
    total = document["total"]
    assert total["cycles"] == {"cpu": sum(layer["cycles"] for layer in document["layers"])}
    assert total["cycles"]["cpu"] == sum(line["cycles"] for line in total["bill"])
    for line in total["bill"]:
        assert line["cycles"] == sum(
            other["cycles"] for layer in document["layers"] for other in layer["bill"]
            if other["cause"] == line["cause"])


def test_total_is_the_rounded_real_total():
    prediction = make_prediction(9)
    # Largest remainder, top down: the total is round(real total), no layer is a cycle away.
    ledger = make_ledger(prediction)
    assert sum(ledger.total.values()) == round(prediction.bill.cycles("cpu"))
    for layer, lines in zip(prediction.layers, ledger.layers, strict=True):
        assert abs(sum(lines.values()) - layer.cycles) < 1


@pytest.mark.parametrize(("cycles", "total"), [(1.4, 4), (1.6, 5), (1.5, 4), (0.25, 1)])
def test_the_total_is_rounded_and_not_the_sum_of_rounded_layers(cycles, total):
    """Three layers of 1.4 cycles are 4.2, so 4; each by itself would be 1, and the sum 3."""
    prediction = make_prediction(3)
    prices = Prices({("alu_issue", ""): Price(event="alu_issue", cycles=1.0, clock="cpu", pj=1.0,
                                              kind="assumed", source="made")})
    bill = make_bill(Counts((CountLine(event="alu_issue", occurred=cycles, exposed=cycles),)),
                     prices)
    layers = tuple(replace(layer, bill=bill, cycles=cycles) for layer in prediction.layers)
    whole = merge_bills(layer.bill for layer in layers)
    made = replace(prediction, layers=layers, bill=whole, cycles=3 * cycles)
    assert sum(make_ledger(made).total.values()) == total
    document = to_document(made)
    assert document["total"]["cycles"] == {"cpu": total}
    assert sum(layer["cycles"] for layer in document["layers"]) == total


def test_same_prediction_gives_the_same_bytes():
    first, second = (dump_document(to_document(make_prediction())) for _ in range(2))
    assert first == second
    assert first.endswith("}\n")


def test_counts_hold_every_event_twice():
    prediction = make_prediction(1)
    counts = to_document(prediction)["layers"][0]["counts"]
    # The made prediction exposes half of what occurs.
    assert counts["mac_issue"]["exposed"] == counts["mac_issue"]["occurred"] / 2
    assert set(counts) == {line.event for line in prediction.layers[0].counts.lines}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_shown_shares_sum_to_a_hundred(values):
    shares = percentages(values, decimals=1)
    assert round(sum(shares) * 10) == (1000 if sum(values) > 0 else 0)


def test_share_out_keeps_the_sum_that_rounding_loses():
    # Rounded one by one, three thirds of 0.1 give 0.09.
    assert sum(round(100 * part) for part in share_out([0.1 / 3] * 3, 2)) == 10


def test_share_out_shows_equal_layers_alike_and_keeps_the_sum():
    times = [0.1, 0.0727, 0.0727, 0.0727, 0.0184, 0.0281]
    shown = share_out(times, 3)
    assert len({*shown[1:4]}) == 1
    assert round(1000 * sum(shown)) == round(1000 * sum(times))
