"""What lines of perf stat say, in each of its forms; values by hand."""

from __future__ import annotations

import json

import pytest

from calibration.errors import MeasurementError
from calibration.importers import import_log
from calibration.importers.perf_stat import recognise


def read(tmp_path, text):
    path = tmp_path / "log.txt"
    path.write_text(f" Performance counter stats for 'true':\n{text}")
    return import_log("perf-stat", path, partial=True)  # not each has a line of seconds elapsed


def row(**facts):
    return json.dumps({"counter-value": "7", "unit": "", "event": "branches", **facts})


@pytest.mark.parametrize(("line", "counter", "unit", "value"), [
    ("  1.5 msec task-clock  #  0.6 CPUs utilized", "task_clock", "us", 1500),
    ("  1,500 ns duration_time", "duration_time", "us", 1.5),
    ("  2.00 MiB llc_misses.mem_read", "llc_misses.mem_read", "bytes", 2 << 20),
    ("  0.25 Joules power/energy-pkg/", "power/energy_pkg/", "uj", 250_000),
    ("  12 cpu-cycles  ( +-  0.04% )  (83.2%)", "cpu_cycles", "cycles", 12),
    ("  12 L1-dcache-loads:u  ( +-  0.04% )", "L1_dcache_loads", "events", 12),
    ("  0.5 +- 0.01 seconds time elapsed  ( +-  2.1% )", "latency", "us", 500_000),
    ("  0.5 seconds user", "seconds_user", "us", 500_000),
    ("7,,branches,55,100.00,,", "branches", "events", 7),
    ("7;;branches;55;100.00;;", "branches", "events", 7),
    ("7\t\tbranches\t55\t100.00\t\t", "branches", "events", 7),
    (row(), "branches", "events", 7), (row(unit="msec"), "branches", "us", 7000)])
def test_a_line_is_a_counter_in_its_unit(tmp_path, line, counter, unit, value):
    found = read(tmp_path, f"  3 page-faults\n{line}\n")
    first, sample = found.measurement.samples
    assert (first.counter, first.value, found.unread) == ("page_faults", 3, ())
    assert (sample.counter, sample.unit, sample.layer, sample.run) == (counter, unit, None, 0)
    assert sample.value == pytest.approx(value)
    assert sample.clock == ("cpu" if counter == "cpu_cycles" else None)


@pytest.mark.parametrize(("line", "told"), [
    ("  <not counted>  cycles  (0.00%)", ("not_counted", "cycles")),
    ("<not supported>,,cycles,0,100.00,,", ("not_counted", "cycles")),
    (row(**{"counter-value": "<not counted>"}), ("not_counted", "branches")),
    ("  9  branches  (99.99%)", ("scaled", "branches")),
    ("9,,branches,55,99.99,,", ("scaled", "branches")),
    ("9,,branches,1.2%,55,99.99,,", ("scaled", "branches")),
    (row(**{"pcnt-running": 99}), ("scaled", "branches")),
    ("  9  branches:u", ("user_space", "branches"))])
def test_what_was_not_counted_fully_is_told_and_what_follows_is_read(tmp_path, line, told):
    found = read(tmp_path, f"{line}\n  3 page-faults\n")
    name, events = told
    assert dict(found.measurement.header.environment)[name] == events
    assert f"{name.replace('_', ' ')}: {events}" in found.remarks
    assert found.measurement.values("page_faults").tolist() == [3]


@pytest.mark.parametrize("line", ["  9  branches  (100.00%)", "9,,branches,55,100.00,,",
                                  "9,,branches,1.2%,55,100.00,,", row(**{"pcnt-running": 100}),
                                  row(**{"pcnt-running": None}), "9,,branches,55,?,,"])
def test_what_was_counted_all_the_time_is_not_called_scaled(tmp_path, line):
    assert "scaled" not in dict(read(tmp_path, f"{line}\n").measurement.header.environment)


@pytest.mark.parametrize(("line", "said"), [
    *((row(**{key: 0}), "counts over intervals or per core are not one run's; run perf stat "
       "without -I, -A") for key in ("interval", "core", "die", "socket", "node", "cpu", "thread")),
    (row(unit="furlong"), "no line of perf stat -j .unit 'furlong'"),
    (row(event=""), "no line of perf stat -j"), (row(event=3), "no line of perf stat -j"),
    (row(**{"pcnt-running": "all"}), "no line of perf stat -j"),
    ('{"counter-value": "7"}', "no line of perf stat -j .'event'"),
    ('{"counter-value": "7",', "no line of perf stat -j"),
    ("     1.000123456  7  cycles", "counts over intervals are not one run's"),
    ("     1.000123456;7;;cycles;5;100.00;;", "counts over intervals are not one run's"),
    ("S0-D0-C1  2  7  cycles", "counts per core are not one run's"),
    ("CPU1,1,7,,cycles,5,100.00,,", "counts per core are not one run's"),
    ("  7.5  cycles", "'7.5' is not a count of cycles; a comma or point may be another"),
    ("  4  page-faults", "'page-faults' is there twice; one run is read")])
def test_what_is_no_count_of_one_run_is_refused_by_its_line(tmp_path, line, said):
    with pytest.raises(MeasurementError, match=rf"log\.txt:3: .*{said}"):
        read(tmp_path, f"  3 page-faults\n{line}\n")


@pytest.mark.parametrize(("text", "is_one"), [
    (" Performance counter stats for 'true':\n", True), (row(), True),
    ("7,,branches,55,100.00,,", True), ("1.000123456 7 cycles", True),
    ("7,pints,branches,55,100.00,,", False), ("7,,9,55,100.00,,", False),
    ("seven,,branches,55,100.00,,", False), ("7,,branches,55", False), ("7 cycles", False)])
def test_its_output_is_told_from_other_tools(text, is_one):
    assert bool(recognise(text)) is is_one
