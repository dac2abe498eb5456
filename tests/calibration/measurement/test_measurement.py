"""The measurement folder: round trip, resume, refusals."""

from __future__ import annotations

import json
import os
import resource
import warnings
from dataclasses import replace

import numpy as np
import pytest

from calibration.errors import MeasurementError, TornLineWarning
from calibration.measurement.measurement import (
    Measurement,
    append_samples,
    read_header,
    read_measurement,
    write_measurement,
)
from calibration.measurement.sample import Header, Sample, check_counts

HEADER = Header(kind="measured", model="kws", board="nucleo_l4r5zi", runtime="cmsis-nn",
                clocks_hz=(("cpu", 120e6),), temperature="warm", source="test",
                placement=(("weights", "flash"), ("arena", "sram1")))


def sample(value: float, run: int = 0, **changes) -> Sample:
    return Sample(**{"run": run, "counter": "latency", "value": value, "unit": "us"} | changes)


def test_round_trip_keeps_everything(tmp_path):
    samples = (sample(1.5), sample(7, layer=3, counter="cpu_cycles", clock="cpu", unit="cycles"),
               sample(2.25, run=1))
    measurement = Measurement(header=HEADER, samples=samples)
    write_measurement(tmp_path / "m", measurement)
    assert read_measurement(tmp_path / "m") == measurement
    assert set(os.listdir(tmp_path / "m")) == {"header.json", "samples.jsonl"}


def test_statistics_of_known_values():
    # 0..100: the p-th percentile of 101 equally spaced values is p itself.
    values = np.random.default_rng(1).permutation(101)
    measurement = Measurement(header=HEADER, samples=tuple(
        sample(float(v), run=i) for i, v in enumerate(values)))
    summary = measurement.summarise("latency")
    assert (summary.count, summary.minimum, summary.maximum, summary.mean) == (101, 0, 100, 50)
    assert (summary.p50, summary.p90, summary.p95, summary.p99) == (50, 90, 95, 99)
    assert summary.tail_spread == pytest.approx(95 / 50 - 1)
    assert measurement.percentile("latency", 25) == 25
    assert measurement.values("latency").tolist() == values.tolist()
    assert measurement.next_run == 101
    assert measurement.count("latency", 4) == 0


def test_missing_counter_names_those_there_are():
    measurement = Measurement(header=HEADER, samples=(sample(1.0),))
    with pytest.raises(MeasurementError, match="latency"):
        measurement.values("latncy")
    with pytest.raises(MeasurementError, match="layer 2"):
        measurement.values("latency", 2)


def test_appending_never_changes_earlier_bytes(tmp_path):
    write_measurement(tmp_path, Measurement(header=HEADER, samples=(sample(1.0),)))
    before = (tmp_path / "samples.jsonl").read_bytes()
    header = (tmp_path / "header.json").read_bytes()
    write_measurement(tmp_path, Measurement(header=HEADER, samples=(sample(2.0, run=1),)))
    append_samples(tmp_path, [sample(3.0, run=2)])
    assert (tmp_path / "samples.jsonl").read_bytes().startswith(before)
    assert (tmp_path / "header.json").read_bytes() == header
    assert read_measurement(tmp_path).values("latency").tolist() == [1, 2, 3]


def test_other_metadata_is_refused_naming_the_key(tmp_path):
    write_measurement(tmp_path, Measurement(header=HEADER, samples=(sample(1.0),)))
    other = replace(HEADER, clocks_hz=(("cpu", 80e6),))
    with pytest.raises(MeasurementError, match=r"differing: clocks_hz cpu \(120000000\.0 and 8"):
        write_measurement(tmp_path, Measurement(header=other, samples=(sample(9.0),)))
    assert read_measurement(tmp_path).count("latency") == 1


def test_torn_last_line_is_left_out_and_resumed_wherever_it_tore(tmp_path):
    write_measurement(tmp_path, Measurement(header=HEADER,
                                            samples=(sample(1.0), sample(2.0, run=1))))
    path = tmp_path / "samples.jsonl"
    whole = path.read_bytes()
    for size in range(whole.index(b"\n") + 2, len(whole) - 1):
        torn = whole[:size]
        path.write_bytes(torn)
        with pytest.warns(TornLineWarning, match="line 2"):
            assert read_measurement(tmp_path).values("latency").tolist() == [1]
        append_samples(tmp_path, [sample(5.0, run=1)])
        assert path.read_bytes().startswith(torn)
        with pytest.warns(TornLineWarning, match="line 2"):
            assert read_measurement(tmp_path).values("latency").tolist() == [1, 5]


def test_a_disk_that_takes_only_a_part_is_an_error(tmp_path):
    write_measurement(tmp_path, Measurement(header=HEADER))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limit[1]))
    try:
        with pytest.raises(MeasurementError, match=r"samples\.jsonl: cannot be written"):
            append_samples(tmp_path, [sample(float(i), run=i) for i in range(50)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    with pytest.warns(TornLineWarning):
        assert 0 < read_measurement(tmp_path).count("latency") < 5


def test_runs_are_never_taken_twice(tmp_path):
    once = Measurement(header=HEADER, samples=(sample(1.0), sample(2.0, run=1)))
    write_measurement(tmp_path, once)
    before = (tmp_path / "samples.jsonl").read_bytes()
    with pytest.raises(MeasurementError, match=r"has run 0 to 1 already.*number on from 2"):
        write_measurement(tmp_path, once)
    assert (tmp_path / "samples.jsonl").read_bytes() == before
    other = Measurement(header=HEADER, samples=(sample(1.0, layer=3), sample(9.0, run=2)))
    write_measurement(tmp_path, other)
    assert read_measurement(tmp_path).count("latency") == 3


def test_whole_last_line_without_newline_counts(tmp_path):
    write_measurement(tmp_path, Measurement(header=HEADER, samples=(sample(1.0),)))
    path = tmp_path / "samples.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        append_samples(tmp_path, [sample(2.0, run=1)])
        assert read_measurement(tmp_path).values("latency").tolist() == [1, 2]


@pytest.mark.parametrize(("line", "message"), [
    ('{"run": 0', r"samples\.jsonl:1: not JSON"),
    ("[1]", r":1: a JSON object"),
    ('{"run": 0, "run": 1}', "twice"),
    ('{"run": 0, "counter": "a", "value": 1, "unit": "us", "clock": null}', "'layer' is missing"),
    ('{"run": 0, "layer": null, "counter": "a", "value": NaN, "unit": "us", "clock": null}',
     "finite"),
    ('{"run": true, "layer": null, "counter": "a", "value": 1, "unit": "us", "clock": null}',
     "run is True"),
    ('{"run": -1, "layer": null, "counter": "a", "value": 1, "unit": "us", "clock": null}',
     "from 0"),
    ('{"run": 0, "layer": 1, "counter": "cpu_cycles", "value": 1, "unit": "ms", "clock": "cpu"}',
     "unit 'ms' of cpu_cycles, a count of a clock; accepted: cycles, ticks"),
    ('{"runs": 0, "layer": null, "counter": "a", "value": 1, "unit": "us", "clock": null}',
     "did you mean run"),
    ("[" * 100_000, ":1: not JSON"),
])
def test_damaged_sample_names_file_and_line(tmp_path, line, message):
    write_measurement(tmp_path, Measurement(header=HEADER))
    good = json.dumps({"run": 0, "layer": None, "counter": "a", "clock": None, "value": 1,
                       "unit": "us"})
    (tmp_path / "samples.jsonl").write_text(f"{line}\n{good}\n")
    with pytest.raises(MeasurementError, match=message):
        read_measurement(tmp_path)


@pytest.mark.parametrize(("changes", "message"), [
    ({"schema": 2}, "schema 2"),
    ({"kind": "measurd"}, "did you mean measured"),
    ({"temperature": "hot"}, "temperature"),
    ({"clocks_hz": {"cpu": -1}}, r"clocks_hz\.cpu"),
    ({"clocks_hz": [1]}, "clocks_hz"),
    ({"supply_v": 0}, "supply_v"),
    ({"placement": {"arena": 3}}, r"placement\.arena"),
    ({"bord": "x"}, "unknown key 'bord'; did you mean board"),
])
def test_wrong_header_names_file_and_key(tmp_path, changes, message):
    write_measurement(tmp_path, Measurement(header=HEADER))
    path = tmp_path / "header.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(MeasurementError, match=message) as caught:
        read_header(tmp_path)
    assert "header.json" in str(caught.value)


def test_missing_folder_and_key_are_typed_errors(tmp_path):
    with pytest.raises(MeasurementError, match="nowhere: no such folder"):
        read_measurement(tmp_path / "nowhere")
    with pytest.raises(MeasurementError, match="no readable header"):
        read_measurement(tmp_path)
    write_measurement(tmp_path / "campaign" / "warm", Measurement(header=HEADER))
    with pytest.raises(MeasurementError, match=r"did you mean .*campaign/warm\?"):
        read_measurement(tmp_path / "campaign")
    write_measurement(tmp_path, Measurement(header=HEADER))
    path = tmp_path / "header.json"
    document = json.loads(path.read_text())
    del document["board"]
    path.write_text(json.dumps(document))
    with pytest.raises(MeasurementError, match="'board' is missing"):
        read_header(tmp_path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(MeasurementError):
        read_header(tmp_path)


def test_a_counter_has_one_unit():
    with pytest.raises(MeasurementError, match="another name"):
        Measurement(header=HEADER, samples=(sample(1.0), sample(1.0, run=1, unit="ms")))


def test_write_to_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(MeasurementError, match="cannot be written"):
        write_measurement(tmp_path / "taken", Measurement(header=HEADER))


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(folder, samples):
        (folder / "samples.jsonl").write_text('{"run": 0, "la')
        raise MeasurementError(f"{folder}/samples.jsonl: cannot be written (No space left)")

    monkeypatch.setattr("calibration.measurement.measurement.append_samples", full)
    found = Measurement(header=HEADER, samples=(sample(1.0),))
    with pytest.raises(MeasurementError, match=f"{tmp_path}/new/samples.jsonl: cannot be"):
        write_measurement(tmp_path / "new", found)
    assert not list(tmp_path.iterdir())


def counted(*values, counter="cpu_cycles", clock="cpu", run=0):
    """Samples of a run: the first of the whole, others of layers; None is left out."""
    return [Sample(run=run, layer=place - 1 if place else None, counter=counter, clock=clock,
                   unit="cycles", value=value) for place, value in enumerate(values)
            if value is not None]


@pytest.mark.parametrize(("samples", "said"), [
    (counted(0, 10, 20), "run 0: cpu_cycles is 0 of a whole inference: the counter stands still"),
    (counted(0, 10, 20)[::-1], "run 0: cpu_cycles is 0 of a whole inference"),
    (counted(None, 0, 0), "run 0: cpu_cycles is 0 of a whole inference"),
    (counted(5) + counted(None, 0, run=1), "run 1: cpu_cycles is 0 of a whole inference"),
    (counted(None, 2**32 - 1, 3), "run 0: cpu_cycles is 4,294,967,295: all bits are set")])
def test_counts_no_clock_makes_are_refused_whatever_their_order(samples, said):
    with pytest.raises(MeasurementError, match=f"^made: {said}"):
        check_counts(samples, "made")


@pytest.mark.parametrize("samples", [
    counted(5, 0, 0), counted(None, 0, 0.5), counted(0, counter="interrupts", clock=None),
    counted(0, clock="npu"), counted(2**32 - 1, counter="output_checksum", clock=None)])
def test_a_layer_may_take_no_tick_and_events_may_be_none(samples):
    check_counts(samples, "made")
