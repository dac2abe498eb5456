"""How well layers use an accelerator: shares that hold together, and what is empty elsewhere."""

import csv
import io

import pytest

import twin
from twin.pricing.utilisation import USES, describe_dma, find_utilisation
from twin.reports.export import layer_rows


@pytest.fixture(scope="module")
def prediction():
    return twin.predict(twin.deploy("kws", "gap9evk", runtime="gap"))


def used(prediction, place):
    return find_utilisation(prediction.tasks, place)


def test_shares_lie_between_nothing_and_all(prediction):
    for place in range(len(prediction.layers)):
        found = used(prediction, place)
        assert found is None or all(
            share is None or 0 <= share <= 1
            for share in (getattr(found, name) for name in USES))


def test_mac_use_is_macs_over_the_peak_of_all_cycles(prediction):
    # layer 2, a pointwise convolution: 512,000 MACs, 162 a cycle
    core = sum(task.run.core_npu_cycles for task in prediction.tasks if 2 in task.step.layers)
    found = used(prediction, 2)
    assert found.mac_use == pytest.approx(512_000 / 162 / core, rel=0.01)
    assert found.lane_use > found.mac_use
    assert found.bank_wait is None  # NE16 is alone at its memory


def test_cores_state_what_they_wait_for(prediction):
    found = used(prediction, 0)
    assert found.bank_wait > 0 and found.barrier_wait > 0 and found.loop_share > 0


def test_transfers_are_hidden_with_two_buffers_only():
    deployment = twin.deploy("kws", "gap9evk", runtime="gap")
    hidden = [used(twin.predict(deployment.replace({"offload.buffers": count})), 2).dma_hidden
              for count in ("1", "2")]
    assert hidden[0] < 0.2 < hidden[1]


def test_a_sentence_says_how_much_of_all_transfers_is_hidden(prediction):
    runs = [task.run for task in prediction.tasks]
    waited = sum(one.npu_cycles for run in runs for one in run.exposed if one.cause.endswith(
        ("_wait", "_contention", "_memory")))
    alone = sum(max(sum(one.channel_cycles for one in run.transfers
                        if one.transfer.direction == way) for way in ("in", "out")) for run in runs)
    assert describe_dma(prediction.tasks).endswith(
        f", {100 * (1 - waited / alone):.0f} % of that hidden")
    assert describe_dma(()) == ""


def test_only_what_runs_on_an_accelerator_has_the_columns(prediction):
    plain = twin.predict(twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    assert not set(USES) & set(layer_rows(plain)[0])
    rows = layer_rows(prediction)
    assert set(USES) <= set(rows[0]) and rows[0]["mac_use"] == used(prediction, 0).mac_use
    text = io.StringIO()
    csv.DictWriter(text, rows[0]).writerow(rows[0])
    assert "alias" not in text.getvalue()
