"""What says that it is far larger than any log is refused unread."""

import pytest

from calibration.errors import MeasurementError
from calibration.importers import FORMATS, import_log
from calibration.measurement.measurement import Measurement, read_header
from calibration.power_trace.meter_files import METER_FILES, read_meter_file


@pytest.fixture
def sparse(tmp_path):
    path = tmp_path / "sparse.log"
    with open(path, "wb") as stream:
        stream.truncate(1 << 31)
    return path


@pytest.mark.parametrize("form", FORMATS)
def test_a_sparse_log_is_refused(sparse, form):
    with pytest.raises(MeasurementError, match="has 2,147,483,648 bytes; at most"):
        import_log(form, sparse)


@pytest.mark.parametrize("meter", METER_FILES)
def test_a_sparse_trace_is_refused(sparse, meter):
    with pytest.raises(MeasurementError, match="has 2,147,483,648 bytes; at most"):
        read_meter_file(sparse, meter)


def test_a_sparse_header_is_refused(sparse, tmp_path):
    sparse.rename(tmp_path / "header.json")
    with pytest.raises(MeasurementError, match="at most"):
        read_header(tmp_path)


def test_a_long_log_is_looked_through_as_often_as_a_short_one(tmp_path, monkeypatch):
    inference = "CONV_2D took 1200000 ticks (10 ms).\nSOFTMAX took 12000 ticks (0 ms).\n"
    asked, counters = [], Measurement.counters.fget
    monkeypatch.setattr(Measurement, "counters", property(
        lambda self: asked.append(self) or counters(self)))
    times = []
    for count in (10, 100):
        path = tmp_path / f"{count}.log"
        path.write_text(inference * count)
        found = import_log("tflm", path, clock_hz=120e6, board="nucleo_l4r5zi")
        assert found.measurement.layers == (0, 1) and len(found.measurement.runs) == count
        times.append(len(asked))
        asked.clear()
    assert times[0] == times[1]
