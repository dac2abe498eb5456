"""ExecuTorch programs: layers, layouts and constants of real exports, refusals of the rest."""

import hashlib
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from twin.deployment.deploy import deploy
from twin.errors import ModelError, UsageError
from twin.network.operators import graph_macs, graph_parameters, is_alias
from twin.network.readers import read_model
from twin.network.rewrites.rewrite import derive
from twin.pricing.inference import predict
from twin.reports.tables.header import answer_pairs
from twin.studies.accuracy import measure_accuracy

FOLDER = Path(__file__).parents[2] / "made" / "executorch"
READ = ("net", "net_q", "gru", "attn", "up", "net_cortex_m", "bn_cortex_m", "seq_cortex_m")


def read(name):
    return read_model(FOLDER / f"{name}.pte")


def ops(graph):
    return [layer.op for layer in graph.layers if not is_alias(layer)]


def test_a_portable_program_is_its_kernel_calls():
    graph = read("net")
    assert ops(graph) == ["conv_2d", "relu", "depthwise_conv_2d", "relu", "conv_2d", "add",
                          "average_pool_2d", "transpose", "fully_connected", "softmax"]
    # 8 x 8 x 8 outputs of 3 x 3 x 3, of 3 x 3 and of 8; 128 x 4.
    assert graph_macs(graph) == 512 * (27 + 9 + 8) + 512
    assert graph_parameters(graph) == (27 + 1) * 8 + (9 + 1) * 8 + (8 + 1) * 8 + 129 * 4
    assert graph.channel_first and graph.tensors[graph.inputs[0]].shape == (1, 16, 16, 3)
    first = graph.layers[0]
    assert first.window.padding == (1, 1, 1, 1) and first.window.stride == (2, 2)
    assert graph.planned_bytes == (7168,)


def test_a_program_is_known_by_its_bytes_and_its_file():
    path = FOLDER / "net.pte"
    graph = read_model(path)
    assert graph.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert graph.name == "net" and graph.source == str(path)


def test_cortex_m_kernels_are_the_same_network_quantised():
    graph, portable = read("net_cortex_m"), read("net")
    assert graph_macs(graph) == graph_macs(portable)
    assert not graph.channel_first
    assert ops(graph) == [
        "quantize", "conv_2d", "depthwise_conv_2d", "conv_2d", "add", "pad", "average_pool_2d",
        "transpose", "fully_connected", "softmax", "dequantize", "quantize", "dequantize"]
    conv = graph.layers[1]
    real, stored = (net.tensors[net.layers[place].inputs[1]]
                    for net, place in ((portable, 0), (graph, 1)))
    assert stored.dtype == "int8" and stored.shape == real.shape
    # Each filter is the float one over its largest weight, and so are its steps to one another.
    largest = np.abs(real.data).max(axis=(1, 2, 3), keepdims=True)
    assert np.abs(stored.data - real.data / largest * 127).max() <= 1
    scales = np.array(stored.quantization.scales)
    assert np.allclose(scales / scales[0], (largest / largest[0]).reshape(-1), rtol=1e-3)
    assert graph.tensors[conv.inputs[0]].quantization.scales[0] == pytest.approx(0.028154071)


def test_weights_dequantised_at_run_time_are_a_layer_and_known():
    graph, portable = read("net_q"), read("net")
    assert graph_macs(graph) == graph_macs(portable)
    assert ops(graph)[:4] == ["dequantize"] * 4 and ops(graph).count("quantize") == 7
    assert all(graph.tensors[layer.inputs[1]].is_constant for layer in graph.layers
               if layer.op in ("conv_2d", "depthwise_conv_2d", "fully_connected"))


def test_weights_of_every_step_are_one_constant():
    graph = read("gru")
    assert ops(graph).count("fully_connected") == 4  # of all inputs, and of each of three states
    assert graph_parameters(graph) == 9 * 2 + 9 + 9 * 3 + 9


def test_matrix_products_softmax_and_permutations_keep_their_axes():
    graph = read("attn")
    assert ops(graph).count("batch_matmul") == 2 and ops(graph).count("fully_connected") == 3
    softmax, = (layer for layer in graph.layers if layer.op == "softmax")
    assert softmax.option("axis") == 3 and graph.output(softmax).shape == (1, 2, 6, 6)
    assert [layer.option("perm") for layer in graph.layers if layer.name == "permute_6"] == [
        (0, 1, 3, 2)]
    norm = graph.layers[0]
    assert norm.op == "l2_normalization" and norm.assumed


def test_pads_resizes_and_reductions_of_images():
    graph = read("up")
    by_op = {layer.op: layer for layer in graph.layers}
    assert by_op["pad"].option("paddings") == ((0, 0), (1, 1), (1, 1), (0, 0))
    assert by_op["reduce_max"].option("axes") == (1, 2) and by_op["arg_max"].option("axis") == 3
    assert graph.output(by_op["resize_bilinear"]).shape == (1, 16, 16, 4)
    weights = graph.tensors[by_op["transpose_conv_2d"].inputs[1]]
    assert weights.shape == (2, 2, 2, 4)
    signal = read("seq_cortex_m")
    assert signal.tensors[signal.inputs[0]].shape == (1, 1, 16, 4)


@pytest.mark.parametrize("name", READ)
def test_it_is_predicted_by_the_library_it_was_exported_for(name):
    deployment = deploy(FOLDER / f"{name}.pte", "nucleo_l4r5zi")
    kernels = "cortex-m" if "cortex_m" in name else "portable"
    assert deployment.runtime.name == f"executorch-{kernels}"
    prediction = predict(deployment)
    assert prediction.time_us > 0
    line = dict(answer_pairs(prediction))["arena"]
    assert line == ("ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE >= "
                    f"{deployment.graph.planned_bytes[0]:,} bytes")
    assert deployment.buffer.unknown == ("the structures of a method",)


def test_a_delegate_is_refused_by_its_name_but_for_ethos_u_s():
    with pytest.raises(ModelError, match=r"instruction .*delegate XnnpackBackend runs a part"):
        read("net_xnnpack")
    assert "ethos_u" in ops(read("net_ethos_u"))


def test_an_unknown_kernel_is_refused_by_name_or_assumed_a_copy(tmp_path):
    content = (FOLDER / "net.pte").read_bytes()
    path = tmp_path / "net.pte"
    path.write_bytes(content.replace(b"aten::relu", b"mine::relu"))
    with pytest.raises(ModelError, match=r"2 operators are not supported: 1 mine::relu.out, 3 mi"):
        read_model(path)
    assert ops(read_model(path, assume_unsupported="copy"))[1] == "copy"


@pytest.mark.parametrize("change, message", [
    (lambda data: data[:4] + b"ET99" + data[8:], "not an ExecuTorch program"),
    (lambda data: data[:4], "not an ExecuTorch program"),
    (lambda data: data[:2000], "malformed at .* of 2,000"),
    (lambda data: data[:-3000], "bytes of data for"),
    (lambda data: data[:8] + b"none" + data[12:], "no extended header"),
])
def test_other_and_cut_files_are_refused_in_one_line(tmp_path, change, message):
    path = tmp_path / "net.pte"
    path.write_bytes(change((FOLDER / "net.pte").read_bytes()))
    with pytest.raises(ModelError, match=message) as refusal:
        read_model(path)
    assert str(refusal.value).startswith(str(path)) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["net", "bn_cortex_m", "attn"])
def test_damage_is_read_or_refused(tmp_path, name):
    content = (FOLDER / f"{name}.pte").read_bytes()
    draw, path = random.Random(name), tmp_path / "net.pte"
    refused = 0
    for _ in range(250):
        data = bytearray(content)
        for _ in range(draw.choice((1, 4))):
            place = draw.randrange(0, len(data) - 4)
            if draw.random() < 0.5:
                data[place] ^= 1 << draw.randrange(8)
            else:
                struct.pack_into("<I", data, place - place % 4, draw.choice((
                    0, 1, 255, 2**31 - 1, 2**32 - 1)))
        path.write_bytes(data)
        try:
            read_model(path)
        except ModelError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
            refused += 1
    assert 0 < refused < 250


def test_its_own_plan_is_the_arena_until_the_network_is_changed():
    assert deploy(FOLDER / "net.pte", "nucleo_l4r5zi").placement.arena_bytes == 7168
    changed = deploy(derive(read("net"), "changed"), "nucleo_l4r5zi")
    assert changed.runtime.name == "executorch-portable"
    assert changed.placement.arena_bytes == 6144  # two operands and a sum of 2,048 bytes


def test_what_comes_out_is_not_measured():
    with pytest.raises(UsageError, match=r"net.pte: a program.*accepted: .tflite, .onnx"):
        measure_accuracy(read("net"), None)
