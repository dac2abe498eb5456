"""Loops, branches, variables and detectors of .tflite files."""

import numpy as np
import pytest
from made_loops import Subgraph, keras_lstm, write_subgraphs
from made_onnx import described

from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.errors import ModelError, RuntimeRefusedError
from twin.network.arithmetic import find_operation
from twin.network.graph import GraphLayer
from twin.network.operators import graph_macs, list_states
from twin.network.readers import budget, read_model
from twin.network.readers.tflite_control import MAX_TURNS
from twin.network.writers.tflite import encode_tflite
from twin.pricing.inference import predict


def test_a_keras_lstm_turns_as_often_as_its_sequence_is_long(tmp_path):
    steps, features, units = 28, 12, 20
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", keras_lstm(steps, features, units)))
    turns = {layer.op: layer.repeats for layer in graph.layers}
    assert turns["tanh"] == turns["gather"] == steps
    assert [layer.repeats for layer in graph.layers][-1] == 1
    # Two products of four gates a turn, and the dense layer of four behind them.
    assert graph_macs(graph) == steps * 4 * units * (features + units) + 4 * units
    # Counters are omitted; states are copied in, and out of every turn.
    assert all(graph.tensors[layer.outputs[0]].dtype == "float32" for layer in graph.layers)
    assert sum(layer.op == "copy" for layer in graph.layers) == 6 and not graph.notes


def test_a_written_list_is_one_copy_a_turn(tmp_path):
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", keras_lstm(sequences=True)))
    copies = [layer for layer in graph.layers if layer.op == "copy" and layer.repeats == 28]
    assert sorted(graph.tensors[layer.outputs[0]].shape for layer in copies) == [
        (1, 20), (1, 20), (28, 1, 20), (28, 1, 20)]
    assert "slice" not in described(graph) and "concatenation" not in described(graph)


def test_turns_nobody_knows_are_assumed_and_said(tmp_path):
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", keras_lstm(bound=False)))
    assert max(layer.repeats for layer in graph.layers) == 28
    assert "28 times are taken (assumed)" in graph.notes[0]
    deployment = deploy(graph, "nucleo_l4r5zi")
    assert any("28 times" in warning for warning in predict(deployment).warnings)


def compare(condition, name, reverse=False):
    """Let a loop's condition compare both of its counters otherwise."""
    condition.operators[:] = [
        (name, inputs[::-1] if reverse else inputs, *rest) if kind == "LESS" else (
            kind, inputs, *rest) for kind, inputs, *rest in condition.operators]


@pytest.mark.parametrize(("name", "reverse", "step", "start", "turns"), [
    ("LESS", False, 1, 0, 28), ("LESS_EQUAL", False, 1, 0, 29), ("GREATER", True, 1, 0, 28),
    ("LESS", False, 3, 0, 10), ("LESS", False, 1, 20, 8), ("LESS", False, 1, 40, 1)])
def test_turns_follow_from_where_counters_start_step_and_end(name, reverse, step, start, turns,
                                                             tmp_path):
    """From 0 to 28 by ones: 28 turns, one more up to the bound itself; by threes 10; and so on."""
    main, condition, body = keras_lstm(28)
    compare(condition, name, reverse)
    first, added = main.constant(np.int32(start)), body.constant(np.int32(step))
    loop = next(one for one in main.operators if one[0] == "WHILE")
    loop[1][:2] = [first, first]
    for _, inputs, *_ in body.operators[:2]:  # its counters
        inputs[1] = added
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", [main, condition, body]))
    assert {layer.repeats for layer in graph.layers if layer.op == "tanh"} == {turns}
    assert not graph.notes


@pytest.mark.parametrize(("name", "reverse"), [("GREATER", False), ("EQUAL", False)])
def test_a_condition_that_bounds_no_counter_leaves_turns_open(name, reverse, tmp_path):
    main, condition, body = keras_lstm(28)
    compare(condition, name, reverse)
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", [main, condition, body]))
    assert "how often it turns is not known; 28 times are taken (assumed)" in graph.notes[0]


def test_states_are_named_after_what_entered_the_loop_and_written_lists_too(tmp_path):
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", keras_lstm(sequences=True)))
    copies = [layer for layer in graph.layers if layer.op == "copy"]
    entered = [layer for layer in copies if layer.repeats == 1]
    assert len(entered) == 3
    for layer in entered:
        source, target = (graph.tensors[place] for place in (layer.inputs[0], layer.outputs[0]))
        assert target.name == f"{source.name}/state" and target.shape == source.shape
        assert target.data is None
    assert [graph.tensors[layer.outputs[0]].name.endswith("/state/written") for layer in copies
            if len(layer.inputs) == 2] == [True]


def test_a_loop_costs_its_turns(tmp_path):
    def instructions(steps):
        path = write_subgraphs(tmp_path / f"{steps}.tflite", keras_lstm(steps))
        kernels = lower_network(deploy(read_model(path), "nucleo_l4r5zi", runtime="x-cube-ai"))
        flat = [kernel for group in kernels for kernel in group if kernel.calls > 1]
        assert {kernel.calls for kernel in flat} == {steps}
        return sum(block.trips for kernel in flat for block in kernel.blocks)

    assert instructions(20) == 2 * instructions(10)


def test_what_turns_is_neither_computed_nor_written(tmp_path):
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", keras_lstm()))
    with pytest.raises(RuntimeRefusedError, match="28 times in a loop"):
        find_operation(GraphLayer(graph, next(
            layer for layer in graph.layers if layer.repeats == 28)))
    with pytest.raises(ModelError, match="cannot be written"):
        encode_tflite(graph)


def test_loops_have_a_budget(tmp_path):
    path = write_subgraphs(tmp_path / "a.tflite", keras_lstm())
    endless = keras_lstm()
    place = next(place for place, told in enumerate(endless[1].tensors) if told[2] is not None)
    endless[1].tensors[place] = ((), "int32", np.int32(MAX_TURNS + 1), None)
    assert read_model(path).layers
    with pytest.raises(ModelError, match=r"a loop of .* turns; at most"):
        read_model(write_subgraphs(tmp_path / "b.tflite", endless))


def test_tensors_of_all_subgraphs_share_one_bound(tmp_path, monkeypatch):
    graphs = keras_lstm()
    path = write_subgraphs(tmp_path / "a.tflite", graphs)
    main, _, body = (len(graph.tensors) for graph in graphs)
    monkeypatch.setattr(budget, "MAX_TENSORS", main + body - 1)
    with pytest.raises(ModelError, match=rf"a\.tflite: {main + body} tensors; at most "):
        read_model(path)


def calls(depth):
    """Subgraphs each of which calls the next one twice."""
    graphs = []
    for number in range(depth):
        graph = Subgraph()
        first = graph.input((1, 4))
        middle = graph.operator("CALL", [first], (1, 4), table="CallOptions", subgraph=number + 1)
        graph.outputs = [graph.operator("CALL", [middle], (1, 4), table="CallOptions",
                                        subgraph=number + 1)]
        graphs.append(graph)
    last = Subgraph()
    last.outputs = [last.operator("RELU", [last.input((1, 4))], (1, 4))]
    return [*graphs, last]


def test_calls_are_put_in_line_within_bounds(tmp_path):
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", calls(3)))
    assert described(graph) == ["relu"] * 8
    with pytest.raises(ModelError, match="subgraphs 17 deep; at most 16"):
        read_model(write_subgraphs(tmp_path / "b.tflite", calls(40)))
    own = Subgraph()
    own.outputs = [own.operator("CALL", [own.input((1, 4))], (1, 4), table="CallOptions",
                                subgraph=0)]
    with pytest.raises(ModelError, match="deep"):
        read_model(write_subgraphs(tmp_path / "c.tflite", [own]))
    wrong = calls(1)
    wrong[0].operators[0][4]["subgraph"] = 9
    with pytest.raises(ModelError, match="subgraph 9 does not exist"):
        read_model(write_subgraphs(tmp_path / "d.tflite", wrong))


@pytest.mark.parametrize(("known", "expected"), [(True, "relu"), (False, "tanh"), (None, "relu")])
def test_a_branch_is_taken(known, expected, tmp_path):
    main, then, other = Subgraph(), Subgraph(), Subgraph()
    image = main.input((1, 4))
    test = main.input((), "bool") if known is None else main.constant(np.bool_(known), "bool")
    main.outputs = [main.operator("IF", [test, image], (1, 4), table="IfOptions",
                                  then_subgraph_index=1, else_subgraph_index=2)]
    then.outputs = [then.operator("RELU", [then.input((1, 4))], (1, 4))]
    other.outputs = [other.operator("TANH", [other.input((1, 4))], (1, 4))]
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", [main, then, other]))
    assert described(graph) == [expected]
    assert bool(graph.notes) == (known is None)


def test_variables_of_a_stream_are_states(tmp_path):
    main = Subgraph()
    image = main.input((1, 4))
    name = main.operator("VAR_HANDLE", [], (), dtype="resource", table="VarHandleOptions")
    old = main.operator("READ_VARIABLE", [name], (1, 4))
    new = main.operator("ADD", [image, old], (1, 4), table="AddOptions")
    main.operators.append(("ASSIGN_VARIABLE", [name, new], [], None, {}))
    main.outputs = [main.operator("RELU", [new], (1, 4))]
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", [main]))
    assert described(graph) == ["read_variable", "add", "assign_variable", "relu"]
    assert len(list_states(graph)) == 1
    assert predict(deploy(graph, "nucleo_l4r5zi", runtime="x-cube-ai")).time_us > 0


def test_a_detector_ends_in_as_many_boxes_as_it_keeps(tmp_path):
    from flatbuffers import flexbuffers

    main = Subgraph()
    boxes, scores = main.input((1, 30, 4)), main.input((1, 30, 7))
    anchors = main.constant(np.ones((30, 4)))
    # The converter leaves the sizes of what comes out open.
    made = [main.tensor(()) for _ in range(4)]
    main.operators.append((
        "TFLite_Detection_PostProcess", [boxes, scores, anchors], made, None,
        {"custom": flexbuffers.Dumps({"max_detections": 12, "num_classes": 6,
                                      "max_classes_per_detection": 1})}))
    main.outputs = made
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", [main]))
    (layer,) = graph.layers
    assert layer.op == "detection_postprocess" and layer.option("classes") == 6
    assert [tensor.shape for tensor in graph.layer_outputs(layer)] == [
        (1, 12, 4), (1, 12), (1, 12), (1,)]
    prediction = predict(deploy(graph, "nucleo_l4r5zi", runtime="x-cube-ai"))
    assert prediction.time_us > 0 and prediction.layers[0].assumed


def test_micro_speech_front_end_runs_on_tflite_micro_alone(tmp_path):
    main = Subgraph()
    audio, window = main.input((480,)), main.constant(np.ones(480))
    windowed, spectrum, energy = main.tensor((480,)), main.tensor((514,)), main.tensor((257,))
    main.operators += [("SignalWindow", [audio, window], [windowed], None, {}),
                       ("SignalRfft", [windowed], [spectrum], None, {}),
                       ("SignalEnergy", [spectrum], [energy], None, {})]
    main.outputs = [energy]
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", [main]))
    assert [layer.op for layer in graph.layers] == ["signal_window", "signal_rfft",
                                                    "signal_energy"]
    prediction = predict(deploy(graph, "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026"))
    assert all(layer.assumed and layer.time_us > 0 for layer in prediction.layers)
    with pytest.raises(RuntimeRefusedError, match=r"signal_window.*TFLite Micro"):
        predict(deploy(graph, "nucleo_l4r5zi", runtime="x-cube-ai"))


@pytest.mark.parametrize(("assume", "operator", "tool", "chip"), [
    (None, "edgetpu-custom-op", "edgetpu_compiler", "an Edge TPU"),
    ("copy", "NeutronGraph", "neutron-converter", "an eIQ Neutron NPU"),
    (None, "XC_conv2d_v2", "xcore-opt", "an xcore.ai")])
def test_code_for_another_chip_is_refused_with_the_file_to_bring(tmp_path, assume, operator, tool,
                                                                 chip):
    main = Subgraph()
    image, made = main.input((1, 8)), main.tensor((1, 8))
    main.operators.append((operator, [image], [made], None, {}))
    main.outputs = [made]
    path = write_subgraphs(tmp_path / "vela.tflite", [main])
    with pytest.raises(ModelError, match=rf"compiled by {tool} for {chip}: 1 of 1 operators .*"
                                         rf"bring the file that was given to {tool}"):
        read_model(path, assume_unsupported=assume)
