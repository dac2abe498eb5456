"""The document and tables of an inference on an accelerator: what an epoch used, sums, energy."""

import json
import math

import jsonschema
import pytest

from hwmodels.board.file import load_board
from twin.deployment.deploy import deploy
from twin.documents import dump_document
from twin.pricing.accelerator.energy import estimate_npu_energy
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.document import load_schema, to_document
from twin.pricing.inference import predict
from twin.reports.export import layer_rows

PREDICTION = predict(deploy("ic", "stm32n6570_dk", runtime="neural-art"))


@pytest.fixture(scope="module")
def document():
    return json.loads(dump_document(to_document(PREDICTION)))


def test_the_document_keeps_its_schema(document):
    jsonschema.Draft202012Validator(load_schema()).validate(document)


def test_an_epoch_lists_what_it_used_and_it_sums(document):
    for epoch in document["epochs"]:
        if epoch["kind"] == "sw":
            assert epoch["engines"] == epoch["busif"] == epoch["pools"] == []
            continue
        assert sum(item["npu_cycles"] for item in epoch["exposed"]) == epoch["core_npu_cycles"]
        for way, direction in (("read", "in"), ("write", "out")):
            by_engine = sum(engine["bytes"] for engine in epoch["engines"]
                            if engine["direction"] == direction)
            assert sum(part[f"{way}_bytes"] for part in epoch["busif"]) == by_engine
        assert {engine["pool"] for engine in epoch["engines"]} == {
            pool["name"] for pool in epoch["pools"]}
        assert {engine["busif"] for engine in epoch["engines"]} <= {"busif0", "busif1"}
        lines = sum(epoch["npu_cache"][name] for name in ("read_hit", "read_miss"))
        flash = sum(pool["read_bytes"] for pool in epoch["pools"] if pool["name"] == "octoFlash")
        assert lines >= flash / 64
    macs = sum(unit["macs"] for epoch in document["epochs"] for unit in epoch["units"])
    assert macs == sum(layer["macs"] for layer in document["layers"])


def test_layers_have_cycles_of_every_clock_and_they_sum_to_the_total(document):
    for clock, total in document["total"]["cycles"].items():
        assert sum(layer["cycles_by_clock"].get(clock, 0)
                   for layer in document["layers"]) == total
    rows = layer_rows(PREDICTION)
    assert sum(row["npu_cycles"] for row in rows) == document["total"]["cycles"]["npu"]
    assert "npu_cycles" not in layer_rows(predict(deploy("kws", "nucleo_l4r5zi")))[0]


def test_pools_in_use_are_within_their_size(document):
    assert document["pools"]
    assert all(0 < pool["used_bytes"] <= pool["size_bytes"] for pool in document["pools"])


def test_energy_of_the_npu_is_the_sum_of_its_lines_with_a_wide_interval(document):
    value_uj, interval = estimate_npu_energy(PREDICTION.bill, PREDICTION.deployment.board)
    lines = [line.energy_pj for line in PREDICTION.bill.lines if line.event.startswith("npu_")]
    assert value_uj == pytest.approx(math.fsum(lines) * 1e-6)
    # R, the mean of the prices' deviations weighted by energy, as if they erred together
    unsure = {fact.path: fact.rel_sd or 0.0 for fact in load_board("stm32n6570_dk").facts}
    paths = {"npu_mac": "npu.energy.mac_pj.{}", "npu_op": "npu.energy.op_pj",
             "npu_active": "npu.energy.active_pj_per_cycle",
             "npu_idle": "npu.energy.idle_pj_per_cycle", "npu_ram_byte": "npu.pools.{}.byte_pj",
             "npu_external_byte": "npu.pools.{}.byte_pj"}
    relative = math.fsum(line.energy_pj * unsure[paths[line.event].format(line.place)]
                         for line in PREDICTION.bill.lines if line.event in paths) * 1e-6 / value_uj
    assert interval.high / value_uj == pytest.approx(
        math.exp(1.645 * math.sqrt(math.log(1 + relative**2))))
    assert document["npu_energy_uj"] == value_uj
    # Order of magnitude of published boards above idle, for networks of this size: 5 to 35 pJ/MAC.
    assert interval.low < 7.2e-6 * PREDICTION.macs < interval.high


def test_an_accelerator_has_intervals_of_network_layers_and_epochs():
    deployment = PREDICTION.deployment
    said = predict_calibrated(deployment)
    sure = said.certainty
    assert predict_calibrated(deployment, calibration="none").certainty is None
    assert said.time_us == PREDICTION.time_us and sure.time_us.holds(said.time_us)
    assert sure.energy_uj.holds(said.energy_uj)
    assert len(sure.tasks) == len(said.tasks) and len(sure.layers) == len(said.layers)
    for epoch, interval in zip(said.tasks, sure.tasks, strict=True):
        assert interval.holds(epoch.time_us)
        # an epoch alone is less sure than the network
        assert interval.high / epoch.time_us > sure.time_us.high / said.time_us
    written = json.loads(dump_document(to_document(said)))
    jsonschema.Draft202012Validator(load_schema()).validate(written)
    assert written["epochs"][0]["time_interval_us"]["low"] == sure.tasks[0].low


def test_intervals_are_wider_where_nothing_was_learnt():
    def reach(**changes):
        said = predict_calibrated(PREDICTION.deployment.replace(
            {key.replace("__", "."): value for key, value in changes.items()}))
        return said.certainty.time_us.high / said.time_us, said.certainty.extrapolating

    plain, reasons = reach()
    outside, why = reach(placement__arena="psram")
    host, whose = reach(offload__host="conv_2d")
    assert outside > plain and host > plain
    assert not reasons and "outside the chip" in why[0] and "operators on the host" in whose[0]
