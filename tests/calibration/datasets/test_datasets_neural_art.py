"""Published NPU epochs as the model asks for them, and the targets they set it."""

import sys
from pathlib import Path

import pytest

from tests.oracles.neural_art_epochs import (
    depthwise_stride,
    find_scatter,
    read_compiled_epochs,
    read_document_epoch,
    read_measured_epochs,
)

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmarks.accuracy.npu import (
    check_compiler,
    check_document,
    fit_hand_over,
    fit_machine,
    load_npu,
)


def test_measured_epochs_keep_what_the_table_says():
    rows = {row.epoch.name: row for row in read_measured_epochs()}
    kinds = [row.epoch.kind for row in rows.values()]
    assert (kinds.count("hw"), kinds.count("hybrid"), kinds.count("sw")) == (15, 5, 3)
    conv = rows["EpochBlock_72"]
    # conv:1 memcpy.identity:1 dmain:3 dmaout:2, npuRAM5:20/0 npuRAM4:21120/25600
    assert len(conv.epoch.transfers) == 5
    for way, size in (("in", 21120 + 20), ("out", 25600)):
        assert sum(one.bytes for one in conv.epoch.transfers if one.direction == way) == size
    assert [work.kind for work in conv.epoch.units] == ["CONV_ACC"]
    assert conv.core_npu_cycles == 20695 and conv.write_bytes == 133120
    assert rows["EpochBlock_11"].read_bytes is None


def test_an_epoch_the_page_cut_off_is_that_with_the_same_bytes_and_cycles():
    rows = {row.epoch.name: row for row in read_measured_epochs()}
    assert rows["EpochBlock_67"].epoch.operations == rows["EpochBlock_77"].epoch.operations


@pytest.mark.parametrize(("copied", "rest", "beats", "scattered"), [
    # (copies in, copies out, others in, others out); EpochBlock_5, _72, _74, _168 of the table
    (6400, (771, 1285), 8200 / 1.25, (False, True, False, False)),
    (10240, (10880, 15360), 20800 / 1.25, (True, False, False, True)),
    (0, (15360, 5120), 19200 / 1.25, (False, False, True, False)),
    (1280, (771, 1285), 1720 / 1.25, (True, False, False, False)),
    (0, (1028, 257), 257 / 1.25, (False, False, False, False))])
def test_scatter_follows_from_the_compilers_beats(copied, rest, beats, scattered):
    assert find_scatter(copied, rest, beats) == scattered


@pytest.mark.parametrize(("ops", "moved", "stride"), [
    # epochs 9, 6 and 5 of MobileNetV2-0.5-128 compiled by 3.0.0
    (1638400, {"octoFlash": (720, 0), "npuRAM5": (81920, 81920)}, 1),
    (1867776, {"octoFlash": (864, 0), "npuRAM5": (196608, 49152)}, 2),
    (3538944, {"octoFlash": (384, 0), "npuRAM5": (65536, 196608)}, 0)])
def test_depthwise_epochs_are_known_by_their_operations(ops, moved, stride):
    assert depthwise_stride(ops, moved) == stride


def test_compilers_rule_is_exact_on_nineteen_of_twenty():
    verdict, = check_compiler(load_npu())
    assert verdict.n == len(read_compiled_epochs()) == 221
    assert verdict.met, verdict.reached


def test_document_epoch_adds_up_and_meets_its_targets():
    row = read_document_epoch()
    for pool, reads, writes in (("npuRAM5", 19600, 8820), ("octoFlash", 4608, 0)):
        ours = [one for one in row.epoch.transfers if one.pool == pool]
        assert sum(one.bytes for one in ours if one.direction == "in") == reads
        assert sum(one.bytes for one in ours if one.direction == "out") == pytest.approx(writes)
    assert row.read_bytes == 14080 + 10208 and row.write_bytes == 7960
    for verdict in check_document(load_npu()):
        assert verdict.met, f"{verdict.what}: {verdict.reached}"


def test_board_file_states_what_the_fit_finds():
    npu = load_npu()
    hardware = [row for row in read_measured_epochs() if row.epoch.kind == "hw"]
    machine, hand_over = fit_machine(hardware, npu), fit_hand_over(hardware, npu)
    assert machine.start_cycles == pytest.approx(npu.start_cycles, abs=2)
    assert machine.weight_ahead_bytes == npu.weight_ahead_bytes
    assert machine.interfaces[0].write_gap_cycles == pytest.approx(
        npu.interfaces[0].write_gap_cycles, abs=0.002)
    for pool in ("npuRAM3", "npuRAM4", "npuRAM5", "npuRAM6"):
        assert machine.pool(pool).read_latency_cycles == pytest.approx(
            npu.pool(pool).read_latency_cycles, abs=0.02)
    stated, found = npu.hand_over, hand_over
    for name in ("pre_cycles", "pre_engine_cycles", "post_cycles", "post_engine_cycles"):
        assert getattr(found, name) == pytest.approx(getattr(stated, name), abs=0.6)
    for name in ("pre_unit_cycles", "post_unit_cycles"):
        prices = dict(getattr(stated, name))
        for kind, cycles in getattr(found, name):
            assert cycles == pytest.approx(prices[kind], abs=0.6)
