"""Networks people deploy predict whole: by the libraries of their boards, to the last layer."""

import io

import pytest
from made_exports import EXPORTS
from made_graphs import list_models, model_file, needs_models
from made_loops import keras_lstm, write_subgraphs
from rich.console import Console

from hwmodels.board.file import list_boards
from twin.deployment.deploy import deploy
from twin.errors import DoesNotFitError, ModelError, RuntimeRefusedError, TwinError
from twin.network import zoo
from twin.network.graph import Graph
from twin.network.operators import is_alias
from twin.network.readers import read_model
from twin.pricing.inference import predict
from twin.reports.tables.report import report

RUNTIMES = {"x-cube-ai": "stm32h747i_disco", "st-edge-ai": "nucleo_l4r5zi",
            "tflm-cmsis-nn@2026": "nucleo_l4r5zi", None: "stm32h747i_disco"}
ZOO = {"ssd_mobilenet_v1_0.1_96": None, "ssdlite_mobilenet_v2_0.1_96": None, "lstm": None,
       # Its weights take four megabytes.
       "efficientnet_lite0_48": "stm32n6570_dk"}


def check_whole(graph: Graph, runtime: str | None, board: str | None = None) -> None:
    prediction = predict(deploy(graph, board or RUNTIMES[runtime], runtime=runtime))
    assert prediction.time_us > 0
    for layer in prediction.layers:
        assert layer.time_us > 0 or layer.alias or layer.op == "reshape"


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> dict[tuple[str, bool], Graph]:
    folder = tmp_path_factory.mktemp("exported")
    return {(name, quantised): read_model(make(quantised, folder / f"{name}{quantised}.onnx"))
            for name, make in EXPORTS.items() for quantised in (False, True)}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("name", EXPORTS)
def test_exported_networks_predict_whole(exported, name, quantised, runtime):
    check_whole(exported[name, quantised], runtime)


@pytest.mark.parametrize("name", EXPORTS)
def test_quantised_networks_compute_in_integers(exported, name):
    graph = exported[name, True]
    real = [layer for layer in graph.layers if layer.op not in ("quantize", "dequantize")
            and not is_alias(layer) and graph.tensors[layer.outputs[0]].dtype == "float32"]
    # An LSTM between quantisers of its results only, and what stands between two, runs in float.
    allowed = {"lstm", "concatenation", "transpose"} if name == "deep_speech" else set()
    assert {layer.op for layer in real} <= allowed


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ZOO)
def test_networks_of_the_zoo_predict_whole(name, runtime):
    check_whole(zoo.build(name), runtime, ZOO[name])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_keras_lstm_predicts_whole(runtime, tmp_path):
    path = write_subgraphs(tmp_path / "a.tflite", keras_lstm(steps=10, sequences=True))
    check_whole(read_model(path), runtime)


def test_a_loop_prints_how_often_its_layers_run(tmp_path):
    graph = read_model(write_subgraphs(tmp_path / "a.tflite", keras_lstm()))
    prediction = predict(deploy(graph, "nucleo_l4r5zi", runtime="x-cube-ai"))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(report(prediction, console))
    lines = console.export_text().splitlines()
    assert any("gather x28 *" in line for line in lines)
    assert max(map(len, lines)) <= 80


@needs_models
def test_files_of_the_folder_are_read_or_refused():
    """Every file gives a prediction, or says in one line what it does not fit or what is in it."""
    for path in list_models(".tflite", ".onnx"):
        try:
            assert predict(deploy(path, "stm32h747i_disco")).time_us > 0
        except (ModelError, RuntimeRefusedError, TwinError) as refusal:
            assert len(str(refusal).splitlines()) == 1


TOO_SMALL = ("ch32v307v_evt", "lp_mspm0g5187")
"""Boards with less RAM than 85 KB."""


@needs_models
@pytest.mark.parametrize("board", list_boards())
def test_a_public_benchmark_model_is_predicted_on_every_board(board):
    """TFLite Micro's own: the dimension its converter wrote into biases means nothing."""
    file = model_file("person_detect.tflite")
    if board in TOO_SMALL:
        with pytest.raises(DoesNotFitError, match=board):
            deploy(file, board)
    else:
        assert predict(deploy(file, board)).time_us > 0
