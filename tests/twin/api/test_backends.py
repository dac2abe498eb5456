"""Back ends of this machine: timed in a process of their own, with a sample for each run."""

import os

import numpy as np
import pytest

import twin
from calibration.errors import MeasurementError
from calibration.virtual_board.host import bound_to, describe_host, list_processors
from twin.api.commands.backends import _ask
from twin.errors import UsageError
from twin.studies.accuracy import open_onnx

linux = pytest.mark.skipif(not list_processors(), reason="nothing says which processors there are")


@pytest.mark.parametrize("backend, package", [("litert", "ai_edge_litert"),
                                              ("onnxruntime", "onnxruntime")])
def test_an_interpreter_is_timed(backend, package, tmp_path):
    pytest.importorskip(package)
    before = list_processors()
    found = twin.measure("ad", "host", twin.MeasureOptions(
        backend=backend, runs=7, warmup=2, cpu=before[0] if before else None, output=tmp_path))
    network, = found.networks
    header = network.measurement.header
    assert header.kind == "measured" and header.runtime.startswith(f"{backend}@")
    assert len(network.measurement.runs) == 7 and not network.layers
    assert 0 < network.whole.time_us < 1e6
    assert dict(header.environment)["processors"] == (str(before[0]) if before else "not known")
    assert list_processors() == before
    again = twin.diff(tmp_path / "warm", tmp_path / "warm")
    assert not again.exceeding(0.01)


@linux
def test_binding_ends_whatever_happens():
    before = os.sched_getaffinity(0)
    with pytest.raises(KeyError), bound_to(min(before)):
        assert os.sched_getaffinity(0) == {min(before)}
        assert describe_host()["processors"] == str(min(before))
        raise KeyError
    assert os.sched_getaffinity(0) == before
    with pytest.raises(MeasurementError, match=r"--cpu 4096: accepted: \d"), bound_to(4096):
        pass


@pytest.mark.parametrize("board, options, message", [
    ("host", {"backend": "litertt"}, "--backend 'litertt'; did you mean litert"),
    ("nucleo_f401re", {"backend": "litert"}, "are of this machine; accepted: -b host"),
    ("nucleo_f401re", {"cpu": 0}, "are of this machine"),
    ("host", {"backend": "litert", "mask": True}, "runs no firmware; accepted beside it: --runs")])
def test_what_makes_no_sense_is_refused(board, options, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        twin.measure("ad", board, twin.MeasureOptions(**options, output=tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_a_network_the_back_end_cannot_run_is_one_line(tmp_path):
    pytest.importorskip("onnxruntime")
    options = twin.MeasureOptions(backend="onnxruntime", runs=1, output=tmp_path / "m")
    with pytest.raises(twin.TwinError, match=r"cannot be written as \.onnx") as refused:
        twin.measure("kwt1", "host", options)
    assert "\n" not in str(refused.value) and not (tmp_path / "m").exists()
    with pytest.raises(MeasurementError, match=r"^litert: .*does not run"):
        _ask(("litert", __file__, b"", 1, 0), 60.0)


def test_float16_is_written_and_run_and_is_near_float32(tmp_path):
    """No library of a board has float16; this machine's ONNX Runtime does."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    outputs, rng = {}, np.random.default_rng(0)
    values = rng.normal(size=(1, 1, 49, 10))
    for precision in ("float32", "float16"):
        path = tmp_path / f"{precision}.onnx"
        twin.export_model(twin.transform("kws", {"network.precision": precision}), path)
        graph = twin.read_model(path)
        assert {tensor.dtype for tensor in graph.tensors if tensor.is_constant} >= {precision}
        run, _, entry = open_onnx(path.read_bytes())
        assert entry.dtype == precision
        outputs[precision] = run(values.astype(precision))
    assert outputs["float16"].dtype == np.float16
    assert outputs["float16"] == pytest.approx(outputs["float32"], abs=2e-2)
    assert (tmp_path / "float16.onnx").stat().st_size < 0.6 * (
        tmp_path / "float32.onnx").stat().st_size
    found = twin.measure(tmp_path / "float16.onnx", "host", twin.MeasureOptions(
        backend="onnxruntime", runs=3, warmup=1, output=tmp_path / "m"))
    assert found.networks[0].whole.time_us > 0
