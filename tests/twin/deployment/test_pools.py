"""Buffers find their pools: nothing overlaps, nothing is larger than its pools, the rest spills."""

import itertools
import random

import pytest
from made_graphs import one_layer, tensor

from hwmodels.board.file import change_board, load_board
from hwmodels.errors import BoardError
from twin.deployment.accelerator.pools import Demand, Wish, plan_pools
from twin.deployment.deploy import deploy
from twin.deployment.placement import ArenaSlot
from twin.errors import DoesNotFitError, PlacementError, UsageError
from twin.pricing.inference import predict
from twin.runtimes import load_runtime
from twin.runtimes.compiler import Planner

BOARD = load_board("stm32n6570_dk")
POOLS = [pool.name for pool in BOARD.npu.pools]
KIB = 1024


def shrunk(size, names=POOLS):
    return {f"npu.pools.{name}.size_bytes": size for name in names if name != "octoFlash"}


def ends(plan, slots, board):
    """(memory, first byte, end, first layer, last layer) of every buffer."""
    return [(plan.homes[slot.tensor].memory, plan.homes[slot.tensor].address,
             plan.homes[slot.tensor].address + slot.size_bytes, slot.first_layer, slot.last_layer)
            for slot in slots]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pool", [None, "npuRAM5"])
def test_buffers_alive_together_never_overlap_and_stay_in_their_pools(seed, pool):
    chooser = random.Random(seed)
    board = change_board(BOARD, shrunk(f"{chooser.choice((40, 100, 448))}KiB"))
    slots = []
    for number in range(20):
        first = chooser.randrange(10)
        slots.append(ArenaSlot(name=str(number), tensor=number, offset_bytes=number * 60 * KIB,
                               size_bytes=chooser.randrange(1, 40 * KIB), first_layer=first,
                               last_layer=first + chooser.randrange(3)))
    constants = tuple((100 + n, chooser.randrange(1, 30 * KIB)) for n in range(5))
    plan = plan_pools(board, board.npu, Demand(
        slots=tuple(slots), constants=constants, arena=Wish(memory="npu_ram", pool=pool),
        weights=Wish(memory="npu_ram"), reserved={"sram": 60000, "npu_ram": 4096}, layers=12,
        alignment_bytes=8, name="made"))
    kept = [ArenaSlot(name="w", tensor=tensor_id, offset_bytes=0, size_bytes=size, first_layer=0,
                      last_layer=12) for tensor_id, size in constants if tensor_id in plan.homes]
    for one, other in itertools.combinations(ends(plan, [*slots, *kept], board), 2):
        together = one[3] <= other[4] and other[3] <= one[4]
        assert not (together and one[0] == other[0] and one[1] < other[2] and other[1] < one[2])
    for memory, begin, end, _, _ in ends(plan, [*slots, *kept], board):
        whole = board.memory(memory)
        size = sum(p.size_bytes for p in board.npu.pools if p.memory == memory)
        assert whole.address + whole.size_bytes - size <= begin
        assert end <= whole.address + whole.size_bytes
    assert all(used <= board.npu.pool(name).size_bytes for name, used in plan.used)


def test_what_does_not_fit_a_pool_goes_on_to_the_next_and_says_so():
    deployment = deploy("mobilenet_v1_1.0_224", BOARD, runtime="neural-art")
    assert not deployment.notes
    small = deployment.replace(shrunk("64KiB", ["npuRAM3", "npuRAM4", "npuRAM5", "npuRAM6"]))
    assert any("placed in sram" in note for note in small.notes)
    assert dict(small.plan.pools.used)["cpuRAM2"] > 64 * KIB
    assert predict(small).time_us > predict(deployment).time_us
    engines = {e.pool for step in small.plan.steps if step.task for e in step.task.transfers}
    assert "cpuRAM2" in engines
    with pytest.raises(DoesNotFitError, match="buffer of 802,816 bytes"):
        deployment.replace(shrunk("64KiB"))


def test_pools_are_asked_for_by_name_in_any_spelling():
    for name in ("npuRAM4", "npuram4", "NPU-RAM4"):
        deployment = deploy("kws", BOARD, runtime="neural-art", weights=name)
        assert (deployment.weights, deployment.weights_pool) == ("npu_ram", "npuRAM4")
        assert set(dict(deployment.plan.pools.used)) == {"npuRAM3", "npuRAM4"}
    arena = deploy("kws", BOARD, runtime="neural-art", arena="npuRAM6")
    assert dict(arena.plan.pools.used) == {"npuRAM6": 16000}
    assert arena.replace({"npu.engines": 8}).arena_pool == "npuRAM6"
    with pytest.raises(UsageError, match="did you mean npuRAM3"):
        deploy("kws", BOARD, runtime="neural-art", arena="npuRAM33")
    with pytest.raises(PlacementError, match=r"dtcm.*accepted: npu_ram, sram, psram, or"):
        deploy("kws", BOARD, runtime="neural-art", arena="dtcm")


def test_weights_that_find_no_room_stay_in_flash():
    deployment = deploy("mobilenet_v1_1.0_224", BOARD, runtime="neural-art", weights="npu_ram")
    assert any("left in flash" in note for note in deployment.notes)
    pools = {e.pool for step in deployment.plan.steps if step.task for e in step.task.transfers
             if e.operand == "weights"}
    assert "octoFlash" in pools and any(pool.startswith("npuRAM") for pool in pools)
    assert deployment.ram_bytes <= 1792 * KIB


def test_weights_larger_than_the_pool_of_the_flash_are_refused():
    with pytest.raises(DoesNotFitError, match="octoFlash has 1,024 bytes"):
        deploy("kws", BOARD, runtime="neural-art", weights="octoFlash").replace(
            {"npu.pools.octoFlash.size_bytes": "1KiB"})


def test_tensors_inside_an_epoch_take_no_memory():
    # Published for this network under ST Edge AI 3.0.0: 588 KiB of activations, as its pads and
    # clips are fused; 802,816 + 401,408 bytes of a layer's input and output without padding
    deployment = deploy("mobilenet_v1_0.5_224", BOARD, runtime="neural-art")
    assert deployment.placement.arena_bytes == 588 * KIB


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_epochs_ask_for_no_more_engines_and_units_than_there_are(count):
    board = change_board(BOARD, {"npu.engines": max(3, count), "npu.units.CONV_ACC.count": count,
                                 "npu.units.ARITH_ACC.count": count})
    deployment = deploy("mobilenet_v2_1.0_224", board, runtime="neural-art")
    for step in deployment.plan.steps:
        if step.kind == "task":
            assert len(step.task.transfers) <= max(3, count)
            for kind in ("CONV_ACC", "ARITH_ACC"):
                assert sum(u.count for u in step.task.units if u.kind == kind) <= count


def test_fewer_engines_or_units_are_never_faster_in_the_npu():
    def core(changes):
        prediction = predict(deploy("ic", change_board(BOARD, changes), runtime="neural-art"))
        return sum(epoch.run.core_npu_cycles for epoch in prediction.tasks)

    for path in ("npu.engines", "npu.units.CONV_ACC.count", "npu.units.ARITH_ACC.count"):
        whole = dict.fromkeys([path], {"npu.engines": 10}.get(path, 4))
        assert core({path: 3}) >= 0.99 * core(whole)  # order of service aside


def test_a_layer_without_engines_or_types_for_it_stays_on_the_host_and_says_why():
    offload = load_runtime("neural-art").offload
    floats = one_layer("add", [tensor((1, 4), "float32"), tensor((1, 4), "float32")],
                       [tensor((1, 4), "float32")])
    bytes8 = one_layer("add", [tensor((1, 4)), tensor((1, 4))], [tensor((1, 4))])
    few = change_board(BOARD, {"npu.engines": 2}).npu

    def why(graph, npu):
        (reason,) = offload.rules.group(graph, Planner(
            npu=npu, offload=offload, weights="flash", arena="npu_ram")).reasons
        return reason

    assert "float32" in why(floats, BOARD.npu)
    assert why(bytes8, BOARD.npu) == ""
    assert why(bytes8, few) == "needs 3 stream engines of 2"


def test_an_epoch_is_billed_by_the_work_of_its_layers():
    deployment = deploy("ic", BOARD, runtime="neural-art")
    graph = deployment.executed
    fused = [step for step in deployment.plan.steps if len(step.layers) > 1]
    assert fused
    for step in fused:
        for position, share in zip(step.layers, step.shares, strict=True):
            if graph.layers[position].op == "add":
                assert share < 0.1  # beside a convolution of hundreds of MACs an element


@pytest.mark.parametrize(("wish", "weights"), [("npuRAM3", None), ("npuRAM6", None),
                                               ("npuRAM4", None), (None, "npuRAM6")])
def test_what_a_named_pool_cannot_hold_spills_to_the_others_before_it_leaves_the_chip(
        wish, weights):
    # 1,505,280 bytes of activations, one buffer of 1,204,224 among them; the pools have 1,835,008
    deployment = deploy("mobilenet_v2_1.0_224", BOARD, runtime="neural-art", arena=wish,
                        weights=weights)
    assert {home.memory for home in deployment.plan.pools.homes.values()} == {"npu_ram"}
    plain = predict(deploy("mobilenet_v2_1.0_224", BOARD, runtime="neural-art")).time_us
    assert predict(deployment).time_us < 1.01 * plain


def test_a_pool_too_small_for_weights_says_where_they_went():
    deployment = deploy("kws", change_board(BOARD, {"npu.pools.npuRAM4.size_bytes": 1000}),
                        runtime="neural-art", weights="npuRAM4")
    assert any("of the weights" in note and "placed in npuRAM5" in note
               for note in deployment.notes), deployment.notes


def test_a_runtime_set_later_is_placed_as_one_set_at_first():
    at_first, bare = (deploy("ic", BOARD, runtime=name) for name in ("neural-art", None))
    later = bare.replace({"runtime": "neural-art"})
    assert (later.arena, later.weights) == (at_first.arena, at_first.weights)
    assert predict(later).bill == predict(at_first).bill
    assert later.replace({"runtime": bare.runtime.identity}).arena == bare.arena
    asked = bare.replace({"runtime": "neural-art", "placement.arena": "sram"})
    assert asked.arena == "sram"


def test_the_memory_outside_the_chip_is_not_clocked_above_its_rating():
    with pytest.raises(BoardError, match="200"):
        change_board(BOARD, {"clocks.xspi.frequency_hz": "400MHz"})
    assert change_board(BOARD, {"clocks.xspi.frequency_hz": "100MHz"}).clock("xspi")
