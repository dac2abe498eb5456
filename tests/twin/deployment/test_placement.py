"""Arena plans by hand: lives, offsets, scratch, what is shared, and the weights' layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from made_graphs import chain, tensor

from calibration.datasets import published_rows
from hwmodels.schedule.task import TaskBuffer
from twin.attribution.published import build_published, deploy_row
from twin.deployment.memories import check_fit
from twin.deployment.placement import (
    ArenaSlot,
    Fusion,
    Placement,
    align,
    layer_dtype,
    plan_placement,
    reads_packed,
    requantisation_bytes,
)
from twin.errors import PlacementError
from twin.network.graph import Graph, Layer, Quantization, Tensor, Window
from twin.network.operators import list_states
from twin.runtimes import load_runtime
from twin.runtimes.lowering import Site

RUNTIME = load_runtime("cmsis-nn")
ISA = "armv7e-m"


@dataclass(frozen=True)
class MadeRuntime:
    """A runtime whose scratch is stated by layer; all buffers at multiples of 16."""

    in_place: tuple[str, ...] = ()
    parameters_in: str = "arena"
    overlaps: bool = False
    fuses_pooling: bool = False
    alignment_bytes: int = 16
    scratch: Mapping[str, int] = field(default_factory=dict)
    dtype: str = "int8"
    files: tuple[str, ...] = ()

    def lowering(self, op: str, dtype: str, isa: str) -> MadeRuntime:
        assert isinstance(op, str) and (dtype, isa) == (self.dtype, ISA)
        return self

    def scratch_bytes(self, site: Site) -> int:
        assert site.layer in site.graph.layers and site.isa == ISA
        return self.scratch.get(site.layer.name, 0)


def made(tensors: list[Tensor], *layers: tuple[str, tuple[int, ...], tuple[int, ...]],
         inputs: tuple[int, ...] = (0,), outputs: tuple[int, ...] | None = None) -> Graph:
    """A graph of layers l0, l1, ...: operator, inputs, outputs."""
    named = tuple(replace(one, name=f"t{i}") for i, one in enumerate(tensors))
    return Graph(name="made", source="made", sha256="0" * 64, tensors=named, inputs=inputs,
                 outputs=outputs if outputs is not None else layers[-1][2],
                 layers=tuple(Layer(index=i, name=f"l{i}", op=op, inputs=read, outputs=written)
                              for i, (op, read, written) in enumerate(layers)))


def lives(plan: Placement) -> dict[str, tuple[int, int]]:
    """First and last layer of each buffer."""
    return {slot.name: (slot.first_layer, slot.last_layer) for slot in plan.arena}


def per_channel(count: int) -> Quantization:
    return Quantization(scales=(0.5,) * count, zero_points=(0,) * count)


def weights(scales: int = 1, **more: object) -> Tensor:
    return replace(tensor((3, 2), data="random"), **{"quantization": per_channel(scales), **more})


@pytest.mark.parametrize(("op", "given", "expected"), [
    # Eight bytes a channel of three, however many scales the file has.
    ("conv_2d", weights(), 24), ("depthwise_conv_2d", weights(), 24),
    ("transpose_conv_2d", weights(), 24), ("conv_2d", weights(3), 24),
    # One pair, or one for each scale.
    ("fully_connected", weights(), 8), ("fully_connected", weights(2), 16),
    ("fully_connected", weights(3), 24),
    # Float, and operands made by another layer, need none.
    ("conv_2d", weights(quantization=None), 0), ("conv_2d", weights(data=None), 0)])
def test_multipliers_and_shifts_a_layer_keeps(op, given, expected):
    made_of = [given, tensor((1, 2)), tensor((1, 1, 5, 3)), tensor((3,), "int32", "random")]
    graph = made(made_of, (op, (1, 0), (2,)), (op, (1, 0, 3), (2,)))
    assert [requantisation_bytes(graph, layer) for layer in graph.layers] == [expected] * 2


def test_a_layer_without_weights_keeps_no_multipliers():
    graph = made([tensor((1, 2)), tensor((1, 2)), weights()], ("relu", (0,), (1,)),
                 ("add", (0, -1), (1,)))
    assert [requantisation_bytes(graph, layer) for layer in graph.layers] == [0, 0]


@pytest.mark.parametrize(("where", "arena", "constants"), [("arena", 32, 48),
                                                           ("weights", 0, 80)])
def test_multipliers_are_of_the_arena_or_of_the_weights(where, arena, constants):
    """Three channels and one pair are 32 bytes; 6, 6 and 12 bytes of constants take 16 each."""
    graph = made([tensor((1, 2)), weights(), tensor((1, 3)), tensor((3,), "int32", "random"),
                  weights(), tensor((1, 3))],
                 ("conv_2d", (0, 1, 3), (2,)), ("fully_connected", (2, 4, -1), (5,)))
    plan = plan_placement(graph, MadeRuntime(parameters_in=where), ISA)
    assert (plan.parameter_bytes, plan.weights_bytes) == (arena, constants)
    assert plan.weight_offsets == ((1, 0), (3, 16), (4, 32))


def test_constants_are_laid_out_once_however_often_they_are_read():
    """Tensor 0 is one, and so is the last, which an input omitted does not stand for."""
    graph = made([weights(), tensor((1, 2)), tensor((1, 3)), tensor((1, 3)), weights()],
                 ("fully_connected", (1, 0, -1), (2,)), ("fully_connected", (2, 0, -1), (3,)),
                 inputs=(1,))
    plan = plan_placement(graph, MadeRuntime(), ISA)
    assert plan.weight_offsets == ((0, 0),) and plan.weights_bytes == 16


@pytest.mark.parametrize(("op", "read", "written", "expected"), [
    ("relu", "int8", "int8", "int8"), ("relu", "int16", "int16", "int16"),
    ("relu", "float32", "float32", "float32"), ("fully_connected", "int8", "float32", "float32"),
    ("quantize", "float32", "int8", "float32"), ("dequantize", "int8", "float32", "int8")])
def test_type_a_layer_works_on(op, read, written, expected):
    graph = made([tensor((1, 4), read), tensor((1, 4), written)], (op, (0,), (1,)))
    assert layer_dtype(graph, graph.layers[0]) == expected
    plan_placement(graph, MadeRuntime(dtype=expected), ISA)


def test_scratch_lives_in_its_layer_and_lies_where_there_is_room():
    """32, 48, 16 bytes and scratch of 20: l0 holds 32 + 48, l1 48 + 16 + 32 (20 rounded up)."""
    graph = made([tensor((1, 32)), tensor((1, 48)), tensor((1, 16))],
                 ("relu", (0,), (1,)), ("relu", (1,), (2,)))
    runtime = MadeRuntime(scratch={"l1": 20})
    plan = plan_placement(graph, runtime, ISA)
    assert plan.arena == (
        ArenaSlot(name="t0", tensor=0, offset_bytes=48, size_bytes=32, first_layer=0,
                  last_layer=0),
        ArenaSlot(name="t1", tensor=1, offset_bytes=0, size_bytes=48, first_layer=0,
                  last_layer=1),
        ArenaSlot(name="t2", tensor=2, offset_bytes=80, size_bytes=16, first_layer=1,
                  last_layer=1),
        ArenaSlot(name="scratch of l1", tensor=-2, offset_bytes=48, size_bytes=20, first_layer=1,
                  last_layer=1))
    assert (plan.arena_bytes, plan.live_bytes, plan.peak_layer) == (96, (80, 96), 1)
    assert plan.scratch_bytes == 20 and plan.slot(2) == plan.arena[2] and plan.slot(7) is None
    free = plan_placement(graph, runtime, ISA, Fusion(accelerated=(1,)))
    assert [slot.tensor for slot in free.arena] == [0, 1, 2] and free.scratch_bytes == 0
    assert plan_placement(graph, runtime, ISA, Fusion(accelerated=(0,))) == plan


def test_of_layers_that_hold_as_much_the_first_is_the_peak():
    assert plan_placement(chain([16, 32, 16]), MadeRuntime(), ISA).peak_layer == 0


def test_what_is_streamed_takes_no_room_and_ends_keep_inputs_alive():
    graph = chain([32, 48, 16, 16])
    plan = plan_placement(graph, MadeRuntime(), ISA, Fusion(
        buffers={1: TaskBuffer(tensor=1, size_bytes=0, first=0, last=1)}, ends={0: 1}))
    assert plan.slot(1).size_bytes == 0
    assert lives(plan) == {"t0": (0, 1), "t1": (0, 1), "t2": (1, 2), "t3": (2, 2)}
    assert plan.live_bytes == (32, 48, 32)


def test_a_buffer_a_compiler_keeps_has_the_size_and_the_life_it_states():
    plan = plan_placement(chain([32, 48, 16, 16]), MadeRuntime(), ISA, Fusion(
        buffers={1: TaskBuffer(tensor=1, size_bytes=20, first=1, last=2)}))
    assert lives(plan) == {"t0": (0, 0), "t1": (1, 2), "t2": (1, 2), "t3": (2, 2)}
    assert plan.slot(1).size_bytes == 20


def test_an_arena_of_several_memories_is_the_sum_of_its_parts():
    """The largest, t1, leaves the first memory; t0 and t2 share its place, one after the other."""
    plan = plan_placement(chain([32, 48, 16]), MadeRuntime(), ISA, rooms=(48, 48))
    assert (plan.arena_bytes, plan.parts_bytes, plan.first_bytes) == (80, (32, 48), 32)
    assert [slot.offset_bytes for slot in plan.arena] == [0, 32, 0]


@pytest.mark.parametrize(("dtype", "packed"), [
    ("int4", True), ("uint4", True), ("int8", False), ("uint8", False)])
def test_weights_of_four_bits_are_taken_apart_first(dtype, packed):
    graph = made([tensor((1, 2)), weights(dtype=dtype), tensor((1, 3)),
                  weights(dtype=dtype, data=None)],
                 ("fully_connected", (0, 1), (2,)), ("fully_connected", (0, 3), (2,)),
                 ("fully_connected", (0, -1), (2,)), ("relu", (0,), (2,)))
    assert [reads_packed(graph, layer) for layer in graph.layers] == [packed, False, False, False]


def test_a_network_of_one_layer_and_of_none():
    one = plan_placement(chain([16, 16]), MadeRuntime(), ISA)
    assert lives(one) == {"t0": (0, 0), "t1": (0, 0)} and one.live_bytes == (32,)
    none = plan_placement(made([tensor((1, 1))], inputs=(), outputs=()), MadeRuntime(), ISA)
    assert (none.arena, none.arena_bytes, none.live_bytes, none.peak_layer, none.scratch_bytes) \
        == ((), 0, (0,), 0, 0)


def test_an_alias_lives_as_long_as_what_it_renames():
    """t1 renames the input and is read again by the last layer; t4 is never read."""
    graph = made([tensor((1, 16)) for _ in range(5)], ("reshape", (0,), (1,)),
                 ("relu", (1,), (2,)), ("add", (2, 1), (3,)), ("reshape", (3,), (4,)),
                 outputs=(3,))
    assert lives(plan_placement(graph, MadeRuntime(), ISA)) == {
        "t0": (0, 2), "t2": (1, 2), "t3": (2, 3)}


def test_only_the_first_output_is_written_in_place():
    graph = made([tensor((1, 16)) for _ in range(4)], ("relu", (0,), (1,)),
                 ("relu", (1,), (2, 3)), outputs=(2,))
    plan = plan_placement(graph, MadeRuntime(in_place=("relu",)), ISA)
    first, second, third = (plan.slot(i).offset_bytes for i in (1, 2, 3))
    assert first == second != third


def test_an_output_larger_than_its_input_is_not_written_in_place():
    for sizes, same in (([16, 16, 17], False), ([16, 17, 16], True), ([16, 16, 16], True)):
        plan = plan_placement(chain(sizes), MadeRuntime(in_place=("relu",)), ISA)
        assert (plan.slot(1).offset_bytes == plan.slot(2).offset_bytes) is same


def test_overlaps_skip_what_has_no_buffer_and_go_on():
    """The first layer reads a constant; the second may write over the network's input."""
    graph = made([tensor((1, 32), data="random"), *[tensor((1, 32)) for _ in range(3)]],
                 ("relu", (0,), (1,)), ("relu", (2,), (3,)), inputs=(2,), outputs=(1, 3))
    apart, over = (plan_placement(graph, MadeRuntime(in_place=("relu",), overlaps=overlaps), ISA)
                   for overlaps in (False, True))
    assert (apart.arena_bytes, over.arena_bytes) == (96, 64)
    assert over.slot(2).offset_bytes == over.slot(3).offset_bytes != over.slot(1).offset_bytes


def test_a_chain_needs_its_two_largest_neighbours() -> None:
    # In a chain only input and output of a layer live together: 300 + 200, aligned to 16.
    plan = plan_placement(chain([100, 300, 200, 50]), RUNTIME, "armv7e-m")
    assert plan.arena_bytes == align(300, 16) + align(200, 16)
    assert plan.peak_layer == 1


def test_an_alias_shares_its_input() -> None:
    plan = plan_placement(chain([64, 64, 64], op="reshape"), RUNTIME, "armv7e-m")
    assert {slot.offset_bytes for slot in plan.arena} == {0}
    assert plan.arena_bytes == 64


def test_in_place_operators_share_a_dying_input() -> None:
    graph = chain([400, 400, 400])
    apart = plan_placement(graph, RUNTIME, "armv7e-m")
    # Working in place, the network's input is kept; a tool that lets outputs overlap takes it too.
    in_place = replace(load_runtime("x-cube-ai@9.0"), overlaps=False)
    shared = plan_placement(graph, in_place, "armv7e-m")
    assert apart.arena_bytes == 800
    assert shared.arena_bytes == 800
    assert shared.slot(1).offset_bytes == shared.slot(2).offset_bytes
    over = plan_placement(graph, load_runtime("x-cube-ai@9.0"), "armv7e-m")
    assert over.arena_bytes == 400 and over.live_bytes == (400, 400)


def branching(overlaps: bool) -> tuple[Graph, Placement]:
    """Layer 1 works in place on what layer 2 reads again: relu(t1) + t1."""
    tensors = tuple(Tensor(name=f"t{i}", shape=(1, 400), dtype="int8",
                           quantization=Quantization(scales=(1.0,), zero_points=(0,)))
                    for i in range(4))
    layers = (Layer(index=0, name="l0", op="relu", inputs=(0,), outputs=(1,)),
              Layer(index=1, name="l1", op="relu", inputs=(1,), outputs=(2,)),
              Layer(index=2, name="l2", op="add", inputs=(2, 1), outputs=(3,)))
    graph = Graph(name="branch", source="test", sha256="0", tensors=tensors, layers=layers,
                  inputs=(0,), outputs=(3,))
    runtime = replace(load_runtime("x-cube-ai@9.0"), overlaps=overlaps)
    return graph, plan_placement(graph, runtime, "armv7e-m")


@pytest.mark.parametrize("overlaps", [True, False])
def test_an_input_that_is_read_again_is_not_written_over(overlaps: bool) -> None:
    _, plan = branching(overlaps)
    kept, made = plan.slot(1), plan.slot(2)
    assert kept.last_layer == 2 and made.first_layer <= 2
    assert kept.offset_bytes + 400 <= made.offset_bytes or (
        made.offset_bytes + 400 <= kept.offset_bytes)
    assert plan.live_bytes[2] >= 800
    # What dies there may be: the sum lies where one of its summands was.
    assert plan.slot(3).offset_bytes in (kept.offset_bytes, made.offset_bytes)


def recurrent() -> Graph:
    """A filter of 16 steps between two element-wise layers; its state is tensor 4."""
    shapes = {"in": (1, 8), "first": (1, 8), "feature": (4, 8), "time": (4, 16), "state": (1, 64),
              "made": (1, 4), "last": (1, 4)}
    constant = {"feature", "time"}
    tensors = tuple(Tensor(
        name=name, shape=shape, dtype="int8",
        data=np.ones(shape, np.int8) if name in constant else None,
        quantization=Quantization(scales=(1.0,), zero_points=(0,)))
        for name, shape in shapes.items())
    layers = (Layer(index=0, name="l0", op="relu", inputs=(0,), outputs=(1,)),
              Layer(index=1, name="l1", op="svdf", inputs=(1, 2, 3, -1, 4), outputs=(5,),
                    options=(("rank", 1),)),
              Layer(index=2, name="l2", op="relu", inputs=(5,), outputs=(6,)))
    return Graph(name="svdf", source="test", sha256="0", tensors=tensors, layers=layers,
                 inputs=(0,), outputs=(6,))


@pytest.mark.parametrize("runtime", ["tflm-cmsis-nn", "x-cube-ai@9.0"])
def test_a_recurrent_state_keeps_its_place_from_one_inference_to_the_next(runtime: str) -> None:
    graph = recurrent()
    assert list_states(graph) == (4,)
    plan = plan_placement(graph, load_runtime(runtime), "armv7e-m")
    state = plan.slot(4)
    assert (state.first_layer, state.last_layer, state.size_bytes) == (0, 2, 64)
    for other in plan.arena:
        if other.tensor != 4:
            assert (other.offset_bytes + other.size_bytes <= state.offset_bytes
                    or state.offset_bytes + state.size_bytes <= other.offset_bytes)


def test_does_not_fit_names_both_numbers() -> None:
    with pytest.raises(PlacementError, match=r"needs 2,000 bytes, sram has 1,000 bytes"):
        check_fit("arena", 2000, "sram", 1000)
    check_fit("arena", 1000, "sram", 1000)


@pytest.mark.parametrize(("fuses", "rows", "kept", "input_ends"), [
    (True, 2, 2 * 6 * 5, 1), (True, 6, 180, 0), (False, 2, 180, 0)])
def test_of_a_convolution_pooled_right_away_the_rows_of_a_window_stay(
        fuses, rows, kept, input_ends):
    """Two rows of 6 columns and 5 channels; the input is read until the last window is pooled.

    A window over all rows keeps them all, so pooling is a layer of its own.
    """
    graph = made([tensor((1, 6, 6, 3)), tensor((5, 3, 3, 3), data="random"), tensor((1, 6, 6, 5)),
                  tensor((1, 6 // rows, 3, 5)), tensor((1, 6 // rows, 3, 5))],
                 ("conv_2d", (0, 1), (2,)), ("max_pool_2d", (2,), (3,)), ("relu", (3,), (4,)))
    graph = replace(graph, layers=(graph.layers[0], replace(graph.layers[1], window=Window(
        kernel=(rows, 2), stride=(rows, 2), padding=(0, 0, 0, 0))), graph.layers[2]))
    plan = plan_placement(graph, MadeRuntime(fuses_pooling=fuses), ISA)
    assert {slot.name: slot.size_bytes for slot in plan.arena}["t2"] == kept
    assert lives(plan)["t0"] == (0, input_ends)
    # Read twice, or by the user: whole.
    for other in (replace(graph, outputs=(4, 2)), replace(graph, layers=(
            *graph.layers[:2], replace(graph.layers[2], op="add", inputs=(3, 2))))):
        whole = plan_placement(other, MadeRuntime(fuses_pooling=fuses), ISA)
        assert {slot.name: slot.size_bytes for slot in whole.arena}["t2"] == 180


@pytest.mark.parametrize(("model", "published_kib", "most"), [
    ("squeezenet_v1.1_224", 756.25, 1.01), ("tiny_yolo_v2_224", 217.81, 1.6)])
def test_arenas_of_pooled_networks_are_those_published(model, published_kib, most):
    """X-CUBE-AI 7.3.0 and 8.1.0 by ST's model zoo; 1,150 and 1,181 KiB with whole outputs."""
    row = next(row for row in published_rows(use="fit") if (row.model or "").startswith(model))
    placed = deploy_row(row, build_published(row.model)).placement
    assert 1 <= placed.arena_bytes / 1024 / published_kib <= most
