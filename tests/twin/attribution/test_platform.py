"""Counters of a platform: at least eight each, none a zero nobody knows, sums of the bill."""

import json

import pytest
from made_networks import random_network

import twin
from hwmodels.board.file import list_boards, load_board
from twin.attribution.platform import list_counters
from twin.network.zoo import build
from twin.reports.documents import to_document

LEAST = 8
"""Counters the founding text asks of a platform."""


@pytest.mark.parametrize("board", list_boards())
def test_every_board_has_eight_modelled(board):
    found = list_counters(twin.predict(twin.deploy(random_network(1, layers=4), board)))
    names = [row.name for row in found]
    assert sum(row.value is not None for row in found) >= LEAST
    assert len({*names}) == len(names) and "DMA utilisation" in names
    assert ("NPU idle" in names) == (load_board(board).npu is not None)


def test_values_are_those_of_the_bill():
    prediction = twin.predict(twin.deploy(build("ic"), "stm32n6570_dk", runtime="neural-art"))
    values = {row.name: row.value for row in list_counters(prediction)}
    assert values["energy"] == prediction.energy_uj
    assert values["NPU active"] == sum(
        task.run.core_npu_cycles for task in prediction.tasks if not task.run.task.on_host)
    assert values["NPU idle"] == pytest.approx(
        1 - prediction.coverage.npu_us / prediction.time_us)
    assert 0 < values["DMA utilisation"] < 1 - values["NPU idle"]


def test_dma_utilisation_is_that_of_the_warning():
    placed = twin.deploy(build("ic"), "nucleo_l4r5zi").replace(
        {"placement.weights": "sram", "placement.weights_via": "dma1"})
    prediction = twin.predict(placed, calibration="none")
    share = next(row.value for row in list_counters(prediction) if row.name == "DMA utilisation")
    assert f"busy {100 * share:.1f} % of the time" in " ".join(prediction.warnings)


def test_unknown_is_null_and_origins_follow_the_board():
    rows = {row.name: row for row in list_counters(
        twin.predict(twin.deploy(build("kws"), "nucleo_l4r5zi")))}
    assert rows["load and store waits"].value is None
    assert rows["load and store waits"].silicon == "DWT lsu, 8 bits"
    assert rows["instructions"].silicon is None and rows["instructions"].emulated == "qemu"
    host = {row.name: row for row in list_counters(
        twin.predict(twin.deploy(build("kws"), "host")))}
    assert host["mispredictions"].silicon == "perf branch_misses"


def test_document_has_counters_and_the_cold_start():
    placed = twin.deploy(build("ad"), "nucleo_l4r5zi")
    written = to_document(twin.predict(placed, temperature="cold"), counters=True)
    cold = json.loads(json.dumps(written))["cold_start"]
    assert cold["total_us"] == pytest.approx(sum(cold["parts_us"].values()))
    assert cold["interval_us"]["low"] < cold["total_us"] < cold["interval_us"]["high"]
    assert len(written["counters"]) >= LEAST
    assert "cold_start" not in to_document(twin.predict(placed))
