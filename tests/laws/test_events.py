"""Every event means one thing: its cause, what occurred, what was exposed, cycles and joules.

The tables are `tests/made/event_table.py` and `event_table_npu.py`; what only a whole prediction
has (calls of the runtime, transfers, cache maintenance, what being powered costs) is below.
"""

from __future__ import annotations

import math

import pytest
from event_table import BUS, CODE, CORE, DATA
from event_table_npu import EPOCHS
from made_bills import LEDGER, ROUND, Case, Line, busy, kernel, list_lines
from made_cases import for_each
from made_graphs import conv_graph, one_layer, tensor

from hwmodels.counts import CAUSE_GROUPS, CAUSES, EVENTS, Bill, make_bill
from hwmodels.prices import add_background, derive_prices
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.network.graph import Graph, Layer
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction

CASES = (*CORE, *CODE, *DATA, *BUS, *EPOCHS)
POWERED = ("clock_tree", "leakage", "sleep", "npu_idle")


def agrees(found: Line, line: Line) -> bool:
    """Whether a line is as worked out by hand."""
    return (found.cause, found.event, found.place) == (line.cause, line.event, line.place) and (
        (found.occurred, found.exposed, found.cycles, found.pj)
        == pytest.approx((line.occurred, line.exposed, line.cycles, line.pj), rel=1e-9, abs=1e-9))


@for_each(CASES, name=lambda case: case.name)
def test_a_bill_has_the_lines_worked_out_by_hand(case: Case):
    found = list_lines(case.bill())
    assert sorted(found) == sorted((line.event, line.place) for line in case.lines)
    for line in case.lines:
        assert agrees(found[line.event, line.place], line), (found[line.event, line.place], line)


@for_each((*DATA, *BUS), name=lambda case: case.name)
def test_what_an_access_costs_belongs_to_its_operand(case: Case):
    """The core's own lines belong to none, lines of a memory or cache to the data walked."""
    for line in case.bill().lines:
        assert line.operand == ("input" if line.place else ""), line


@for_each(CASES, name=lambda case: case.name)
def test_energy_is_of_what_occurred_and_time_of_what_is_exposed(case: Case):
    """For every line: the price at its place, times the one or the other."""
    counts, prices = case.run()
    bill = make_bill(counts, prices)
    assert len(bill.lines) == len(counts.lines)
    for line, count in zip(bill.lines, counts.lines, strict=True):
        price = prices.price(count.event, count.place)
        assert (line.event, line.place, line.operand, line.clock) == (
            count.event, count.place, count.operand, price.clock)
        assert line.cycles == count.exposed * price.cycles
        assert line.energy_pj == count.occurred * price.pj


def perceptron() -> Graph:
    """16 inputs, 8 outputs: 128 bytes of weights and 32 of bias."""
    return one_layer("fully_connected", [
        tensor((1, 16)), tensor((8, 16), data="random"), tensor((8,), "int32", "random")],
        [tensor((1, 8))])


def predicted_on_core() -> Prediction:
    """A layer whose weights come by DMA, on the ledger board."""
    deployment = deploy(perceptron(), LEDGER, runtime="cmsis-nn")
    return predict(deployment.replace({"placement.weights_via": "dma1",
                                       "placement.tiles": "near"}))


def predicted_offloaded() -> Prediction:
    """96 numbers made on the NPU, whose softmax the host computes."""
    first = one_layer("fully_connected", [
        tensor((1, 16)), tensor((96, 16), data="random"), tensor((96,), "int32", "random")],
        [tensor((1, 96))])
    last = Layer(index=1, name="softmax", op="softmax", inputs=(3,), outputs=(4,))
    graph = Graph(name="made", source="made", sha256="0" * 64, layers=(*first.layers, last),
                  tensors=(*first.tensors, tensor((1, 96), name="out")), inputs=(0,), outputs=(4,))
    return predict(deploy(graph, ROUND, runtime="neural-art").replace({"offload.host": "1"}))


def check(bill: Bill, *lines: Line) -> None:
    found = list_lines(bill)
    for line in lines:
        assert agrees(found[line.event, line.place], line), (found[line.event, line.place], line)


def test_collecting_windows_is_copying_block_by_block():
    """3x3 over 8x6x3, padded: 48 pixels, 352 of 432 positions inside, 27 elements each.

    A window is six times four elements and three; all instructions up to there are `data_copy`.
    """
    deployment = deploy(conv_graph(), LEDGER, runtime="cmsis-nn")
    (conv,), = lower_network(deployment)
    trips = {one.name: one.trips for one in conv.blocks if one.cause == "data_copy"}
    assert trips == {
        "gather pixel": 48, "gather line": 144, "gather position": 352, "pad position": 80,
        "copy call": 352, "fill call": 80, "fill byte": 80, "widen four": 288, "widen": 144}
    apart = Case(name="", lines=(), work=kernel(
        *(one for one in conv.blocks if one.cause == "data_copy"))).bill()
    copied, = (line for line in apart.lines if line.cause == "data_copy")
    assert copied.exposed == copied.cycles == copied.occurred
    check(predict(deployment).bill, Line(
        "data_copy", "copy_issue", "copying", copied.occurred, copied.occurred, copied.occurred,
        1000 * copied.occurred))
    rest = kernel(*(one for one in conv.blocks if one.cause != "data_copy"))
    assert not Case(name="", work=rest, lines=()).bill().cycles("cpu", "data_copy")


def test_stepping_an_operator_whose_data_engines_move():
    """Two copies of 96 bytes side by side: four engines handed over, 6157 host cycles to step."""
    first = one_layer("fully_connected", [
        tensor((1, 16)), tensor((96, 16), data="random"), tensor((96,), "int32", "random")],
        [tensor((1, 96))])
    last = Layer(index=1, name="twice", op="concatenation", inputs=(3, 3), outputs=(4,),
                 options=(("axis", 1),))
    graph = Graph(name="made", source="made", sha256="0" * 64, layers=(*first.layers, last),
                  tensors=(*first.tensors, tensor((1, 192))), inputs=(0,), outputs=(4,))
    _, stepped = predict(deploy(graph, ROUND, runtime="neural-art")).tasks
    check(stepped.bill, Line("launch", "epoch_host_cycle", "pre", 140, 140, 140, 140_000),
          Line("launch", "epoch_host_cycle", "post", 70, 70, 70, 70_000),
          Line("launch", "epoch_host_cycle", "stepping", 6157, 6157, 6157, 6_157_000),
          Line("sram_wait", "npu_ram_byte", "npuRAM3", 384, 0, 0, 1152))


def test_calls_and_transfers_of_a_prediction():
    """Three bursts of 64 bytes: read in 2 (1 + 2 + 20) core cycles, written in 16, set up in 10.

    Nothing comes before the first layer that could hide them. A byte is a sixteenth of an array
    read of 100 pJ.
    """
    prediction = predicted_on_core()
    calls = prediction.deployment.runtime.dispatch_cycles
    assert calls > 0
    check(prediction.bill,
          Line("dma_wait", "dma_wait", "flash", 196, 196, 196, 98_000),
          Line("dma_wait", "dma_byte", "flash", 160, 0, 0, 1_000),
          Line("kernel_call", "kernel_dispatch", "", 1, 1, calls, 1000 * calls))


def test_what_being_powered_costs_while_a_core_works():
    """100 cycles of 10 ns: 200 pJ of clock tree each, 2 pJ of leakage a nanosecond."""
    case = Case(name="", work=kernel(busy(100)), lines=())
    prices = derive_prices(LEDGER)
    check(add_background(case.bill(), LEDGER, prices),
          Line("idle", "clock_tree", "", 100, 0, 0, 20_000),
          Line("idle", "leakage", "", 1000, 0, 0, 2_000))


def test_maintenance_of_the_cache_and_waiting_for_each_other():
    """96 bytes are three lines of four cycles; NPU and host wait while the other one works."""
    bill = predicted_offloaded().bill
    host, npu = bill.cycles("cpu"), bill.cycles("npu")
    passed_ns = host / 0.8 + npu
    assert min(host, npu) > 0
    maintained, = (line for line in bill.lines if line.event == "cache_clean")
    assert (maintained.cause, maintained.occurred, maintained.exposed, maintained.cycles,
            maintained.energy_pj) == ("cache_maintenance", 3, 3, 12, 12_000)
    check(bill, Line("idle", "sleep", "", 0.8 * npu, 0, 0, 0),
          Line("idle", "npu_idle", "", 1.25 * host, 0, 0, 12.5 * host),
          Line("idle", "clock_tree", "", 0.8 * passed_ns, 0, 0, 160 * passed_ns),
          Line("idle", "leakage", "", passed_ns, 0, 0, 2 * passed_ns))


def test_weights_copied_to_the_chip_are_priced_once():
    """1536 + 384 bytes of the flash, two in a cycle of 200 MHz, to a pool of 8 bytes a cycle."""
    graph = predicted_offloaded().deployment.graph
    setup = predict(deploy(graph, ROUND, runtime="neural-art", weights="npuRAM4")).setup
    check(setup, Line("external_memory", "npu_external_wait", "octoFlash", 4800, 4800, 4800, 0),
          Line("external_memory", "npu_external_byte", "octoFlash", 1920, 0, 0, 528_000),
          Line("sram_wait", "npu_ram_byte", "npuRAM4", 1920, 0, 0, 5_760))


@pytest.fixture(scope="module")
def met() -> Bill:
    """All lines of this file's tables and predictions."""
    bills = [case.bill() for case in CASES]
    bills += [predicted_on_core().bill, predicted_offloaded().bill]
    return Bill(tuple(line for bill in bills for line in bill.lines))


def test_every_event_and_every_cause_has_a_row(met: Bill):
    listed = {line.event for case in CASES for line in case.lines}
    whole = {"kernel_dispatch", "dma_wait", "dma_byte", "cache_clean", *POWERED}
    assert listed | whole == set(EVENTS)
    assert {line.event for line in met.lines} == set(EVENTS)
    assert set(met.causes()) == set(CAUSES) and len(CAUSES) == 20
    assert [cause for group in CAUSE_GROUPS.values() for cause in group] == list(CAUSES)


def test_causes_sum_to_the_bill(met: Bill):
    for clock in met.clocks():
        assert math.fsum(met.cycles(clock, cause) for cause in CAUSES) == pytest.approx(
            met.cycles(clock))
    assert math.fsum(met.energy_pj(cause) for cause in CAUSES) == pytest.approx(met.energy_pj())


def test_what_only_costs_energy_is_never_exposed(met: Bill):
    energy_only = {event.name for event in EVENTS.values() if event.description.startswith(
        "energy of")}
    assert energy_only >= {"clock_tree", "leakage", "npu_mac", "npu_ram_byte", "dma_byte"}
    for line in met.lines:
        if line.event in energy_only:
            assert line.exposed == line.cycles == 0
