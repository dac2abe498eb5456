"""Masters beside the core and weights that come by DMA: off by default, conserved, refused."""

from __future__ import annotations

import math

import pytest

from hwmodels.bus.transfer import copy_cycles
from hwmodels.errors import TwinError
from twin.deployment.deploy import deploy
from twin.deployment.transfers import plan_buffers
from twin.pricing.inference import predict


@pytest.fixture(scope="module")
def plain():
    return deploy("kws", "nucleo_l4r5zi")


def cycles(prediction, cause: str | None = None) -> float:
    return prediction.bill.cycles("cpu", cause)


def test_nothing_moves_by_default(plain):
    prediction = predict(plain)
    assert cycles(prediction, "bus_contention") == cycles(prediction, "dma_wait") == 0
    assert plain.buffers is None and plain.loads == ()


def test_a_busy_master_adds_its_contention_and_nothing_else(plain):
    before = predict(plain)
    after = predict(plain.replace({"load.dma1.memory": "sram",
                                   "load.dma1.bytes_per_second": "20e6"}))
    waited = cycles(after, "bus_contention")
    assert waited > 0
    assert cycles(after) == pytest.approx(cycles(before) + waited, abs=1e-6)
    assert cycles(after) == math.fsum(layer.bill.cycles("cpu") for layer in after.layers)
    assert {line.operand for line in after.bill.lines if line.event == "bus_contention"} >= {
        "input", "output"}


def test_a_master_on_another_bank_costs_nothing(plain):
    moved = plain.replace({"load.dma1.memory": "sram", "load.dma1.bytes_per_second": 20e6,
                           "load.dma1.bank": 2})
    assert predict(moved).bill == predict(plain).bill


def test_a_load_is_changed_path_by_path(plain):
    first = plain.replace({"load.dma1.memory": "sram", "load.dma1.bytes_per_second": 1e6})
    second = first.replace({"load.dma1.write": "true", "load.dma1.burst_beats": 8})
    load, = second.loads
    assert (load.bytes_per_second, load.write, load.burst_beats) == (1e6, True, 8)


def test_buffers_take_turns():
    graph = deploy("ad", "nucleo_h7a3zi_q").executed
    buffers = plan_buffers(graph)
    weighted = [size for size in buffers.layer_bytes if size]
    assert buffers.size_bytes == sum(-(-max(weighted[turn::2]) // 32) * 32 for turn in (0, 1))
    assert sum(buffers.layer_bytes) == sum(
        -(-tensor.size_bytes // 16) * 16 for tensor in graph.tensors if tensor.is_constant)


def test_weights_by_dma_wait_for_what_the_layer_before_does_not_hide(plain):
    """wait = setup + max(0, copy - cycles since the layer that used the other buffer)."""
    moved = plain.replace({"placement.weights_via": "dma1"})
    prediction, board = predict(moved), plain.board
    hiding = 0.0
    for size, layer in zip(moved.buffers.layer_bytes, prediction.layers, strict=True):
        waited = layer.bill.cycles("cpu", "dma_wait")
        own = layer.bill.cycles("cpu") - waited
        if not size:
            assert waited == 0
            hiding += own
            continue
        copy = copy_cycles(board, board.dma_controller("dma1"), board.memory("flash"),
                           board.memory("sram"), size)
        assert waited == pytest.approx(50 + max(0.0, copy - hiding), abs=1 / 64)
        hiding = own
    assert any("busy" in warning for warning in prediction.warnings)


def test_weights_by_dma_leave_flash_to_the_copies(plain):
    moved = plain.replace({"placement.weights_via": "dma1"})
    lines = predict(moved).bill.lines
    assert not [line for line in lines if line.event == "flash_wait" and line.operand == "weights"]
    assert sum(line.occurred for line in lines if line.event == "dma_byte") == sum(
        moved.buffers.layer_bytes)
    assert moved.ram_bytes == plain.ram_bytes + moved.buffers.size_bytes
    back = moved.replace({"placement.weights_via": "none"})
    assert predict(back).bill == predict(plain).bill


@pytest.mark.parametrize(("board", "settings", "message"), [
    ("nucleo_l4r5zi", {"load.dma1.memory": "sram"}, "bytes_per_second: is required"),
    ("nucleo_l4r5zi", {"load.dma7.memory": "sram"}, "nearest: load.dma1"),
    ("nucleo_l4r5zi", {"load.dma1.bytes_per_second": "much"}, "accepted: a number"),
    ("nucleo_l4r5zi", {"load.dma1.memory": "flash", "load.dma1.bytes_per_second": 1}, "on a bus"),
    ("nucleo_l4r5zi", {"placement.weights_via": "dma9"}, "dma1"),
    ("nucleo_h7a3zi_q", {"placement.weights_via": "mdma", "placement.tiles": "sram"},
     "accepted: itcm, dtcm"),
    ("nucleo_h7a3zi_q", {"placement.weights_via": "mdma", "placement.tiles": "moon"}, "moon"),
])
def test_what_cannot_be_is_refused(board, settings, message):
    with pytest.raises(TwinError, match=message):
        deploy("kws", board).replace(settings)


def test_buffers_that_do_not_fit_are_refused():
    with pytest.raises(TwinError, match="does not fit"):
        deploy("ad", "nucleo_h7a3zi_q").replace({"placement.weights_via": "mdma"})


@pytest.mark.parametrize(("path", "value", "accepted"), [
    ("load.dma1.write", "maybe", "'maybe'; accepted: true, false"),
    ("load.dma1.burst_beats", "0", "load.dma1.burst_beats: 0; accepted: 1 or more"),
    ("load.dma1.burst_beats", "2.5", "accepted: a whole number"),
    ("load.dma1.bytes_per_second", "10MiB", "'10MiB'; accepted: a number of bytes a second"),
])
def test_a_load_that_cannot_be_names_what_would_be_accepted(plain, path, value, accepted):
    with pytest.raises(TwinError) as refused:
        plain.replace({"load.dma1.memory": "sram", "load.dma1.bytes_per_second": 1e6,
                       path: value})
    assert accepted in str(refused.value)


def test_both_buffers_are_named_by_what_they_take_together(plain):
    via = plain.replace({"placement.weights_via": "dma1"})
    assert any(f"two buffers, {via.buffers.size_bytes:,} bytes together" in text
               for text in predict(via).warnings)
