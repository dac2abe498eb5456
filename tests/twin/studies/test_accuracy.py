"""Accuracy is counted on given data by an interpreter, and is unknown otherwise."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

import twin
from twin.errors import UsageError
from twin.network import zoo
from twin.network.arithmetic import run_network
from twin.network.rewrites.patches import live_bytes
from twin.network.rewrites.rewrite import rewrite_network
from twin.network.writers import write_model
from twin.studies.accuracy import change_network, wilson_interval
from twin.studies.labelled import read_data

pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")


def own_answers(graph, inputs):
    """Classes a network itself chooses, so that it is always right."""
    return np.array([int(np.argmax(run_network(graph, [one])[graph.outputs[0]]))
                     for one in inputs])


@pytest.fixture(scope="module")
def kws_data(tmp_path_factory):
    graph = zoo.build("kws")
    random = np.random.default_rng(1)
    inputs = random.integers(-128, 128, (24, *graph.tensors[graph.inputs[0]].shape)).astype("int8")
    path = tmp_path_factory.mktemp("data") / "kws.npz"
    np.savez(path, x=inputs[:, 0], y=own_answers(graph, inputs))
    return path


@pytest.mark.parametrize("changes", [{}, {"network.fusion": "none"}, {"network.batch": "1"}])
def test_changes_that_cost_nothing_keep_every_answer(kws_data, changes) -> None:
    before, after = twin.accuracy("kws", kws_data, changes)
    assert before.right == before.samples == 24 and "LiteRT" in before.by
    assert after is None or after.right == 24


def test_other_numbers_may_answer_otherwise_and_are_counted(kws_data) -> None:
    before, after = twin.accuracy("kws", kws_data, {"network.weights": "int4"})
    assert after is not None and 0 <= after.low <= after.share <= after.high <= 1
    assert after.right <= before.right


def test_floats_become_integers_by_the_ranges_of_the_data(tmp_path) -> None:
    floats = rewrite_network(zoo.build("kws"), {"network.precision": "float32"})
    random = np.random.default_rng(2)
    inputs = random.uniform(-2, 2, (20, *floats.tensors[floats.inputs[0]].shape)).astype("float32")
    np.savez(tmp_path / "d.npz", x=inputs[:, 0], y=own_answers(floats, inputs))
    write_model(floats, tmp_path / "kws.tflite")
    before, after = twin.accuracy(tmp_path / "kws.tflite", tmp_path / "d.npz",
                                  {"network.precision": "int8"})
    assert before.right == before.samples == 10
    assert after is not None and after.right >= 7 and "first 10 inputs" in after.notes[0]


def test_onnx_files_are_run_by_onnx_runtime(tmp_path) -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    floats = rewrite_network(zoo.build("kws"), {"network.precision": "float32"})
    write_model(floats, tmp_path / "kws.onnx")
    random = np.random.default_rng(3)
    inputs = random.uniform(-2, 2, (6, 1, 49, 10, 1)).astype("float32")
    np.savez(tmp_path / "d.npz", x=inputs.reshape(6, 1, 49, 10), y=own_answers(floats, inputs))
    before, _ = twin.accuracy(tmp_path / "kws.onnx", tmp_path / "d.npz")
    assert before.right == 6 and before.by.startswith("ONNX Runtime")


@pytest.mark.parametrize("arrays, said", [
    ({"a": np.zeros(3)}, "holds a"), ({"x": np.zeros((2, 3)), "y": np.zeros(3, int)}, "as many"),
    ({"x": np.zeros((2, 3)), "y": np.zeros(2)}, "whole-number labels"),
    ({"x": np.zeros((2, 3)), "y": np.zeros(2, int)}, "an input of shape")])
def test_data_that_do_not_fit_are_refused(tmp_path, arrays, said) -> None:
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(UsageError, match=said):
        twin.accuracy("kws", tmp_path / "d.npz")
    (tmp_path / "no.npz").write_bytes(b"PK nothing")
    with pytest.raises(UsageError, match="cannot be read"):
        read_data(tmp_path / "no.npz")


def _write_archive(path, x, method=zipfile.ZIP_DEFLATED, zeros_mib=0) -> None:
    """An .npz of which x is these bytes, and so many MiB of zeros."""
    labels = io.BytesIO()
    np.save(labels, np.zeros(4, int))
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as file:
        with file.open("x.npy", "w") as member:
            member.write(x)
            for _ in range(zeros_mib):
                member.write(bytes(1 << 20))
        file.writestr("y.npy", labels.getvalue())


def _head(shape, dtype="<f4") -> bytes:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False,
                                                "shape": shape})
    return head.getvalue()


@pytest.mark.parametrize("x, method, zeros_mib, said", [
    (_head((4, 10**9, 10**3)), zipfile.ZIP_DEFLATED, 0, "says that it holds"),
    (_head((4, 1 << 26)), zipfile.ZIP_DEFLATED, 1 << 10, "unpacks to"),
    (_head((4, 2)) + bytes(32), zipfile.ZIP_LZMA, 0, "packed by method"),
    (_head((4,), "|O") + pickle.dumps([None] * 4), zipfile.ZIP_DEFLATED, 0, "objects"),
    (b"\x93NUMPY\x01\x00" + b"\x28\x23" + b"(" * 9000, zipfile.ZIP_DEFLATED, 0, "cannot be read"),
    (b"hello", zipfile.ZIP_DEFLATED, 0, "as NumPy writes")], ids=[
    "claims", "bomb", "method", "objects", "header", "words"])
def test_data_that_ask_for_more_than_they_are_are_refused(tmp_path, x, method, zeros_mib,
                                                          said) -> None:
    _write_archive(tmp_path / "d.npz", x, method, zeros_mib)
    with pytest.raises(UsageError, match=said):
        read_data(tmp_path / "d.npz")


def test_data_come_from_a_regular_file_that_is_whole(tmp_path) -> None:
    _write_archive(tmp_path / "d.npz", _head((4, 200)) + bytes(range(200)) * 16)
    assert read_data(tmp_path / "d.npz").inputs.shape == (4, 200)
    whole = bytearray((tmp_path / "d.npz").read_bytes())
    whole[60:80] = b"\xa5" * 20
    (tmp_path / "d.npz").write_bytes(whole)
    np.save(tmp_path / "single.npy", np.zeros(3))
    os.mkfifo(tmp_path / "pipe")
    for name in ("d.npz", "single.npy", "pipe"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_data(tmp_path / name)


def test_intervals_are_wilsons() -> None:
    # 8 of 10 at 90 %: (0.8 + z2/20 +- z sqrt(0.16/10 + z2/400)) / (1 + z2/10), z = 1.6449.
    low, high = wilson_interval(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.541, 0.931)
    assert wilson_interval(0, 5)[0] == 0 and wilson_interval(5, 5)[1] > 1 - 1e-12


@pytest.mark.parametrize("model, value", [
    ("vww", "3"), ("mobilenet_v2_0.35_96", "2"), ("mobilenet_v2_0.35_96", "3x2:10"), ("ic", "3"),
    ("ic", "2:8")])
def test_patches_answer_bit_for_bit_with_less_memory(model, value) -> None:
    graph = zoo.build(model)
    split = rewrite_network(graph, {"network.patches": value})
    assert live_bytes(split) < live_bytes(graph)
    from twin.network.writers.tflite import encode_tflite
    from twin.studies.accuracy import open_litert

    entry = graph.tensors[graph.inputs[0]]
    values = np.random.default_rng(0).integers(-128, 128, entry.shape).astype("int8")
    answers = [open_litert(encode_tflite(one))[0](values) for one in (graph, split)]
    assert np.array_equal(*answers)


def test_ranges_need_data_of_their_own() -> None:
    from twin.errors import NotApplicableError
    from twin.studies.labelled import Data

    floats = rewrite_network(zoo.build("kws"), {"network.precision": "float32"})
    one = Data(inputs=np.zeros((1, 49, 10, 1), np.float32), labels=np.zeros(1, np.int64))
    with pytest.raises(NotApplicableError, match="inputs of their own"):
        change_network(floats, {"network.precision": "int8"}, one)


@pytest.mark.parametrize("child, said", [
    ("import os; os.abort()", "ended over it"),
    ("print('[' * 1000)", "ended over it"),
    ("import time; time.sleep(100)", "took more than")])
def test_what_ends_an_interpreter_is_a_refusal(kws_data, monkeypatch, child, said) -> None:
    import sys

    from hwmodels import processes
    from twin.errors import NotApplicableError
    from twin.studies import accuracy

    monkeypatch.setattr(processes, "command_of", lambda _: (sys.executable, "-c", child))
    if "sleep" in child:
        monkeypatch.setattr(accuracy, "patient", lambda _: 0.5)
    with pytest.raises(NotApplicableError, match=said):
        twin.accuracy("kws", kws_data)
