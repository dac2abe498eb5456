"""Recordings of each meter, in its own columns, become the power they are; others are refused."""

from __future__ import annotations

import importlib
import itertools
import sys

import numpy as np
import pytest

from calibration.errors import MeasurementError, MeterOptionError
from calibration.power_trace.meter_files import read_meter_file
from calibration.power_trace.trace import METERS
from hwmodels import extensions
from hwmodels.errors import ExtensionError

FILES = {
    "ppk2": "Timestamp(ms),Current(uA),D0-D7\n" + "".join(
        f"{0.01 * i:.2f},{5000 + i}.5,{'10000000' if 3 <= i < 8 else '00000000'}\n"
        for i in range(12)),
    "joulescope": "#time,current,voltage,power,charge,energy\n" + "".join(
        f"{1e-5 * i:.6f},{0.005 + 1e-6 * i},{2.0},{0.01 + 2e-6 * i},0,0\n" for i in range(12)),
    "stlink_v3pwr": "Power recording\nTime (ms);Current (nA);Voltage (mV)\n" + "".join(
        f"{0.01 * i:.2f};{5000500 + 1000 * i};{2000}\n".replace(".", ",") for i in range(12)),
    "lpm01a": "PowerShield > ack start\nTimeStamp: 000s 001ms, buff 00%\n" + "".join(
        f"{50005 + 10 * i}-07\n" for i in range(12)) + "TimeStamp: 000s 002ms, buff 00%\n",
    "otii": "Timestamp,Main current,Main voltage,GPI1\n" + "".join(
        f"{1e-5 * i:.6f},{0.0050005 + 1e-6 * i:.9f},2.0,0\n" for i in range(12)),
    "ina226": "t (us),shunt (uV),bus (mV)\n" + "".join(
        f"{10 * i},{5000.5 + i},2000\n" for i in range(12)),
    "ina228": "time(ms);power(mW)\n" + "".join(
        f"{0.01 * i:.2f};{10.001 + 0.002 * i:.6f}\n" for i in range(12)),
    "scope": "Second,Volt\n" + "".join(f"{1e-5 * i:.6f},{0.0050005 + 1e-6 * i}\n"
                                       for i in range(12)),
}


@pytest.mark.parametrize("meter", FILES)
def test_meter_files(tmp_path, meter):
    path = tmp_path / "trace.csv"
    path.write_text(FILES[meter])
    trace = read_meter_file(path, meter, shunt_ohm=1.0, supply_v=2.0)
    # about 5 mA at 2 V, a microampere more with each sample
    assert len(trace.power_mw) == 12
    assert np.diff(trace.power_mw) == pytest.approx(np.full(11, 2e-3), rel=1e-3)
    assert trace.power_mw[0] == pytest.approx(10.0, rel=1e-3)
    assert trace.period_us == pytest.approx(1000 / 12 if meter == "lpm01a" else 10.0)
    if meter == "ppk2":
        assert trace.marks_us == pytest.approx((25.0, 75.0))


VOLTS = [0.0050005 + 1e-6 * i for i in range(12)]
SCOPES = {
    "digilent": "#Device,made\n\nTime (s),Channel 1 (mV)\n" + "".join(
        f"{1e-5 * i:.6f},{1e3 * v:.6f}\n" for i, v in enumerate(VOLTS)),
    "keysight": "x-axis,1\nsecond,Volt\n" + "".join(
        f"{1e-5 * i:+.6E},{v:+.9E}\n" for i, v in enumerate(VOLTS)),
    "tektronix": "Model,made\nHorizontal Units,s\nVertical Units,V\n\n\nTIME,CH1\n" + "".join(
        f"{1e-5 * i:.6f},{v:.9f}\n" for i, v in enumerate(VOLTS)),
    "rigol": "X,CH1,Start,Increment,\nSequence,Volt,0.000000e+00,1.000000e-05\n" + "".join(
        f"{i},{v:.9f},,\n" for i, v in enumerate(VOLTS)),
    "pico": "Zeit;Kanal A\n(us);(uV)\n\n" + "".join(
        f"{10 * i};{1e6 * v:.3f}\n".replace(".", ",") for i, v in enumerate(VOLTS)),
    "rohde": "in s,C1 in V\n" + "".join(f"{1e-5 * i:.6f},{v:.9f}\n"
                                         for i, v in enumerate(VOLTS)),
    "probe": "Time [us],Probe [mA]\n" + "".join(
        f"{10 * i},{1e3 * v:.6f}\n" for i, v in enumerate(VOLTS)),
}


@pytest.mark.parametrize("maker", SCOPES)
def test_any_scope_is_read(tmp_path, maker):
    path = tmp_path / "scope.csv"
    path.write_text(SCOPES[maker])
    trace = read_meter_file(path, "scope", shunt_ohm=1.0, supply_v=2.0)
    assert trace.power_mw == pytest.approx([2e3 * v for v in VOLTS], rel=1e-5)
    assert trace.period_us == pytest.approx(10.0)


def test_channels_of_a_scope_are_named(tmp_path):
    path = tmp_path / "scope.csv"
    path.write_text("Time (us),GPIO (V),Shunt (V)\n" + "".join(
        f"{10 * i},{3.1 if 3 <= i < 8 else 0.1},{v}\n" for i, v in enumerate(VOLTS)))
    trace = read_meter_file(path, "scope", shunt_ohm=1.0, supply_v=2.0, column="shunt",
                            mark_column="GPIO")
    assert trace.power_mw[0] == pytest.approx(10.001)
    assert trace.marks_us == pytest.approx((25.0, 75.0))
    with pytest.raises(MeasurementError, match="did you mean Shunt"):
        read_meter_file(path, "scope", shunt_ohm=1.0, supply_v=2.0, column="shnt")
    with pytest.raises(MeasurementError, match="columns are named for a scope"):
        read_meter_file(path, "ppk2", supply_v=2.0, column="shunt")


@pytest.mark.parametrize(("text", "said"), [
    ("", "no rows of a time and a voltage"), ("1,2\n3,4\n", "no names above the numbers"),
    ("Time,CH1\n1,2\n3,4\n", "'Time' has no unit"),
    ("Time (s),CH1\n1,2\n3,4\n", r"'CH1' has no unit; .*CH1\(mV\)"),
    ("Time (s)\n1,2\n3,4\n", "no column 'of a voltage'"),
    ("X,CH1,Start,Increment\nSequence,Volt,0,\n0,1,,\n1,2,,\n", "'X' has no unit"),
])
def test_a_scope_that_does_not_say_is_refused(tmp_path, text, said):
    path = tmp_path / "scope.csv"
    path.write_text(text)
    with pytest.raises(MeasurementError, match=said):
        read_meter_file(path, "scope", shunt_ohm=1.0, supply_v=2.0)


OTHERS = {
    "ppk2": ("Timestamp(ms),Current(uA),Voltage (V)", "0,5000,2\n1,5000,2\n2,5000,2"),
    "otii": ("Timestamp,Main current,Main voltage", "0,5e-3,2\n1e-3,5e-3,2\n2e-3,5e-3,2"),
    "joulescope": ("#time,current,voltage", "0,5e-3,2\n1e-3,5e-3,2\n2e-3,5e-3,2")}


@pytest.mark.parametrize(("meter", "asked"), [
    *itertools.permutations(OTHERS, 2), *((meter, "stlink_v3pwr") for meter in OTHERS),
    ("ppk2", "scope")])
def test_columns_of_another_meter_are_refused_by_its_name(tmp_path, meter, asked):
    header, rows = OTHERS[meter]
    path = tmp_path / "trace.csv"
    path.write_text(f"\n{header}\n{rows}\n")
    assert read_meter_file(path, meter).power_mw == pytest.approx([10.0] * 3)
    with pytest.raises(MeasurementError, match=(
            rf"trace.csv:2: the columns are those of {meter}, not of {asked}; accepted: --meter "
            f"{meter}$")):
        read_meter_file(path, asked, supply_v=2.0, shunt_ohm=1.0)


def test_ones_own_log_may_call_its_columns_as_a_meter_does_unless_it_has_its_inputs(tmp_path):
    header, rows = OTHERS["ppk2"]
    path = tmp_path / "trace.csv"
    path.write_text(f"{header}\n{rows}\n")
    assert read_meter_file(path, "ina228").power_mw == pytest.approx([10.0] * 3)
    path.write_text(f"{header},D0\n" + "".join(f"{row},0\n" for row in rows.split("\n")))
    with pytest.raises(MeasurementError, match="columns are those of ppk2, not of ina228"):
        read_meter_file(path, "ina228")


@pytest.mark.parametrize(("header", "row", "milliwatts", "columns"), [
    ("note,12,time(s),current(mA),voltage(mV)", "x,1,{t},5,2000", 10.0, ("note", "12")),
    ("time(s);power(mW);voltage(V);mark", "{t};10;1.9;0", 10.0, ("mark",)),
    ("time(s)\tv(V)\ti(nA)", "{t}\t4\t2500000", 10.0, ()),
    ("time [s],shunt [uV],bus [mV]", "{t},500,2000", 10.0, ()),
    ('"time (s)","current (\u00b5A)"', "{t},5000", 10.0, ())])
def test_columns_are_found_wherever_they_stand(tmp_path, header, row, milliwatts, columns):
    path = tmp_path / "trace.csv"
    path.write_text(header + "\n" + "".join(
        row.format(t=f"{place / 1000:g}") + "\n" for place in range(4)), encoding="utf-8")
    trace = read_meter_file(path, "ina226", shunt_ohm=0.1, **(
        {} if "V" in header else {"supply_v": 2.0}))
    assert trace.power_mw == pytest.approx([milliwatts] * 4)
    assert trace.time_us == pytest.approx([0, 1000, 2000, 3000])
    assert (trace.columns, trace.meter.name, trace.meter.kind) == (columns, "ina226", "average")


def test_a_meters_accuracy_is_in_power_at_its_supply(tmp_path):
    """A step of the PPK2, 0.1 uA, is 0.2 uW at 2 V and 0.4 at 4 V; marks are known to a sample."""
    path = tmp_path / "trace.csv"
    path.write_text(FILES["ppk2"])
    for supply_v in (2.0, 4.0):
        trace = read_meter_file(path, "ppk2", supply_v=supply_v)
        facts = METERS["ppk2"]
        assert trace.meter.resolution_mw == pytest.approx(facts.resolution_a * supply_v * 1e3)
        assert (trace.meter.gain_rel_sd, trace.meter.kind) == (facts.gain_rel_sd, facts.kind)
        assert trace.mark_sd_us == pytest.approx(10 / 12**0.5)


@pytest.mark.parametrize(("supply_v", "fits"), [(1.91, True), (1.9, False), (2.1, True),
                                                (2.11, False)])
def test_a_supply_the_recording_contradicts_is_refused(tmp_path, supply_v, fits):
    """Its column is 2 V in the mean: within a twentieth of what was said, either way."""
    path = tmp_path / "trace.csv"
    path.write_text(FILES["joulescope"])
    if fits:
        assert read_meter_file(path, "joulescope", supply_v=supply_v).power_mw[0] == 10.0
        return
    with pytest.raises(MeasurementError, match=rf"--supply {supply_v} V, but its voltage column is "
                                               "2 V in the mean; accepted: none, or within 5% of"):
        read_meter_file(path, "joulescope", supply_v=supply_v)


@pytest.mark.parametrize(("text", "settings", "hertz"), [
    ("50000-07\n" * 3, {"sample_hz": 1000.0}, 1000.0),
    ("TimeStamp: 001s 500ms\n" + "50000-07\n" * 6 + "TimeStamp: 002s 000ms\n50000-07\n", {},
     12.0)])
def test_samples_a_meter_sends_are_as_far_apart_as_asked_or_stamped(
        tmp_path, text, settings, hertz):
    path = tmp_path / "stream.txt"
    path.write_text(text)
    trace = read_meter_file(path, "lpm01a", supply_v=2.0, **settings)
    assert trace.time_us == pytest.approx(1e6 / hertz * np.arange(1, text.count("-07") + 1))
    assert trace.power_mw == pytest.approx(10.0)  # 50,000e-7 A at 2 V


@pytest.mark.parametrize(("text", "settings", "said"), [
    ("50000-07\n" * 3, {}, "fewer than two time stamps; give the sampling frequency .--rate"),
    ("TimeStamp: 1s 0ms\n50000-07\n50000-07\nTimeStamp: 1s 0ms\n", {}, "fewer than two time st"),
    ("50000-07\n" * 3, {"supply_v": None, "sample_hz": 1e3},
     "has no voltage; give the supply .--supply VOLT"),
    ("50000-07\n" * 2 + "1234567890-07\n", {"sample_hz": 1e3}, "13 bytes of digits are no current"),
    ("50000-07\n" * 2 + "5-007\n", {"sample_hz": 1e3}, "5 bytes of digits are no current"),
    ("50000-07\n" * 2, {"sample_hz": -1.0}, "--rate of -1 Hz; accepted: above 0")])
def test_a_stream_that_does_not_say_when_or_how_much_is_refused(tmp_path, text, settings, said):
    path = tmp_path / "stream.txt"
    path.write_text(text)
    with pytest.raises(MeasurementError, match=said):
        read_meter_file(path, "lpm01a", **{"supply_v": 2.0, **settings})


def test_a_mark_that_is_no_column_is_refused(tmp_path):
    path = tmp_path / "trace.csv"
    rows = "".join(f"{0.01 * place:.2f},5000,{3.1 if 3 <= place < 8 else 0.1}\n"
                   for place in range(12))
    path.write_text(f"Timestamp(ms),Current(uA),Mark\n{rows}")
    trace = read_meter_file(path, "ppk2", supply_v=2.0, mark_column=" mark ")
    assert trace.marks_us == pytest.approx((25.0, 75.0))
    for name, said in (("mrk", r"trace.csv:1: no column 'mrk'; did you mean Mark\?"),
                       ("other", "no column 'other'; accepted: Mark")):
        with pytest.raises(MeasurementError, match=said):
            read_meter_file(path, "ppk2", supply_v=2.0, mark_column=name)
    path.write_text("Timestamp(ms),Current(uA)\n0,5000\n1,5000\n")
    with pytest.raises(MeasurementError, match="no column 'mark'; it has none besides time and po"):
        read_meter_file(path, "ppk2", supply_v=2.0, mark_column="mark")


@pytest.mark.parametrize("rows", ["", "0.00,5000,0\n"])
def test_one_sample_is_no_recording(tmp_path, rows):
    path = tmp_path / "trace.csv"
    path.write_text(f"Timestamp(ms),Current(uA),D0\n{rows}")
    with pytest.raises(MeasurementError, match=f"{rows.count(chr(10))} samples; two or more are"):
        read_meter_file(path, "ppk2", supply_v=2.0)


@pytest.mark.parametrize(("bit", "said"), [(-1, "8 digital inputs, none of number -1"),
                                           (8, "8 digital inputs, none of number 8")])
def test_an_input_the_meter_has_not_is_refused(tmp_path, bit, said):
    path = tmp_path / "trace.csv"
    path.write_text(FILES["ppk2"])
    with pytest.raises(MeasurementError, match=said):
        read_meter_file(path, "ppk2", supply_v=2.0, mark_bit=bit)
    assert read_meter_file(path, "ppk2", supply_v=2.0, mark_bit=7).marks_us == ()


def test_digital_inputs_are_letters_words_or_missing(tmp_path):
    path = tmp_path / "trace.csv"
    lines = FILES["ppk2"].splitlines()
    for replaced in (lambda line: line.replace("10000000", "1").replace("00000000", "0"),
                     lambda line: line.replace("10000000", "9").replace("00000000", "8"),
                     lambda line: line.replace(",00000000", "")):
        path.write_text("\n".join(map(replaced, lines)))
        trace = read_meter_file(path, "ppk2", supply_v=2.0)
        assert trace.marks_us == pytest.approx((25.0, 75.0))
    path.write_text(FILES["ppk2"].replace("10000000", "10000010"))
    late = read_meter_file(path, "ppk2", supply_v=2.0, mark_bit=6)
    assert late.marks_us == pytest.approx((25.0, 75.0))


def test_meter_file_refusals(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(FILES["ppk2"])
    with pytest.raises(MeasurementError, match="give the supply"):
        read_meter_file(path, "ppk2")
    with pytest.raises(MeasurementError, match="did you mean ppk2"):
        read_meter_file(path, "ppk")
    path.write_text(FILES["ppk2"].replace("5004.5", "x"))
    with pytest.raises(MeasurementError, match=r"trace\.csv:6"):
        read_meter_file(path, "ppk2", supply_v=3.0)
    path.write_text(FILES["ppk2"].replace("10000000", "on"))
    with pytest.raises(MeasurementError, match="column 3 is not a digital input"):
        read_meter_file(path, "ppk2", supply_v=3.0)
    path.write_text(FILES["ppk2"].replace(",5004.5,10000000", ""))
    with pytest.raises(MeasurementError, match=r"trace\.csv:\d+: column 2 is not a number"):
        read_meter_file(path, "ppk2", supply_v=3.0)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(MeasurementError, match="no header"):
        read_meter_file(path, "joulescope")
    path.write_text(FILES["stlink_v3pwr"].replace("nA", "kA"))
    with pytest.raises(MeasurementError, match="unit 'ka'"):
        read_meter_file(path, "stlink_v3pwr")
    with pytest.raises(MeasurementError, match="cannot be read"):
        read_meter_file(tmp_path / "none", "ppk2")
    path.write_text(FILES["ppk2"])
    with pytest.raises(MeasurementError, match="supply of -3 V; accepted: above 0"):
        read_meter_file(path, "ppk2", supply_v=-3.0)
    with pytest.raises(MeasurementError, match="shunt of 0 ohm"):
        read_meter_file(path, "scope", supply_v=3.0, shunt_ohm=0.0)


@pytest.mark.parametrize(("meter", "header", "said"), [
    ("ppk2", "Timestamp,Current,D0-D7", r"'timestamp' has no unit.*timestamp\(ms\)"),
    ("ppk2", "Timestamp(ms),Current,D0-D7", r"'current' has no unit.*current\(mA\)"),
    ("ppk2", "Timestamp(mA),Current(ms),D0-D7", "'timestamp': unit 'ma'"),
    ("scope", "time,voltage,D0", "'time' has no unit")])
def test_a_column_says_its_unit(tmp_path, meter, header, said):
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(("Current, as recorded", header, *FILES["ppk2"].splitlines()[1:])))
    with pytest.raises(MeasurementError, match=said) as error:
        read_meter_file(path, meter, supply_v=3.0, shunt_ohm=1.0)
    assert "trace.csv:2" in str(error.value)


def test_a_meter_of_another_package_reads_its_own_recordings(tmp_path, monkeypatch):
    (tmp_path / "acme_meter.py").write_text("""
from calibration.power_trace.trace import Meter, PowerTrace

def read_recording(path):
    return PowerTrace(time_us=[0.0, 1.0], power_mw=[float(path.read_text())] * 2,
                      meter=Meter(name="acme"))
""")
    info = tmp_path / "acme-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[twin.meters]\nacme = acme_meter\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    caches = (extensions.find_entries, extensions.load_entry)
    importlib.invalidate_caches()
    for one in caches:
        one.cache_clear()
    try:
        (tmp_path / "log").write_text("7.5")
        assert read_meter_file(tmp_path / "log", "acme").power_mw.tolist() == [7.5, 7.5]
        (tmp_path / "log").write_text("seven")
        with pytest.raises(ExtensionError, match=r"acme = acme_meter: ValueError: could"):
            read_meter_file(tmp_path / "log", "acme")
        with pytest.raises(MeterOptionError, match="no meter 'acmee'; did you mean acme"):
            read_meter_file(tmp_path / "log", "acmee")
    finally:
        sys.modules.pop("acme_meter", None)
        for one in caches:
            one.cache_clear()
