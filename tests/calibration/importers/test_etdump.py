"""ExecuTorch's ETDump: ticks of each call, on the layers of the program they are of."""

import struct
from pathlib import Path

import pytest

import twin
from calibration.errors import MeasurementError
from calibration.importers import import_log
from twin.network.operators import is_alias
from twin.network.readers import read_model

FOLDER = Path(__file__).parents[2] / "made" / "executorch"
LOG, MODEL = FOLDER / "net.etdp", FOLDER / "net.pte"


def test_each_execution_is_a_run_and_each_call_a_layer():
    measurement = import_log("etdump", LOG).measurement
    assert measurement.runs == (0, 1, 2) and measurement.header.kind == "measured"
    # Start and end of the first convolution and of the first execution, as devtools prints them.
    assert measurement.values("timer_ticks", 0)[0] == 8900689 - 8685824
    assert measurement.values("timer_ticks", None)[0] == 12534479 - 8684925
    assert dict(measurement.header.environment)["operators"] == (
        "convolution,relu,convolution,relu,convolution,add,avg_pool2d,permute_copy,addmm,softmax")
    layers = sum(measurement.values("timer_ticks", layer)[1] for layer in range(10))
    assert 0.9 < layers / measurement.values("timer_ticks", None)[1] < 1


def test_with_the_program_views_get_no_figure(tmp_path):
    found = twin.import_log("etdump", LOG, model=str(MODEL), output=tmp_path / "log")
    graph = read_model(MODEL)
    kernels = [layer.index for layer in graph.layers if not is_alias(layer)]
    assert [i for i in found.measurement.layers if i is not None] == kernels
    assert found.measurement.header.architecture_id == graph.architecture_id


def test_another_programs_log_is_refused(tmp_path):
    with pytest.raises(MeasurementError, match="relu as operator 1, that of bn_cortex_m is"):
        twin.import_log("etdump", LOG, model=str(FOLDER / "bn_cortex_m.pte"),
                        output=tmp_path / "log")


@pytest.mark.parametrize("change, message", [
    (lambda data: data[:4], "nothing of format etdump"),
    (lambda data: data[:900], "damaged"),
    (lambda data: data.replace(struct.pack("<Q", 8900689), bytes(8)), "ticks; accepted"),
    (lambda data: data.replace(b"OPERATOR_CALL", b"OPERATOR_CAL\x1b"), "accepted: a name"),
    (lambda data: data.replace(b"OPERATOR_CALL", b"OPERATOR_CALM"), "built with the event tracer"),
])
def test_what_is_damaged_or_without_calls_is_refused(tmp_path, change, message):
    path = tmp_path / "log.etdp"
    path.write_bytes(change(LOG.read_bytes()))
    with pytest.raises(MeasurementError, match=message) as refusal:
        import_log("etdump", path)
    assert str(refusal.value).startswith(str(path)) and str(refusal.value).isprintable()
