"""Side by side: exact sums, counters as causes, and sides that do not belong together."""

import dataclasses
import json
import math
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_measurements import check_sums, measure
from made_predictions import make_prediction

from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.counts import CAUSES
from twin.attribution.accounts import CLOCK, OUTSIDE
from twin.attribution.difference import load_groups, read_part
from twin.attribution.document import comparison_document, comparison_rows, load_schema
from twin.attribution.idealisation import RESOURCES, round_signed, shapley, split_time
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_document, side_of_prediction
from twin.attribution.side import Part
from twin.attribution.views import attribute
from twin.deployment.deploy import deploy
from twin.documents import dump_document
from twin.errors import NotTheSameError, UsageError
from twin.pricing.document import to_document
from twin.pricing.inference import predict

ISSUE = "mac, mac_waste, alu, load_store, branch, data_copy, kernel_call, weight_decode"


def set_side_by_side(prediction, measurement, **options):
    return attribute(side_of_prediction(prediction), side_of_measurement(measurement), **options)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), layers=st.integers(1, 9), factor=st.floats(0.05, 30.0),
       clock_hz=st.sampled_from([16e6, 80e6, 119.7e6, 120e6]), energy=st.booleans(),
       per_layer=st.sets(st.sampled_from(["dwt", "pmu", "instructions", "misses"])),
       whole=st.sets(st.sampled_from(["instructions", "block_instructions",
                                      "block_dcache_misses", "block_dcache_write_backs"])),
       missing=st.integers(0, 3))
def test_rows_and_causes_sum_exactly(seed, layers, factor, clock_hz, energy, per_layer, whole,
                                     missing):
    prediction = make_prediction(layers, seed=seed, energy=energy)
    counters = {}
    if "dwt" in per_layer:
        counters |= {f"dwt_{name}cnt": lambda layer, k=k: layer.cycles * factor * k
                     for name, k in (("cpi", 0.2), ("lsu", 0.3), ("exc", 0.01), ("sleep", 0.0),
                                     ("fold", 0.05))}
    if "pmu" in per_layer:
        counters |= {"stall_frontend": lambda layer: layer.cycles * 0.1,
                     "stall_backend": lambda layer: layer.cycles * 0.25}
    if "instructions" in per_layer:
        counters["instructions"] = lambda layer: layer.instructions * 1.5
    if "misses" in per_layer:
        counters["dcache_misses"] = lambda layer: layer.misses * 0.5
    measured = measure(
        prediction, factor=factor, clock_hz=clock_hz, counters=counters,
        whole={name: 1e5 * factor for name in whole},
        layers=[layer.index for layer in prediction.layers][missing:] or None)
    attribution = set_side_by_side(prediction, measured, anyway=True)
    check_sums(attribution)
    schema = load_schema()
    document = json.loads(dump_document(comparison_document(attribution, "attribution")))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert {account.quantity for account in attribution.accounts} >= {"cycles", "time"}


def test_causes_get_the_cycles_their_counters_counted():
    prediction = make_prediction(3)
    measured = measure(prediction, factor=2.0, counters={
        "stall_frontend": lambda layer: 1000.0, "stall_backend": lambda layer: 5000.0})
    account = set_side_by_side(prediction, measured).account("cycles")
    for row in account.rows[:-1]:
        gaps = {", ".join(gap.causes): gap for gap in row.lines}
        assert gaps["instruction_fetch"].second == 1000
        assert gaps[ISSUE].second == row.second - 6000
        assert row.unexplained == 0 or "idle" in gaps  # the three groups are all there is
        predicted = side_of_prediction(prediction).parts[row.index].causes["cycles"]
        assert gaps["instruction_fetch"].first == predicted["instruction_fetch"]


def test_another_clock_is_a_cause_of_time_and_none_of_cycles():
    prediction = make_prediction(4)
    attribution = set_side_by_side(prediction, measure(prediction, clock_hz=60e6),
                                   anyway=True)
    time, cycles = attribution.account("time"), attribution.account("cycles")
    clock = next(gap for gap in time.total.lines if gap.causes == (CLOCK,))
    assert clock.gap == pytest.approx(time.total.first, rel=1e-6)  # half the clock
    assert abs(time.total.unexplained) < 1000  # ns: rounding, and the 17 cycles outside
    assert all(gap.causes != (CLOCK,) for gap in cycles.total.lines)
    assert any("60 MHz" in text for text in attribution.warnings)


def test_counters_of_eight_bits_are_used_only_whole():
    prediction = make_prediction(3)
    wrapped = measure(prediction, counters={"dwt_lsucnt": lambda layer: 77.0},
                      whole={"dwt_lsucnt": 3.0})
    attribution = set_side_by_side(prediction, wrapped)
    assert all(not gap.counter for gap in attribution.account("cycles").total.lines)
    assert any("modulo 256" in note for note in attribution.notes)
    extended = measure(prediction, counters={"dwt_lsucnt": lambda layer: 7700.0})
    gaps = set_side_by_side(prediction, extended).account("cycles").total.lines
    assert [gap.second for gap in gaps if gap.counter] == [3 * 7700]


def test_what_only_the_whole_counts_is_in_the_row_outside():
    prediction = make_prediction(3)
    executed = sum(layer.instructions for layer in prediction.layers)
    measured = measure(prediction, whole={"block_instructions": 2.0 * executed})
    account = set_side_by_side(prediction, measured).account("cycles")
    assert account.rows[-1].name == OUTSIDE
    assert all(row.explained == 0 for row in account.rows[:-1])
    gap = next(gap for gap in account.total.lines if gap.counter)
    assert gap.second == pytest.approx(2 * gap.first, abs=1)


def test_a_layer_nobody_measured_is_outside():
    prediction = make_prediction(4)
    attribution = set_side_by_side(prediction, measure(prediction, layers=[0, 2],
                                                        runtime="firmware"))
    account = attribution.account("cycles")
    assert [row.index for row in account.rows] == [0, 2, None]
    check_sums(attribution)


def test_the_table_of_counters_names_causes_of_the_bill_once_each():
    groups = load_groups()
    assert {cause.partition("@")[0] for group in groups for cause in group.causes} <= set(CAUSES)
    assert len({group.name for group in groups}) == len(groups)
    assert all(group.source for group in groups)


def test_sides_that_do_not_belong_together_are_refused():
    prediction = make_prediction(3)
    ours, theirs = side_of_prediction(prediction), side_of_measurement(measure(prediction))
    with pytest.raises(UsageError, match="swapped"):
        attribute(theirs, ours)
    with pytest.raises(UsageError, match="twin diff"):
        attribute(ours, ours)
    with pytest.raises(UsageError, match="twin diff"):
        attribute(theirs, theirs)
    other = side_of_measurement(measure(make_prediction(5), architecture_id="0123456789ab"))
    with pytest.raises(NotTheSameError, match=r"other networks.*--anyway"):
        attribute(ours, other)
    with pytest.raises(NotTheSameError, match="layer 3"):
        attribute(ours, side_of_measurement(measure(
            make_prediction(5), architecture_id=None, model_sha256=None)))
    with pytest.raises(NotTheSameError, match="-b nucleo_f401re"):
        attribute(ours, side_of_measurement(measure(prediction, board="nucleo_f401re")))
    only_energy = Measurement(header=measure(prediction).header, samples=(
        Sample(run=0, counter="energy", value=5.0, unit="uj"),))
    bare = side_of_prediction(make_prediction(3, energy=False))
    with pytest.raises(UsageError, match="nothing to set side by side"):
        attribute(bare, side_of_measurement(only_energy))


def test_a_document_that_is_no_prediction_is_refused_by_key():
    document = to_document(make_prediction(2))
    with pytest.raises(UsageError, match=r"made\.json: kind is 'attribution'"):
        side_of_document(document | {"kind": "attribution"}, "made.json")
    with pytest.raises(UsageError, match="what-if holds two"):
        side_of_document({"kind": "what-if"}, "made.json")
    broken = {key: value for key, value in document.items() if key != "layers"}
    with pytest.raises(UsageError, match=r"made.json.*'layers' is missing"):
        side_of_document(broken, "made.json")
    with pytest.raises(UsageError, match=r"made\.json: not a prediction"):
        side_of_document(document | {"layers": 7}, "made.json")


def test_a_document_written_before_a_cause_was_renamed_is_read_as_it_was():
    new = dump_document(to_document(make_prediction(4)))
    old = json.loads(new.replace('"data_refill"', '"dcache_refill"'))
    assert "data_refill" in new and "dcache_refill" in json.dumps(old)
    assert side_of_document(old, "a") == side_of_document(json.loads(new), "a")


def test_rows_for_a_spreadsheet_hold_every_figure():
    attribution = set_side_by_side(make_prediction(2), measure(make_prediction(2), factor=1.5))
    rows = comparison_rows(attribution)
    for quantity in ("cycles", "time"):
        chosen = [row for row in rows if row["quantity"] == quantity and row["name"] == "total"]
        whole = next(row for row in chosen if row["causes"] == "all")
        parts = [row["gap"] for row in chosen if row["causes"] != "all" and row["gap"] is not None]
        assert sum(parts) == whole["gap"]


def test_an_accelerators_epochs_are_set_side_by_side():
    prediction = predict(deploy("kws", "stm32n6570_dk", runtime="neural-art"))
    side = side_of_prediction(prediction)
    assert side.part == "epoch" and len(side.parts) == len(prediction.tasks)
    samples = []
    for epoch in prediction.tasks:
        for counter, clock, value in (
                ("pre_cycles", "cpu", 2000 + epoch.pre_cpu_cycles),
                ("post_cycles", "cpu", epoch.post_cpu_cycles),
                ("core_cycles", "cpu", epoch.core_cpu_cycles),
                ("core_npu_cycles", "npu", epoch.run.core_npu_cycles)):
            samples.append(Sample(run=0, layer=epoch.index, counter=counter, clock=clock,
                                  value=round(value), unit="cycles"))
    header = measure(make_prediction(1)).header
    measured = Measurement(samples=tuple(samples), header=dataclasses.replace(
        header, board="stm32n6570_dk", model="kws", runtime="neural-art@3.0.0",
        architecture_id=prediction.deployment.graph.architecture_id,
        clocks_hz=tuple(side.clocks_hz.items())))
    attribution = attribute(side, side_of_measurement(measured))
    check_sums(attribution)
    total = attribution.account("time").total
    gaps = {gap.counter: gap.gap for gap in total.lines if gap.counter}
    expected = 2000 * len(prediction.tasks) / side.clocks_hz["cpu"] * 1e9
    assert gaps["host, around epochs and in software ones"] == pytest.approx(expected, rel=0.01)
    assert abs(gaps["accelerator, inside epochs"]) < 0.01 * total.first
    assert attribution.account("cycles") is None  # two clocks are never added


def test_a_software_epoch_has_no_cycles_on_the_accelerator_though_its_log_has_no_such_line():
    group = next(one for one in load_groups() if one.clock == "npu")
    counted = {"pre_cycles": 7.0, "core_cycles": 900.0, "post_cycles": 5.0}

    def read(op: str, **more: float) -> float | None:
        return read_part(group, Part(index=1, op=op, amounts={"time": 9}, counts=counted | more))

    assert (read("SW"), read("HW"), read("HYBRID"), read("")) == (0.0, None, None, None)
    assert read("SW", core_npu_cycles=3.0) == read("HW", core_npu_cycles=3.0) == 3.0
    around = next(one for one in load_groups() if one.clock == "cpu")
    assert read_part(around, Part(index=1, op="SW", amounts={}, counts={})) is None


# --- the idealised view ------------------------------------------------------------------------

def told(prediction, *samples: Sample, **header) -> Measurement:
    """A measurement of these samples, on the prediction's board."""
    return Measurement(header=measure(prediction, **header).header, samples=samples)


@pytest.mark.parametrize(("unit", "ns"), [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)])
@pytest.mark.parametrize("counter", ["latency", "duration", "time"])
def test_a_time_is_read_in_its_unit(unit, ns, counter):
    """Seven units of each: nanoseconds are what sides are compared in."""
    prediction = make_prediction(1)
    side = side_of_measurement(told(prediction, Sample(run=0, counter=counter, value=7.0,
                                                       unit=unit)))
    assert side.whole.amounts == {"time": round(7 * ns)}


@pytest.mark.parametrize(("unit", "nj"), [("J", 1e9), ("mJ", 1e6), ("uJ", 1e3), ("nJ", 1.0)])
def test_an_energy_is_read_in_its_unit(unit, nj):
    prediction = make_prediction(1)
    side = side_of_measurement(told(prediction, Sample(run=0, counter="energy", value=7.0,
                                                       unit=unit)))
    assert side.whole.amounts == {"energy": round(7 * nj)}


def test_the_time_of_an_epoch_is_all_its_phases():
    """800 + 1600 + 400 cycles of 800 MHz are 1 + 2 + 0.5 us; each is needed."""
    prediction = make_prediction(1)
    phases = {"pre_cycles": 800.0, "core_cycles": 1600.0, "post_cycles": 400.0}
    samples = [Sample(run=0, layer=0, counter=name, value=value, unit="cycles", clock="cpu")
               for name, value in phases.items()]
    samples.append(Sample(run=0, layer=0, counter="core_npu_cycles", value=2000.0, unit="cycles",
                          clock="npu"))
    side = side_of_measurement(told(prediction, *samples, clock_hz=800e6))
    (part,) = side.parts
    assert (side.part, part.amounts) == ("epoch", {"time": 3500})
    assert side.whole.amounts["time"] == 3500


def test_shapley_values_of_a_game_worked_by_hand():
    worth = {"": 0, "a": 12, "b": 6, "c": 0, "ab": 24, "ac": 12, "bc": 6, "abc": 30}
    found = shapley(lambda chosen: worth["".join(sorted(chosen))], ("a", "b", "c"))
    # over the six orders: a 12 12 18 24 12 24, b 12 18 6 6 18 6, c 6 0 6 0 0 0
    assert found == {"a": Fraction(17), "b": Fraction(11), "c": Fraction(2)}


@settings(max_examples=30)
@given(st.lists(st.integers(-1000, 1000), min_size=16, max_size=16), st.integers(-99, 99))
def test_shapley_laws(values, own):
    names = ("a", "b", "c", "d")
    game = {frozenset(n for bit, n in enumerate(names) if number >> bit & 1): value
            for number, value in enumerate(values)}
    game[frozenset()] = 0
    found = shapley(game.__getitem__, names)
    assert sum(found.values()) == game[frozenset(names)]
    # who adds the same to every set gets just that; who is exchangeable gets the same
    dummy = shapley(lambda s: game[s - {"d"}] + (own if "d" in s else 0), names)
    assert dummy["d"] == own
    twins = shapley(lambda s: len(s & {"a", "b"}) ** 2 + game[s - {"a", "b"}], names)
    assert twins["a"] == twins["b"]


@given(st.lists(st.fractions(-1000, 1000, max_denominator=720), min_size=1, max_size=6))
def test_signed_rounding_keeps_the_sum(parts):
    parts = [*parts, math.floor(sum(parts)) - sum(parts)]
    whole = round_signed(parts, int(sum(parts)))
    assert sum(whole) == sum(parts)
    assert all(abs(one - part) < 1 for one, part in zip(whole, parts, strict=True))


def test_a_time_is_shared_over_the_resources_exactly():
    deployment = deploy("ad", "nucleo_h7a3zi_q", runtime="cmsis-nn")
    split = split_time(deployment)
    assert split.work + sum(split.shares.values()) == split.total
    assert split.total == round(predict(deployment).time_us * 1e3)
    assert tuple(split.shares) == tuple(RESOURCES) and len(RESOURCES) <= 6
    bill = predict(deployment).bill
    stalls = bill.cycles("cpu", "issue_stall") / 280e6 * 1e9
    assert split.shares["no pipeline stalls"] == pytest.approx(stalls, rel=1e-3)  # no interaction
    assert split.shares["no wait states"] > 0  # ad's weights do not fit the cache
