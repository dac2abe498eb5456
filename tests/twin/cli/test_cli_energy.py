"""`twin energy`: a meter's recording of a board with marks becomes energies per layer."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

import twin
from calibration.errors import MeasurementError
from calibration.measurement.measurement import Measurement, read_measurement, write_measurement
from calibration.measurement.sample import Header, Sample
from twin.api.commands.energy import doubt_energy
from twin.cli import app
from twin.errors import UsageError
from twin.reports.documents import load_schema

TIMES_US, LEVELS_MA, VOLT = (2000.0, 5000.0, 1000.0), (20.0, 35.0, 10.0), 3.0


@pytest.fixture
def folder(tmp_path):
    header = Header(kind="measured", model="m", board="b", runtime="firmware", temperature="warm",
                    source="test", clocks_hz=(("cpu", 1e8),))
    samples = tuple(Sample(run=0, layer=i, counter="cpu_cycles", clock="cpu", unit="cycles",
                           value=t * 100) for i, t in enumerate(TIMES_US))
    write_measurement(tmp_path / "warm", Measurement(header=header, samples=samples))
    return tmp_path / "warm"


def write_ppk2(path, runs: int = 3) -> None:
    """100 kS/s, the mark toggling at each layer's start and at the end."""
    rows, level, time_us = [], 0, 0.0
    plan = [(500.0, 2.0, 0)] + [(t, ma, 1) for _ in range(runs) for t, ma in
                                [*zip(TIMES_US, LEVELS_MA, strict=True), (700.0, 2.0)]]
    for span, ma, toggles in plan:
        level ^= toggles
        for _ in range(int(span / 10)):
            time_us += 10
            rows.append(f"{time_us / 1e3:.2f},{ma * 1e3:.1f},{level}0000000")
    path.write_text("Timestamp(ms),Current(uA),D0-D7\n" + "\n".join(rows) + "\n")


def test_energy_per_layer_from_marks(folder, tmp_path):
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    result = CliRunner().invoke(app, ["energy", str(folder), str(trace), "--meter", "ppk2",
                                      "--supply", str(VOLT)])
    assert result.exit_code == 0, result.stderr
    found = read_measurement(folder.parent / "energy-recording")
    for layer, (span, ma) in enumerate(zip(TIMES_US, LEVELS_MA, strict=True)):
        values = found.values("energy", layer)
        assert len(values) == 3
        assert values == pytest.approx(np.full(3, span * ma * VOLT * 1e-3), rel=0.01)
    whole = sum(t * ma * VOLT * 1e-3 for t, ma in zip(TIMES_US, LEVELS_MA, strict=True))
    assert found.percentile("energy", 50) == pytest.approx(whole, rel=0.01)
    assert found.header.supply_v == VOLT and "inference" in result.stdout
    assert "expected" not in result.stderr
    # the meter's 10 % of the reading are in the interval
    assert found.percentile("energy_sd", 50) == pytest.approx(0.05 * whole, rel=0.1)


def test_the_folder_of_a_campaign_and_one_of_ones_own(folder, tmp_path):
    """A header that says uA over numbers of mA is doubted, and the result goes where it is told."""
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    trace.write_text(trace.read_text().replace("(uA)", "(nA)"))
    result = CliRunner().invoke(app, ["energy", str(folder.parent), str(trace), "--meter", "ppk2",
                                      "--supply", str(VOLT), "-o", str(tmp_path / "mine"),
                                      "--json"])
    document = json.loads(result.stdout)
    assert document["kind"] == "energy" and document["doubt"]
    jsonschema.Draft202012Validator(load_schema("outcome")).validate(document)
    assert result.exit_code == 0, result.stderr
    assert "Is the unit of the current right?" in result.stderr
    assert read_measurement(tmp_path / "mine").layers == (0, 1, 2)
    result = CliRunner().invoke(app, ["energy", str(tmp_path / "none"), str(trace), "--meter",
                                      "ppk2", "--supply", "3"])
    assert result.exit_code == 2 and "no measurement" in result.stderr


@pytest.mark.parametrize("measured", ["as imported", "firmware"])
def test_an_energy_far_from_the_predicted_is_doubted(tmp_path, measured):
    """A log of ticks says no clock of the core: the prediction is at the board's own."""
    base = twin.predict(twin.deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn"))
    header = Header(kind="measured", model="kws", board="nucleo_l4r5zi", source="test",
                    runtime=base.deployment.runtime.identity if measured != "firmware"
                    else measured, temperature="cold")
    right, low, high = (Measurement(header=header, samples=(
        Sample(run=0, counter="energy", unit="uj", value=base.energy_uj * factor),))
        for factor in (1, 1e-3, 66))
    assert doubt_energy(right, tmp_path) is None
    assert "outside of the predicted" in str(doubt_energy(high, tmp_path))
    write_measurement(tmp_path / "m", low)
    found: list[str] = []
    with pytest.raises(UsageError, match="--anyway"):
        twin.calibrate([tmp_path / "m"], "nucleo_l4r5zi")
    with pytest.raises(MeasurementError, match="is cold"):
        twin.calibrate([tmp_path / "m"], "nucleo_l4r5zi", anyway=True, on_remark=found.append)
    assert [str(doubt_energy(low, tmp_path)) in one for one in found] == [True]


def test_an_overlay_of_a_doubted_energy_says_so_and_is_as_unsure(tmp_path):
    """Currents in the wrong unit: what is learnt from them is off by a factor nobody knows."""
    base = twin.predict(twin.deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn"))
    header = Header(kind="measured", model="kws", board="nucleo_l4r5zi", source="test",
                    runtime=base.deployment.runtime.identity, temperature="warm")
    learnt = {}
    for factor in (1.3, 40.0):
        folder = tmp_path / f"by {factor:g}"
        write_measurement(folder, Measurement(header=header, samples=tuple(
            Sample(run=0, counter=counter, unit=unit, value=value) for counter, unit, value in (
                ("latency", "us", base.time_us), ("energy", "uj", base.energy_uj * factor)))))
        path = tmp_path / f"{factor:g}.yaml"
        overlay = twin.calibrate([folder], "nucleo_l4r5zi", anyway=True, output=path)
        assert overlay.data.kinds == ("measured",) + ("doubted",) * (factor > 10)
        learnt[factor] = twin.predict(base.deployment, calibration=str(path))
    sure, doubted = (learnt[factor].certainty for factor in learnt)
    assert "hardly be right" in doubted.calibration
    assert "hardly" not in sure.calibration
    assert sure.energy_uj.high / sure.energy_uj.low < 10 < 100 < (
        doubted.energy_uj.high / doubted.energy_uj.low)
    assert doubted.energy_uj.low < base.energy_uj
    assert doubted.time_us == sure.time_us


def test_a_window_is_as_long_as_its_inferences(folder, tmp_path):
    """8 ms each as measured; the window holds three and the pauses between them."""
    trace = tmp_path / "window.csv"
    rows = [f"{i / 100:.2f},{20e3:.1f},{int(100 <= i < 2500)}0000000" for i in range(2600)]
    trace.write_text("\n".join(("Timestamp(ms),Current(uA),D0-D7", *rows)) + "\n")
    for runs, unit, code in ((3, "ms", 0), (2, "ms", 3), (5, "ms", 3), (3, "us", 3), (3, "s", 3)):
        text = trace.read_text()
        other = tmp_path / f"window-{runs}-{unit}.csv"
        other.write_text(text.replace("(ms)", f"({unit})"))
        result = CliRunner().invoke(app, ["energy", str(folder), str(other), "--meter", "ppk2",
                                          "--supply", "3", "--runs", str(runs)])
        assert result.exit_code == code, (runs, unit, result.stderr)
        assert code == 0 or "Is the number of runs right" in result.stderr


def test_the_mark_is_named_and_the_whole_inference_counts(folder, tmp_path):
    """8.4 ms an inference, of which the layers are 8; the mark's column has a name of its own."""
    measured = read_measurement(folder)
    write_measurement(tmp_path / "whole", replace(measured, samples=(
        *measured.samples, Sample(run=0, layer=None, counter="cpu_cycles", clock="cpu",
                                  unit="cycles", value=840_000))))
    files = {"joulescope": "#time,current,voltage,{}", "otii":
             "Timestamp (s),Arc Main current (A),Arc Main voltage (V),{}",
             "scope": "Time (s),CH1 (V),{} (V)"}

    def run(meter: str, name: str, *more: str, to: str = ""):
        trace = tmp_path / "trace.csv"
        rows = [f"{i / 1e5:.5f},{0.02 if 100 <= i < 2620 else 0.001},3.0,{int(100 <= i < 2620)}"
                for i in range(2700)]
        rows = rows if meter != "scope" else [row.replace(",3.0,", ",") for row in rows]
        trace.write_text("\n".join((files[meter].format(name), *rows)) + "\n")
        return CliRunner().invoke(app, ["energy", str(tmp_path / "whole"), str(trace), "--meter",
                                        meter, "--runs", "3", *more, "-o",
                                        str(tmp_path / (to or meter))])

    lab = ("--shunt", "1", "--supply", "3000mV")
    for meter, name, more in (("joulescope", "IN0", ()), ("otii", "Arc GPI1", ()),
                              ("scope", "CH2", (*lab, "--mark-column", "CH2"))):
        ended = run(meter, name, *more)
        assert ended.exit_code == 0, ended.stderr
        assert "assumed" in ended.stdout
    found = read_measurement(tmp_path / "scope")
    assert found.percentile("energy_sd", 50) == pytest.approx(0.016 * 504, rel=0.05)
    for meter, name, more, code, said in (
            ("joulescope", "mine", (), 3, "--mark-column NAME, where one of mine is the mark"),
            ("joulescope", "mine", ("--mark-column", "min"), 3, "did you mean mine"),
            ("joulescope", "IN0", ("--supply", "3.3"), 2, "its voltage column is 3 V in the mean"),
            ("scope", "CH2", ("--supply", "3"), 2, "(--shunt OHM)"),
            ("scope", "CH2", lab, 3, "--mark-column NAME, where one of CH2"),
            ("scope", "CH2", ("--supply", "3 volts"), 2, "--supply '3 volts' is not understood")):
        ended = run(meter, name, *more, to="own")
        assert ended.exit_code == code and said in " ".join(ended.stderr.split()), ended.stderr
    assert run("joulescope", "mine", "--mark-column", "Mine", to="own").exit_code == 0


def test_options_are_looked_at_before_the_folder_that_is_there(folder, tmp_path):
    trace = tmp_path / "w.csv"
    write_windows(trace, 1, 1)
    measured = read_measurement(folder)
    write_measurement(tmp_path / "real", replace(measured, header=replace(
        measured.header, board="nucleo_l4r5zi")))
    ended = CliRunner().invoke(app, ["energy", str(tmp_path / "real"), str(trace), "--meter",
                                     "ppk2", "--supply", "3300", "-o", str(folder)])
    assert ended.exit_code == 2 and "--supply 3300 V" in ended.stderr


def write_windows(path, windows: int, inferences: int) -> None:
    """Windows of so many inferences of 8 ms at 20 mA, 3 ms at 2 mA between them."""
    plan = [(3.0, 2.0, 0)] + [one for _ in range(windows)
                              for one in ((8.0 * inferences, 20.0, 1), (3.0, 2.0, 0))]
    rows, time_ms = [], 0.0
    for span_ms, ma, level in plan:
        for _ in range(int(span_ms * 100)):
            time_ms += 0.01
            rows.append(f"{time_ms:.2f},{ma * 1e3:.1f},{level}0000000")
    path.write_text("Timestamp(ms),Current(uA),D0-D7\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize(("runs", "code", "said"), [
    ("10", 0, "inference"), ("9", 3, "+11.1%, accepted: 3% either way). It would hold 10, "),
    ("11", 3, "-9.1%"),
    # a core at half its clock, whose time was taken by cycles: 5 last as long as 10
    ("5", 3, "would hold 10, or 5 at 0.5 x the clock."),
    (None, 3, "how many inferences were made in it (--runs); it is as long as 10.00")])
def test_one_inference_more_or_less_is_refused(folder, tmp_path, runs, code, said):
    write_windows(tmp_path / "w.csv", 1, 10)
    result = CliRunner().invoke(app, ["energy", str(folder), str(tmp_path / "w.csv"), "--meter",
                                      "ppk2", "--supply", "3", *(("--runs", runs) if runs else ())])
    assert result.exit_code == code, result.stderr
    assert said in " ".join((result.stdout if code == 0 else result.stderr).split())


def test_several_windows_in_one_recording_are_runs(folder, tmp_path):
    write_windows(tmp_path / "w.csv", 3, 4)
    result = CliRunner().invoke(app, ["energy", str(folder), str(tmp_path / "w.csv"), "--meter",
                                      "ppk2", "--supply", "3", "--runs", "4"])
    assert result.exit_code == 0, result.stderr
    found = read_measurement(folder.parent / "energy-w")
    assert found.runs == (0, 1, 2)
    assert found.values("energy") == pytest.approx(np.full(3, 8000 * 60e-3), rel=0.01)
    text = (tmp_path / "w.csv").read_text().splitlines()
    (tmp_path / "cut.csv").write_text("\n".join(text[:3500]) + "\n")
    result = CliRunner().invoke(app, ["energy", str(folder), str(tmp_path / "cut.csv"), "--meter",
                                      "ppk2", "--supply", "3", "--runs", "4"])
    assert result.exit_code == 3 and "started or ended within one" in result.stderr
    assert f"{tmp_path / 'cut.csv'}: trace of ppk2: 1 edges of the sync" in result.stderr


def test_a_layer_shorter_than_a_sample_is_merged_and_said_so(folder, tmp_path):
    """At 1.5 ms a sample the last of 2, 5 and 1 ms is the second's; the sum is what it was."""
    rows, time_us = [], 0.0
    for span, ma, level in ((6000.0, 2.0, 0), (2000.0, 20.0, 1), (5000.0, 35.0, 0),
                            (1000.0, 10.0, 1), (6000.0, 2.0, 0)):
        for _ in range(int(span / 10)):
            time_us += 10
            rows.append((time_us, ma, level))
    mean = [(rows[place][0], sum(ma for _, ma, _ in rows[place - 99:place + 1]) / 100,
             rows[place][2]) for place in range(99, len(rows), 100)]
    header = "Timestamp(ms),Current(uA),D0-D7\n"
    (tmp_path / "slow.csv").write_text(header + "".join(
        f"{when / 1e3:.3f},{ma * 1e3:.1f},{level}0000000\n" for when, ma, level in mean))
    slow = read_measurement(folder)
    write_measurement(tmp_path / "short", Measurement(header=slow.header, samples=(
        *(one for one in slow.samples if one.layer != 2),
        Sample(run=0, layer=2, counter="cpu_cycles", clock="cpu", unit="cycles", value=90_000))))
    result = CliRunner().invoke(app, ["energy", str(tmp_path / "short"), str(tmp_path / "slow.csv"),
                                      "--meter", "ppk2", "--supply", "3"])
    assert result.exit_code == 0, result.stderr
    told = " ".join(result.stderr.split())
    assert "shorter than a sample of the meter (1000 us): layer 1 holds the energy of 2 too" in told
    assert "--power-repeat" in told
    found = read_measurement(tmp_path / "energy-slow")
    assert found.layers == (0, 1) and "layer 1 holds" in dict(found.header.environment)["merged"]
    assert sum(found.percentile("energy", 50, layer) for layer in (0, 1)) == pytest.approx(
        found.percentile("energy", 50), rel=0.02)


def test_the_place_of_the_result_is_checked_first(folder, tmp_path):
    result = CliRunner().invoke(app, ["energy", str(folder), str(tmp_path / "none.csv"), "--meter",
                                      "ppk2", "--supply", "3", "-o", str(folder)])
    assert result.exit_code == 2 and "holds a measurement already" in result.stderr


def test_refusals(folder, tmp_path):
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    for arguments, code, message in (
            (["--meter", "ppk2"], 2, "give the supply (--supply VOLT)"),
            (["--meter", "ppk2", "--supply", "3", "--rate", "100 kilo"], 2,
             "--rate '100 kilo' is not understood"),
            (["--meter", "ppk2", "--supply", "3", "--by-shape", "--runs", "3"], 2, "--by-shape"),
            (["--meter", "ppk2", "--supply", "-3"], 2, "--supply of -3 V; accepted: above 0"),
            (["--meter", "ppk3", "--supply", "3"], 2, "did you mean ppk2")):
        result = CliRunner().invoke(app, ["energy", str(folder), str(trace), *arguments])
        assert result.exit_code == code and message in result.stderr


@pytest.mark.parametrize(("board", "meter", "supply", "said"), [
    ("b_u585i_iot02a", "ppk2", "5", "runs at 1.71 to 3.6 V (datasheet: STM32U585xx datasheet"),
    ("b_u585i_iot02a", "ppk2", "1800", "runs at 1.71 to 3.6 V"),
    ("b_u585i_iot02a", "ppk2", "3.3", None), ("b", "ppk2", "5", None),
    ("b", "joulescope", "3", "columns are those of ppk2, not of joulescope"),
    ("b", "scope", "3", "columns are those of ppk2, not of scope"),
    ("b", "ina226", "3", "columns are those of ppk2, not of ina226")])
def test_a_supply_and_a_meter_that_cannot_be(folder, tmp_path, board, meter, supply, said):
    measured = read_measurement(folder)
    write_measurement(tmp_path / "of", replace(
        measured, header=replace(measured.header, board=board)))
    write_ppk2(tmp_path / "r.csv", 1)
    result = CliRunner().invoke(app, ["energy", str(tmp_path / "of"), str(tmp_path / "r.csv"),
                                      "--meter", meter, "--supply", supply])
    assert (result.exit_code == 0) is (said is None), result.stderr
    assert said is None or said in " ".join(result.stderr.split())


@pytest.mark.parametrize("late_ms", [0, 20])
def test_marks_that_come_late_are_doubted(folder, tmp_path, late_ms):
    rows = [f"{i / 10:.1f},{20e3 if 300 <= i < 1100 else 2e3:.1f},"
            f"{int(300 <= i - late_ms * 10 < 1100)}0000000" for i in range(1500)]
    (tmp_path / "w.csv").write_text("Timestamp(ms),Current(uA),D0-D7\n" + "\n".join(rows) + "\n")
    result = CliRunner().invoke(app, ["energy", str(folder), str(tmp_path / "w.csv"), "--meter",
                                      "ppk2", "--supply", "3", "--runs", "10"])
    assert result.exit_code == 0, result.stderr
    assert ("last twentieth is at idle power" in " ".join(result.stderr.split())) is bool(late_ms)


def test_a_short_or_slow_recording_is_said_and_a_long_fast_one_is_not(folder, tmp_path):
    from calibration.power_trace.trace import Meter, PowerTrace
    from twin.api.commands.energy import _judge_length

    def record(period_us: float, seconds: float) -> str:
        time_us = np.arange(1, round(seconds * 1e6 / period_us) + 1) * period_us
        return _judge_length(PowerTrace(time_us=time_us, power_mw=np.ones(len(time_us)),
                                        meter=Meter(name="m")))

    assert record(1000, 10) == "" == record(10, 12)
    slow, short, both = record(2000, 12), record(100, 9), record(2000, 9)
    assert slow.startswith("the recording has 500 samples a second over 12 s; at least 1,000")
    assert "over 9 s; at least 10 s (--power RUNS" in short and "rate" not in short
    assert "--power" not in slow and "rate) and 10 s" in both
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    result = CliRunner().invoke(app, ["energy", str(folder), str(trace), "--meter", "ppk2",
                                      "--supply", str(VOLT)])
    assert "at least 10 s (--power RUNS of the measurement) are advised" in result.stderr
