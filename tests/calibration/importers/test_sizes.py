"""What says that it is far larger than any log is refused unread."""

import pytest

from calibration.errors import MeasurementError
from calibration.importers import FORMATS, import_log
from calibration.measurement.measurement import read_header
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
