"""Tables as data frames, out and in again."""

import subprocess
import sys

import numpy as np
import pytest

import twin
from twin.studies.table_files import read_frame

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def kws():
    return twin.deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2.3.1")


@pytest.fixture(scope="module")
def table():
    return twin.sweep(["kws", "ad"], ["nucleo_l4r5zi", "nucleo_f401re"], clocks=["own", "80MHz"],
                      settings={"memories.flash.size_bytes": ["own", "64KiB"]}, max_ms=90)


def test_a_table_comes_back_as_it_was(table):
    frame = twin.to_pandas(table)
    assert list(frame.columns) == table.to_arrow().column_names and len(frame) == len(table.rows)
    failed = frame[frame.failure != ""]
    assert len(failed) == len(table.failed) > 0 and failed.time_us.isna().all()
    assert read_frame(frame) == table


def test_a_filtered_frame_is_reported_and_another_is_refused(table):
    pytest.importorskip("jinja2")
    frame = twin.to_pandas(table)
    assert "nucleo_f401re" not in twin.report(frame[frame.board == "nucleo_l4r5zi"])
    for other in (pandas.DataFrame({"board": ["nucleo_l4r5zi"]}), frame.assign(time_us="fast"),
                  frame.assign(time_low_us=1e9)):
        with pytest.raises(twin.TwinError, match="is not a table of a study"):
            twin.report(other)


def test_a_frame_is_varied_and_a_batch_is_one(kws):
    asked = pandas.DataFrame({"clocks.cpu.frequency_hz": [80e6, 120e6, 900e6],
                              "learnt.time.memory": [1.0, 1.1, 1.2]})
    batch = twin.predict_many(kws, vary=asked, calibration="none", errors="keep")
    same = twin.predict_many(kws, vary={name: list(asked[name]) for name in asked},
                             calibration="none", errors="keep")
    assert np.array_equal(batch.time_us, same.time_us, equal_nan=True)
    frame = twin.to_pandas(batch)
    assert list(frame.failure != "") == [False, False, True] and np.isnan(frame.time_us[2])
    causes = [f"{cause}.us" for cause in batch.causes]
    assert frame[causes].sum(axis=1)[:2].to_numpy() == pytest.approx(batch.time_us[:2])


def test_predictions_and_lists_are_frames(kws):
    prediction = twin.predict(kws, calibration="none")
    layers = twin.to_pandas(prediction)
    assert len(layers) == len(prediction.layers)
    assert layers.time_us.sum() == pytest.approx(sum(one.time_us for one in prediction.layers))
    boards = twin.to_pandas(twin.list_boards())
    assert set(boards.name) == {one.name for one in twin.list_boards().boards}
    with pytest.raises(twin.TwinError, match="accepted: a Table"):
        twin.to_pandas(twin.check(kws, max_ms=90))


def test_what_is_missing_is_named():
    code = ("import sys; sys.modules['pandas'] = None\nimport twin\n"
            "try:\n    twin.to_pandas(twin.list_boards())\n"
            "except twin.TwinError as error:\n    print(error)")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True).stdout
    assert "extra 'tables'" in said


READING = """
import os, sys
import pyarrow
from pyarrow import parquet
from twin.studies.limits import Limits
from twin.studies.results import Row, Table, write_table
from twin.studies.table_files import read_parquet, read_table

def count():
    tasks = [f"/proc/self/task/{task}/comm" for task in os.listdir("/proc/self/task")]
    return sum("jemalloc" not in open(task).read() for task in tasks)

parquet.write_table(pyarrow.table({str(n): [1.5] for n in range(99)}), sys.argv[1])
before = count()
with open(sys.argv[1], "rb") as stream:
    assert len(read_parquet(stream).to_pylist()[0]) == 99
row = Row(model="kws", board="b", runtime="r", inputs=(("batch", ""),), time_us=1.5)
written = write_table(Table(rows=(row,), limits=Limits(), objectives=("time_us",)), "t.csv")
assert read_table(written).rows == (row,)
print(count() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are listed in /proc")
def test_no_thread_of_arrow_outlives_reading_a_table(tmp_path):
    """One that lets go of a Python object while the interpreter ends aborts the process."""
    pytest.importorskip("pyarrow")
    started = subprocess.run([sys.executable, "-c", READING, tmp_path / "t.parquet"], text=True,
                             capture_output=True, check=True, cwd=tmp_path).stdout
    assert started == "0\n"
