"""Windows of a device and results of its runner: what they say, and what they lack."""

from __future__ import annotations

import pytest
from made_logs import MLPERF_LOG, MLPERF_RESULTS, NEURALSPOT

from calibration.errors import MeasurementError
from calibration.importers import import_log


def read(tmp_path, text, form="mlperf-tiny"):
    path = tmp_path / "log.txt"
    path.write_text(text)
    return import_log(form, path)


def window(count, *laps, done=True):
    return "".join([f"m-infer-start-{count}\n", *(f"m-lap-us-{lap}\n" for lap in laps),
                    "m-infer-done\n" * done])


def test_windows_of_the_longest_kind_are_runs(tmp_path):
    text = window(1, 5, 50_005) + window(20, 0, 1_000_000) + window(20, 10, 1_200_010) + window(
        3, 0, 60)
    found = read(tmp_path, text)
    assert found.measurement.values("latency").tolist() == [50_000, 60_000]
    assert found.measurement.header.temperature == "warm" and found.measurement.runs == (0, 1)
    assert found.remarks == ("a device's log does not say how many windows there should be",)


def test_a_lap_after_a_windows_end_is_none_of_it(tmp_path):
    text = "m-lap-us-7\n" + window(20, 0, 1_000_000) + "m-lap-us-2000000\nm-infer-done\n"
    assert read(tmp_path, text).measurement.values("latency").tolist() == [50_000]


@pytest.mark.parametrize(("text", "said"), [
    (window(20, 0, done=False), "line 1: the window of 20 inferences has 1 of 2 time stamps and no "
     "end"),
    (window(20, 0), "line 1: the window of 20 inferences has 1 of 2 time stamps;"),
    (window(20, 0, 1, 2), "has 3 of 2 time stamps"),
    (window(20, 0, 1 << 32), r"log\.txt:1: a time stamp of 4,294,967,296 us does not fit"),
    (window(20, 7, 7), r"log\.txt:1: 20 inferences in 0 us"),
    (window(0, 0, 7), "0 inferences in 7 us")])
def test_a_window_that_is_cut_or_cannot_be_is_refused(tmp_path, text, said):
    with pytest.raises(MeasurementError, match=said):
        read(tmp_path, text)


def test_results_are_held_against_their_medians(tmp_path):
    found = read(tmp_path, MLPERF_RESULTS)
    one = found.measurement
    assert found.remarks == () and one.values("median_latency").tolist() == [50_000]
    assert one.values("energy").tolist() == [3371.738] == one.values("median_energy").tolist()
    units = {sample.counter: sample.unit for sample in one.samples}
    assert units == {"latency": "us", "energy": "uj", "median_latency": "us",
                     "median_energy": "uj"}
    for old, new, said in (
            ("20.000 inf./sec.\n00000.5", "20.100 inf./sec.\n00000.5",
             "the median latency is 49751.2, that of its 3 windows 50000"),
            ("cost is 3371.738", "cost is 3379.738", "the median energy is 3379.74, that of its 1"),
            ("00000.5 ulp-ml", "x Median throughput is 20.0 inf./sec.\n00000.5 ulp-ml",
             "median latency is there twice; is this two logs")):
        assert old in MLPERF_RESULTS
        with pytest.raises(MeasurementError, match=said):
            read(tmp_path, MLPERF_RESULTS.replace(old, new, 1))
    rounded = MLPERF_RESULTS.replace("cost is 3371.738", "cost is 3378.4")
    assert read(tmp_path, rounded).measurement.values("median_energy").tolist() == [3378.4]


@pytest.mark.parametrize(("kept", "remarks"), [
    ("Throughput   :", ["no median latency stated: whether all windows are there is not checked"]),
    ("Energy/Inf", ["no median energy stated: whether all windows are there is not checked",
                    "no throughput: energy, and no time of an inference"]),
    ("Median throughput", ["no latency of single windows: the median counts as one run"]),
    ("Median energy", ["no energy of single windows: the median counts as one run"])])
def test_what_results_do_not_state_is_remarked(tmp_path, kept, remarks):
    lines = [line for line in MLPERF_RESULTS.splitlines(keepends=True) if kept in line]
    assert list(read(tmp_path, "".join(lines)).remarks) == remarks


def test_a_devices_own_words_name_board_and_network(tmp_path):
    one = read(tmp_path, MLPERF_LOG).measurement
    assert (one.header.board, one.header.model) == ("nucleo", "kws01")
    assert read(tmp_path, window(2, 0, 9)).measurement.header.model == "not known"


def test_columns_of_a_profile_are_its_counters(tmp_path):
    one = read(tmp_path, NEURALSPOT, "neuralspot").measurement
    assert {name: one.values(name, 0)[0] for name in one.counters} == {
        "latency": 47794, "estimated_macs": 320000, "cpu_cycles": 9176380, "dwt_cpicnt": 141,
        "dwt_exccnt": 252, "dwt_sleepcnt": 0, "dwt_lsucnt": 188, "dwt_foldcnt": 166,
        "daccess": 58335, "dtaglookup": 55777}
    units = {sample.counter: (sample.unit, sample.clock) for sample in one.samples}
    assert (units["estimated_macs"], units["cpu_cycles"], units["daccess"]) == (
        ("MACs", None), ("cycles", "cpu"), ("events", None))
    assert one.header.facts["operators"] == "CONV_2D,DEPTHWISE_C"
    more = NEURALSPOT.replace("dtaglookup", '"MAX"')
    assert read(tmp_path, more, "neuralspot").measurement.values("max", 0) == [55777]
    for change, said in (
            (lambda text: text + text, r"log\.txt:4: a second table; one run is read"),
            (lambda text: text.replace("CONV_2D", '"CONV', 1), r"log\.txt:2: no line of a table"),
            (lambda text: text.replace("58335, ", ""), r"log\.txt:2: 11 columns; the header")):
        with pytest.raises(MeasurementError, match=said):
            read(tmp_path, change(NEURALSPOT), "neuralspot")
