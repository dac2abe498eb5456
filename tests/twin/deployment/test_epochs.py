"""A graph becomes epochs under the compiler's rules: units, engines, chains, what stays behind."""

import math
from dataclasses import replace

import pytest
from made_graphs import one_layer, tensor

from benchmarks.accuracy.npu_speech import build_speech_network
from hwmodels.board.file import change_board, load_board
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError, UsageError
from twin.network import zoo
from twin.network.graph import Graph, GraphLayer, Layer, Window
from twin.network.writers import write_model
from twin.pricing.inference import predict
from twin.runtimes import load_runtime
from twin.runtimes.compiler import Planner
from twin.runtimes.neural_art.profile import estimate_max_cycles

BOARD = load_board("stm32n6570_dk")
NPU = BOARD.npu


def planner(version="3.0.0", **changes):
    """What plans layers; images are read as they are, so a layer alone is one step."""
    offload = replace(load_runtime(f"neural-art@{version}").offload, input_copy="none")
    return Planner(**{"npu": NPU, "offload": offload,
                      "weights": "flash", "arena": "npu_ram"} | changes)


def plan_steps(graph, asked):
    """What the compiler makes of a network whose memories are those of the planner."""
    rules = asked.offload.rules
    return rules.schedule(graph, asked, {}, rules.group(graph, asked))


def convolution(side, inputs, outputs, *, kernel=1, stride=1, op="conv_2d", dtype="int8",
                activation=None):
    shape = ((1, kernel, kernel, outputs) if op == "depthwise_conv_2d"
             else (outputs, kernel, kernel, inputs))
    return one_layer(
        op, [tensor((1, side, side, inputs)), tensor(shape, dtype, "random"),
             tensor((outputs,), "int32", "random")],
        [tensor((1, side // stride, side // stride, outputs))],
        window=Window(kernel=(kernel, kernel), stride=(stride, stride)), activation=activation,
        groups=inputs if op == "depthwise_conv_2d" else 1)


def clip_input(graph):
    """The one layer of a graph behind an activation, which leaves 8 bits without a sign."""
    source = replace(graph.tensors[0], name="source")
    return replace(graph, tensors=(*graph.tensors, source), inputs=(len(graph.tensors),), layers=(
        Layer(index=0, name="relu", op="relu", inputs=(len(graph.tensors),), outputs=(0,)),
        replace(graph.layers[0], index=1)))


def plan_last(graph, version="3.0.0-default"):
    rules = load_runtime(f"neural-art@{version}").offload.rules
    return rules.plan_work(GraphLayer(graph, graph.layers[-1]), NPU)


def compute_cycles(graph, version="3.0.0-default"):
    return max(unit.compute_cycles for unit in plan_last(graph, version).units)


@pytest.mark.parametrize(("graph", "expected"), [
    # compute_cycles of the compiler for the same shapes: c_info.json of mobilenet_v2_0.5_128 under
    # ST Edge AI 3.0.0, epochs 2 to 5, 8, 12, 14, 35, 43, 44 and 46
    (convolution(128, 3, 8, kernel=3, stride=2), 49152),
    (convolution(64, 8, 8, kernel=3, op="depthwise_conv_2d"), 32768),
    (convolution(64, 8, 8), 32768),
    (convolution(64, 8, 48), 196608),
    (convolution(32, 16, 80), 81920),
    (convolution(32, 96, 96, kernel=3, stride=2, op="depthwise_conv_2d"), 49152),
    (convolution(16, 16, 64), 16384),
    (convolution(8, 24, 232), 14848),
    (clip_input(convolution(4, 272, 48)), 4352),
    (convolution(4, 48, 272), 13056),
])
def test_compute_cycles_are_the_compilers(graph, expected):
    assert compute_cycles(graph) == expected


@pytest.mark.parametrize(("version", "side", "inputs", "outputs", "cycles", "units"), [
    # c_info.json of mobilenet_v2_0.5_128: 2.1.0, epochs 9, 12, 24 and 33; 3.0.0, 9 and 21
    ("2.0.0", 32, 80, 16, 27307, 1), ("2.0.0", 16, 96, 16, 8192, 1),
    ("2.0.0", 8, 152, 32, 3243, 2), ("2.0.0", 8, 160, 24, 1707, 2),
    ("3.0.0", 32, 80, 16, 20480, 4), ("3.0.0", 8, 96, 32, 3072, 4)])
def test_deep_pointwise_layers_take_units_as_the_release_shares_them(
        version, side, inputs, outputs, cycles, units):
    graph = clip_input(convolution(side, inputs, outputs))
    assert compute_cycles(graph, version) == cycles
    assert plan_last(graph, version).units[0].count == units


def test_strided_depthwise_takes_two_inputs_a_cycle_since_3_0_0():
    # c_info.json: epoch 5 of 2.1.0 takes as many cycles as inputs, of 3.0.0 half as many
    graph = convolution(64, 48, 48, kernel=3, stride=2, op="depthwise_conv_2d")
    assert compute_cycles(graph, "2.0.0") == 64 * 64 * 48 == 2 * compute_cycles(graph, "3.0.0")


@pytest.mark.parametrize(("version", "tables"), [("2.0.0", [8, 8, 0]), ("3.0.0", [8, 0])])
def test_a_convolution_loads_as_many_tables_as_the_release_writes(version, tables):
    work = plan_last(convolution(4, 8, 8, activation="relu6"), version)
    assert [unit.coefficients for unit in work.units[1:]] == tables


def test_grouped_depthwise_is_a_dense_convolution_of_eight_channels():
    # ST Edge AI 2.2.0, epochs 8 and 45: 81,920 cycles; 19,584, one per weight byte
    wide = convolution(32, 80, 80, kernel=3, op="depthwise_conv_2d")
    deep = convolution(4, 272, 272, kernel=3, op="depthwise_conv_2d")
    assert compute_cycles(wide, "2.0.0") == 81920
    assert compute_cycles(deep, "2.0.0") == 272 * 9 * 8 == 19584
    (step,) = plan_steps(wide, planner("2.0.0"))
    weights = [e for e in step.task.transfers if e.operand == "weights"]
    assert sum(engine.bytes for engine in weights) == 80 * 9 * 8  # listed: 5,760 bytes
    assert all(engine.pattern == "contiguous" for engine in step.task.transfers)


def test_native_depthwise_walks_channel_by_channel():
    graph = convolution(32, 96, 96, kernel=3, stride=2, op="depthwise_conv_2d")
    (step,) = plan_steps(graph, planner("3.0.0-default"))
    source, weights, result = step.task.transfers
    assert source.pattern == result.pattern == "channel_interleaved"
    assert source.run_bytes == 1
    assert weights.bytes == 96 * 18  # a strided kernel is stored twice as wide: listed 1,728
    assert weights.pool == "octoFlash" and source.pool != weights.pool


def chain_of(ops, shape=(1, 8, 8, 16)):
    """A 1x1 convolution followed by element-wise layers; two-operand ones read the input."""
    tensors = [tensor(shape), tensor((shape[-1], 1, 1, shape[-1]), "int8", "random"),
               tensor((shape[-1],), "int32", "random"), tensor(shape)]
    layers = [Layer(index=0, name="conv", op="conv_2d", inputs=(0, 1, 2), outputs=(3,),
                    window=Window(kernel=(1, 1)))]
    for index, op in enumerate(ops, start=1):
        tensors.append(tensor(shape))
        second = (0,) if op in ("add", "mul", "sub") else ()
        layers.append(Layer(index=index, name=f"{op} {index}", op=op,
                            inputs=(len(tensors) - 2, *second), outputs=(len(tensors) - 1,)))
    return Graph(name="made", source="made", sha256="0" * 64, tensors=tuple(tensors),
                 layers=tuple(layers), inputs=(0,), outputs=(len(tensors) - 1,))


def test_elementwise_layers_chain_into_the_epoch_they_follow():
    (step,) = plan_steps(chain_of(["add", "logistic"]), planner())
    assert step.layers == (0, 1, 2)
    assert [unit.kind for unit in step.task.units] == [
        "CONV_ACC", "ARITH_ACC", "ARITH_ACC", "ACTIV_ACC"]
    assert dict(step.task.operations) == {"conv": 1, "add": 2, "sigmoid": 1}
    feeds = {(link.source, link.sink) for link in step.task.links}
    second = next(e for e in step.task.transfers if e.channel == 2)
    assert ("E2", "U2") in feeds and second.bytes == 8 * 8 * 16


def test_a_kernel_of_one_column_takes_its_rows_one_after_another():
    def column(rows, inputs, outputs):
        return one_layer(
            "conv_2d", [tensor((1, 257, 1, inputs)),
                        tensor((outputs, rows, 1, inputs), "int8", "random"),
                        tensor((outputs,), "int32", "random")],
            [tensor((1, 257, 1, outputs))],
            window=Window(kernel=(rows, 1), padding=(rows // 2, 0, rows // 2, 0)))

    outputs = 257 * 96
    assert compute_cycles(column(1, 96, 96)) == outputs  # 96 lanes of four units, 96 channels
    assert compute_cycles(column(3, 96, 96)) == 3 * outputs
    assert compute_cycles(column(3, 1, 96)) == 3 * outputs
    assert compute_cycles(column(5, 1, 96)) == 5 * outputs


def test_values_of_channels_are_loaded_up_to_what_a_unit_holds():
    def loaded(graph):
        (step,) = plan_steps(graph, planner())
        return [(unit.kind, unit.coefficients) for unit in step.task.units]

    assert loaded(convolution(4, 8, 512))[-1] == ("ARITH_ACC", 512)
    assert loaded(convolution(4, 8, 520))[-1] == ("ARITH_ACC", 0)  # streamed
    assert loaded(chain_of(["logistic"]))[-1] == ("ACTIV_ACC", 32)


@pytest.mark.parametrize(("slopes", "units"), [
    (1, [("ACTIV_ACC", 0)]), (8, [("ACTIV_ACC", 0), ("ARITH_ACC", 8)])])
def test_slopes_by_channel_take_an_arithmetic_unit(slopes, units):
    graph = one_layer("prelu", [tensor((1, 4, 4, 8)), tensor((1, 1, slopes), "int8", "random")],
                      [tensor((1, 4, 4, 8))])
    (step,) = plan_steps(graph, planner())
    assert [(unit.kind, unit.coefficients) for unit in step.task.units] == units
    assert [engine.direction for engine in step.task.transfers] == ["in", "out"]


def test_inputs_and_outputs_that_are_channel_first_are_transposed():
    first, layer, last = plan_steps(convolution(4, 8, 16), planner(channel_first=True))
    assert [step.task.kind for step in (first, layer, last)] == ["copy", "hw", "copy"]
    for step, size in ((first, 4 * 4 * 8), (last, 4 * 4 * 16)):
        out = next(e for e in step.task.transfers if e.direction == "out")
        assert (out.bytes, out.pattern, out.run_bytes) == (size, "channel_interleaved", 1)


@pytest.mark.parametrize("build", [
    lambda: zoo.build("ic"), lambda: zoo.build("mobilenet_v2_0.35_96"),
    lambda: build_speech_network(1)], ids=["residual additions", "relu6", "prelu"])
def test_both_forms_of_a_network_give_the_same_epochs(build, tmp_path):
    pytest.importorskip("onnx")

    def epochs(name):
        write_model(build(), tmp_path / name)
        deployment = deploy(tmp_path / name, BOARD, runtime="neural-art", weights="npu_ram")
        made = [step.task for step in deployment.plan.steps if step.task is not None]
        return ([replace(epoch, name="") for epoch in made if epoch.kind != "copy"],
                [epoch for epoch in made if epoch.kind == "copy"])

    (tflite, copies), (onnx, transposes) = epochs("net.tflite"), epochs("net.onnx")
    # Images are copied once in either form; outputs of an ONNX file are channel first, too.
    assert 0 < len(copies) <= len(transposes)
    assert [(e.kind, e.units, e.operations, e.layers) for e in tflite] == [
        (e.kind, e.units, e.operations, e.layers) for e in onnx]
    assert [[(one.direction, one.bytes, one.pattern, one.operand) for one in e.transfers]
            for e in tflite] == [[(one.direction, one.bytes, one.pattern, one.operand)
                                  for one in e.transfers] for e in onnx]


@pytest.mark.parametrize(("version", "side", "groups"), [
    # depthwise weights in network.c: MobileNetV1 0.25 at 96 pixels, EfficientNetV2-B1 at 240
    ("3.0.0", 24, 4), ("3.0.0", 15, 4), ("3.0.0", 12, 1), ("2.0.0", 12, 8), ("2.0.0", 8, 8)])
def test_depthwise_convolutions_are_grouped_as_compiled_networks_show(version, side, groups):
    graph = convolution(side, 64, 64, kernel=3, op="depthwise_conv_2d")
    (step,) = plan_steps(graph, planner(version))
    weights = next(one for one in step.task.transfers if one.operand == "weights")
    assert weights.bytes == 64 * 9 * groups


def test_images_are_copied_first_as_the_compilers_reports_say():
    # max cycles of the compiler's first epoch of mobilenet_v2_0.5_128: c_info.json of 3.0.0
    graph = convolution(128, 3, 8, kernel=3, stride=2)
    asked = replace(planner(), offload=load_runtime("neural-art@3.0.0").offload)
    copy, layer = plan_steps(graph, asked)
    assert (copy.task.kind, copy.layers, layer.task.kind) == ("copy", (0,), "hw")
    assert [(e.direction, e.bytes) for e in copy.task.transfers] == [("in", 49152), ("out", 49152)]
    assert estimate_max_cycles(copy.task, replace(NPU, sums_directions=False)) == 61440


def test_what_the_host_reads_first_is_not_copied():
    graph = convolution(128, 3, 8, kernel=3, stride=2)
    asked = replace(planner(host=("conv_2d",)),
                    offload=load_runtime("neural-art@3.0.0").offload)
    assert [step.kind for step in plan_steps(graph, asked)] == ["host"]


def test_a_chain_ends_where_units_run_out():
    # bias 1 + three additions is all four arithmetic units; the fourth addition is another epoch
    steps = plan_steps(chain_of(["add"] * 4), planner())
    assert [step.layers for step in steps] == [(0, 1, 2, 3), (4,)]
    two = change_board(BOARD, {"npu.units.ARITH_ACC.count": 2}).npu
    assert [s.layers for s in plan_steps(chain_of(["add"] * 2), planner(npu=two))] == [
        (0, 1), (2,)]


def test_a_result_read_later_ends_the_chain():
    graph = chain_of(["relu", "add"])
    layers = list(graph.layers)
    layers[2] = replace(layers[2], inputs=(4, 3))  # the addition reads what relu read, too
    steps = plan_steps(replace(graph, layers=tuple(layers)), planner())
    assert [step.layers for step in steps] == [(0,), (1, 2)]


@pytest.mark.parametrize("name", ["kws", "ic", "vww", "ad", "mobilenet_v2_0.35_96",
                                  "squeezenet1.1"])
@pytest.mark.parametrize("version", ["2.0.0", "3.0.0"])
def test_every_layer_is_in_one_step(name, version):
    graph = zoo.build(name)
    steps = plan_steps(graph, planner(version))
    assert sorted(i for step in steps for i in step.layers) == list(range(len(graph.layers)))
    for step in steps:
        if step.kind == "task":
            assert len(step.task.transfers) <= NPU.engines
            assert math.isclose(sum(step.shares), 1.0) and min(step.shares) > 0
            assert {e.port for e in step.task.transfers} <= {i.name for i in NPU.interfaces}
    names = [step.task.name for step in steps if step.task is not None]
    assert names == [f"epoch_{number}" for number in range(1, len(names) + 1)]


def test_softmax_and_wide_averages_stay_on_the_host():
    (softmax,) = plan_steps(one_layer("softmax", [tensor((1, 10))], [tensor((1, 10))],
                                      options={"axis": 1, "beta": 1.0}), planner())
    assert softmax.kind == "host" and softmax.task.kind == "sw"
    for side, kind in ((7, "task"), (16, "host")):
        mean = one_layer("mean", [tensor((1, side, side, 8))], [tensor((1, 8))],
                         options={"axes": (1, 2), "keep_dims": False})
        assert plan_steps(mean, planner())[0].kind == kind


def test_float_layers_stay_on_the_host():
    graph = one_layer("add", [tensor((1, 4), "float32"), tensor((1, 4), "float32")],
                      [tensor((1, 4), "float32")])
    assert plan_steps(graph, planner())[0].kind == "host"


def test_concatenation_moves_each_piece_in_runs_of_its_channels():
    graph = one_layer("concatenation", [tensor((1, 4, 4, 16)), tensor((1, 4, 4, 8))],
                      [tensor((1, 4, 4, 24))], options={"axis": 3})
    (step,) = plan_steps(graph, planner())
    assert step.task.kind == "hybrid"
    moved = sorted((e.direction, e.bytes, e.run_bytes) for e in step.task.transfers)
    assert moved == [("in", 128, 0), ("in", 256, 0), ("out", 128, 8), ("out", 256, 16)]


def test_padding_joins_the_convolution_that_reads_it():
    conv = convolution(8, 4, 4, kernel=3)
    tensors = (*conv.tensors, tensor((1, 6, 6, 4)))
    pad = Layer(index=0, name="pad", op="pad", inputs=(4,), outputs=(0,))
    graph = replace(conv, tensors=tensors, inputs=(4,),
                    layers=(pad, replace(conv.layers[0], index=1)))
    (step,) = plan_steps(graph, planner())
    assert step.layers == (0, 1)
    assert step.task.transfers[0].bytes == 6 * 6 * 4  # what is read is not padded


def test_four_bit_weights_stream_half_the_bytes_through_a_decompression_unit():
    wide = deploy("kws", BOARD, runtime="neural-art")
    narrow = wide.replace({"placement.weight_bits": 4})

    def weights(deployment):
        return [e for step in deployment.plan.steps if step.kind == "task"
                for e in step.task.transfers if e.operand == "weights"]

    assert sum(e.bytes for e in weights(narrow)) == pytest.approx(
        sum(e.bytes for e in weights(wide)) / 2, abs=16)
    first = narrow.plan.steps[0].task
    assert first.units[0].kind == "DECUN_ACC"
    assert {link.sink for link in first.links if link.source == "E0"} == {"U1"}


def test_layers_kept_on_the_host_keep_their_weights_as_they_are():
    narrow = deploy("kws", BOARD, runtime="neural-art").replace(
        {"placement.weight_bits": 4, "offload.host": "depthwise_conv_2d"})
    graph = narrow.executed
    widths = {layer.op: graph.tensors[layer.inputs[1]].dtype for layer in graph.layers
              if layer.op.endswith("conv_2d")}
    assert widths == {"conv_2d": "int4", "depthwise_conv_2d": "int8"}
    assert predict(narrow).time_us > 0


def test_weights_and_activations_in_one_memory_take_two_pools():
    deployment = deploy("kws", BOARD, runtime="neural-art", weights="npu_ram")
    engines = deployment.plan.steps[0].task.transfers
    pools = {e.operand: e.pool for e in engines}
    assert pools["weights"] != pools["input"]
    assert all(NPU.pool(pool).memory == "npu_ram" for pool in pools.values())


def test_what_is_kept_on_the_host_is_chosen_by_operator_or_layer():
    deployment = deploy("kws", BOARD, runtime="neural-art").replace(
        {"offload.host": "depthwise_conv_2d, 2"})
    on_host = {i for step in deployment.plan.steps if step.kind == "host" for i in step.layers}
    wanted = {position for position, layer in enumerate(deployment.graph.layers)
              if layer.op in ("depthwise_conv_2d", "softmax") or layer.index == 2}
    assert on_host == wanted


def test_refusals_name_what_is_accepted():
    with pytest.raises(RuntimeRefusedError, match="needs an accelerator of family neural-art"):
        deploy("kws", "nucleo_l4r5zi", runtime="neural-art")
    deployment = deploy("kws", BOARD, runtime="neural-art")
    with pytest.raises(UsageError, match="depthwise_conv_2d"):
        deployment.replace({"offload.host": "depthwise_conv"})
    with pytest.raises(UsageError, match="accepted: 4, 8"):
        deployment.replace({"offload.weight_bits": 3})
    with pytest.raises(UsageError, match="does not offload"):
        deploy("kws", BOARD, runtime="cmsis-nn").replace({"offload.host": "softmax"})
