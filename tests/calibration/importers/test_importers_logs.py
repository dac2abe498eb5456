"""Logs of public tools become the measurements they are; what is none is refused by line.

The samples keep each tool's layout; figures come from the sources the importers name.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_logs import (
    ETHOS_U_KIT,
    ITM,
    LOGS,
    MLPERF_LOG,
    MLPERF_RESULTS,
    MLTK_JSON,
    MLTK_TEXT,
    NEURALSPOT,
    NEURALSPOT_PMU,
    NPU,
    PERF_CSV,
    PERF_JSON,
    PERF_REPEATED,
    PERF_TEXT,
    ST_NEW,
    ST_NPU,
    ST_OLD,
    TFLM_CSV,
    TFLM_MICRO,
    TFLM_MS,
    TFLM_TAGS,
    TFLM_TEXT,
    VELA,
    ZEPHYR,
    ZEPHYR_BENCH,
    mark,
)

from calibration.errors import MeasurementError
from calibration.importers import BINARY, FORMATS, import_log
from calibration.importers.itm import read_packets
from calibration.importers.log import Log
from twin.api.requests.measurement import Import


def imported(tmp_path, form, text, **more):
    path = tmp_path / "log.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_log(form, path, **more).measurement


def test_tflm_text_and_csv(tmp_path):
    text = imported(tmp_path, "tflm", TFLM_TEXT, clock_hz=25e6, board="made", model="person")
    assert text.values("timer_ticks", 0).tolist() == [224622, 224600, 224601]
    assert text.layers == (0, 1) and text.runs == (0, 1, 2)
    assert text.percentile("latency", 0, 0) == pytest.approx(224600 / 25)
    assert (text.header.board, text.header.model) == ("made", "person")
    table = imported(tmp_path, "tflm", TFLM_CSV)
    assert table.values("timer_ticks", 1).tolist() == [50, 51]
    assert dict(table.header.environment)["operators"] == "CONV_2D,SOFTMAX"
    assert imported(tmp_path, "tflm", TFLM_MS).values("timer_ticks", 0).tolist() == [1000]
    micro = imported(tmp_path, "tflm", TFLM_MICRO)
    assert micro.values("latency", 0).tolist() == [1000] and "timer_ticks" not in micro.counters
    tags = imported(tmp_path, "tflm", TFLM_TAGS)
    assert tags.values("timer_ticks").tolist() == [1001689 + 52380]
    assert tags.values("timer_ticks_MAX_POOL_2D").tolist() == [52380]
    with pytest.raises(MeasurementError, match=r"log\.txt:3: event 2 where 1 is due"):
        imported(tmp_path, "tflm", TFLM_CSV.replace("\n1,SOFT", "\n2,SOFT", 1))


def test_mltk(tmp_path):
    """Text rounds to a tenth of its unit; the simulator alone states energy."""
    found = imported(tmp_path, "mltk", MLTK_JSON)
    assert found.values("cpu_cycles", 0).tolist() == [12_870_000]
    assert found.values("latency", 0).tolist() == [165_000]
    assert (found.header.kind, dict(found.header.clocks_hz)) == ("measured", {"cpu": 78e6})
    text = imported(tmp_path, "mltk", MLTK_TEXT)
    assert text.values("latency", 1).tolist() == [1700] and "busy_cycles" not in text.counters
    assert dict(text.header.environment)["accelerator"] == "MVP"
    whole = MLTK_JSON.replace('"accelerator": "None"', '"accelerator": "MVP"')
    assert "busy_cycles" in imported(tmp_path, "mltk", whole).counters
    estimate = MLTK_JSON.replace('"ops": 0', '"energy": 0.0002')
    assert imported(tmp_path, "mltk", estimate).header.kind == "predicted"
    for old, new, said in (
            ('"n_layers": 2', '"n_layers": 3', "2 of 3 layers are listed"),
            ('"index": 1', '"index": 2', "layer 2 where 1 is due"),
            ('"time": 0.1666', '"time": 0.2666', "layers take 166,667 us, the whole 266,667"),
            ('"cpu_clock_rate": 78', '"cpu_clock_rate": 39', "contradict each other"),
            ('"layers": [', '"layers": 1, "x": [', "no JSON of this report")):
        assert old in MLTK_JSON
        with pytest.raises(MeasurementError, match=said):
            imported(tmp_path, "mltk", MLTK_JSON.replace(old, new))


def test_zephyr(tmp_path):
    found = imported(tmp_path, "zephyr", ZEPHYR)
    assert found.values("timer_ticks", 0).tolist() == [1_234_560, 1_234_500]
    assert found.values("latency").tolist() == [10_315, 10_314.9]
    bench = imported(tmp_path, "zephyr", ZEPHYR_BENCH)
    assert bench.layers == () and bench.values("latency").tolist() == [10_315, 10_315]
    for old, new, said in (
            ("1234560 cycles", "123456 cycles", r"log\.txt:3: 123,456 cycles in 10,288 us are of"),
            ("10288000 ns", "10288000", "is cut or damaged"),
            ("frequency: 120", "frequency: 100", "a clock of 120 MHz, other lines of 100 to 100"),
            *((old, new, "the layers sum to 1,236,9") for old, new in (
                ("1237800 cycles , 10315000", "1100000 cycles , 9166666"),
                ("1237800 cycles , 10315000", "9000000 cycles , 75000000")))):
        with pytest.raises(MeasurementError, match=said):
            imported(tmp_path, "zephyr", ZEPHYR.replace(old, new, 1))


def test_neuralspot(tmp_path):
    found = imported(tmp_path, "neuralspot", NEURALSPOT)
    assert found.header.temperature == "cold"
    assert found.values("cpu_cycles", 1).tolist() == [4480072]
    assert found.values("dwt_lsucnt", 0).tolist() == [188]
    assert found.values("latency", 0).tolist() == [47794]
    pmu = imported(tmp_path, "neuralspot", NEURALSPOT_PMU)
    assert pmu.values("arm_pmu_ld_retired", 0).tolist() == [91422]
    assert "output_shape" not in pmu.counters
    with pytest.raises(MeasurementError, match=r"log\.txt:3: 3 columns"):
        imported(tmp_path, "neuralspot", "\n".join([*NEURALSPOT.splitlines()[:2], "1,A,2"]))


def test_st_reports(tmp_path):
    old = imported(tmp_path, "x-cube-ai", ST_OLD)
    assert old.header.runtime == "x-cube-ai"
    assert old.values("latency", 1).tolist() == [45291]
    assert old.values("latency").tolist() == [62976]
    assert old.values("cpu_cycles").tolist() == [10579924]
    assert old.values("macs").tolist() == [874970]
    assert dict(old.header.clocks_hz) == {"cpu": 168e6}
    new = imported(tmp_path, "st-edge-ai", ST_NEW)
    assert new.values("cpu_cycles", 0).tolist() == [1602720]
    assert new.values("latency", 1).tolist() == [10019]
    assert new.values("latency_sd").tolist() == pytest.approx([1.0])
    assert new.values("cpu_cycles").tolist() == [6411840]
    assert new.header.runtime == "st-edge-ai@2.2.0" and new.header.model == "network"
    # between nodes passes 0.001 ms: 3.339 + 10.019 + 0.001 = 13.359
    assert sum(new.values("latency", n)[0] for n in new.layers) == pytest.approx(
        new.values("latency")[0] - 1)
    phases = imported(tmp_path, "st-edge-ai", ST_NPU)
    assert phases.values("core_cycles", 0).tolist() == [19331]
    assert phases.values("cpu_cycles").tolist() == [14047 + 19363 + 35437]
    assert phases.header.runtime == "neural-art"


def test_vela(tmp_path):
    found = imported(tmp_path, "vela", VELA)
    assert found.header.kind == "predicted"
    assert found.values("npu_cycles", 0).tolist() == [15000]
    assert found.values("off_chip_flash_cycles", 0).tolist() == [5120]
    assert found.layers == (0, 1, 2)


def test_mlperf_tiny(tmp_path):
    log = imported(tmp_path, "mlperf-tiny", MLPERF_LOG)
    # 10 s over 200; then a counter that wraps: 9932704 + 2^32 - 4294900000 = 10,000,000
    assert log.values("latency").tolist() == [50_000, 50_000]
    assert (log.header.model, log.header.board) == ("kws01", "nucleo")
    started = [line for line in MLPERF_LOG.splitlines() if "m-infer-start" not in line]
    with pytest.raises(MeasurementError, match="m-lap-us lines after m-infer-start-N"):
        imported(tmp_path, "mlperf-tiny", "\n".join(started))
    results = imported(tmp_path, "mlperf-tiny", MLPERF_RESULTS)
    assert results.values("latency").tolist() == pytest.approx(
        [50_000, 1e6 / 20.1, 1e6 / 19.9])
    assert results.values("median_energy").tolist() == [3371.738]
    medians = imported(tmp_path, "mlperf-tiny", "".join(
        line for line in MLPERF_RESULTS.splitlines(keepends=True) if "Median" in line))
    assert medians.values("latency").tolist() == [50_000]
    assert medians.values("energy").tolist() == [3371.738]


@pytest.mark.parametrize("text", [PERF_TEXT, PERF_CSV, PERF_JSON, PERF_REPEATED],
                         ids=["text", "csv", "json", "repeated"])
def test_perf_stat(tmp_path, text):
    found = imported(tmp_path, "perf-stat", text)
    assert found.values("cpu_cycles").tolist() == [1234567]
    told = dict(found.header.environment)
    assert told["scaled"] == "cycles" and told["not_counted"].startswith("branch")
    if text is PERF_TEXT:
        assert found.values("latency").tolist() == pytest.approx([694.239])
        assert found.values("power/energy_pkg/").tolist() == pytest.approx([1.25e6])
        assert found.values("instructions").tolist() == [2345678]
        assert told["user_space"] == "instructions"


def test_itm(tmp_path):
    packets = [(one.kind, one.source, one.payload, one.offset)
               for one in read_packets(Log(where="x", data=ITM))]
    assert packets[:8] == [
        ("sync", 0, b"", 0), ("hardware", 0, b"\x09", 6), ("software", 1, b"\0\0", 8),
        ("hardware", 0, b"\x09", 11), ("timestamp", 4, b"\x8a\x01", 13),
        ("hardware", 0, b"\x09", 16), ("timestamp", 3, b"", 18), ("software", 1, b"\1\0", 19)]
    assert [one[::3] for one in packets[8:]] == [
        ("hardware", 22), ("overflow", 24), ("software", 25), ("software", 27), ("software", 30),
        ("hardware", 33), ("software", 35), ("hardware", 38)]
    found = imported(tmp_path, "itm", ITM)
    assert found.values("dwt_cpicnt", 0).tolist() == [512, 256]
    assert found.values("dwt_foldcnt", 1).tolist() == [256]
    assert found.runs == (0, 1)  # what passes before, between and after inferences is no run
    assert found.values("dwt_cpicnt").tolist() == [512, 256]
    assert dict(found.header.environment)["lost_packets"] == "1"
    with pytest.raises(MeasurementError, match="byte 0: header 0x34 is reserved"):
        imported(tmp_path, "itm", b"\x34")
    with pytest.raises(MeasurementError, match="byte 6: a frame of the TPIU"):
        imported(tmp_path, "itm", bytes(5) + b"\x80\xff\xff\xff\x7f")
    with pytest.raises(MeasurementError, match="ends within layer 7"):
        imported(tmp_path, "itm", mark(7))
    unmarked = imported(tmp_path, "itm", bytes([0x05, 1, 0x05, 1]))
    assert unmarked.values("dwt_cpicnt").tolist() == [512] and unmarked.layers == ()


def test_every_format_has_a_whole_log_and_stands_in_help_and_docs():
    assert {*LOGS, "probe"} == {*FORMATS}  # a probe's lines are made where it is tested
    page = (Path(__file__).parents[3] / "docs" / "import.md").read_text(encoding="utf-8")
    option = Import.option("form")
    assert all(form in option.help and f"twin import {form} " in page for form in FORMATS)


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_none_of_it_is_refused(tmp_path, form):
    with pytest.raises(MeasurementError, match=r"log\.txt"):
        imported(tmp_path, form, "hello\nworld 12\n" if form != "itm" else b"\x03\x01\x02\x03\x04")
    with pytest.raises(MeasurementError, match="readable log"):
        import_log(form, tmp_path / "none")


def test_names_and_clocks(tmp_path):
    with pytest.raises(MeasurementError, match="did you mean tflm"):
        imported(tmp_path, "tfml", TFLM_CSV)
    with pytest.raises(MeasurementError, match="no cycles or ticks"):
        imported(tmp_path, "mlperf-tiny", MLPERF_RESULTS, clock_hz=1e6)


def test_a_clock_the_log_contradicts_is_refused_and_taken_anyway(tmp_path):
    for text, form, clock_hz in ((TFLM_TEXT, "tflm", 80e6), (ST_OLD, "x-cube-ai", 1e6)):
        with pytest.raises(MeasurementError, match=r"not \d+ MHz.*--anyway"):
            imported(tmp_path, form, text, clock_hz=clock_hz)
        taken = imported(tmp_path, form, text, clock_hz=clock_hz, anyway=True)
        assert clock_hz in dict(taken.header.clocks_hz).values()
    told = imported(tmp_path, "tflm", TFLM_TEXT, clock_hz=80e6, anyway=True)
    assert told.values("latency", 0)[0] == pytest.approx(224622 / 80)
    assert "not 80 MHz" in dict(told.header.environment)["remarks"]
    assert imported(tmp_path, "tflm", TFLM_TEXT, clock_hz=27e6).values("latency", 0)[0] > 8e3


@pytest.mark.parametrize("form", FORMATS)
def test_a_log_of_another_tool_is_refused_naming_the_right_one(tmp_path, form):
    for other, texts in LOGS.items():
        if FORMATS[other] == FORMATS[form] or {form, other} & {*BINARY}:
            continue
        for text in texts:
            with pytest.raises(MeasurementError, match=f"nothing of format {form}.*looks like.*"
                                                       f"{other}"):
                imported(tmp_path, form, text)


@pytest.mark.parametrize(("form", "text", "old", "new", "why"), [
    ("tflm", TFLM_CSV, "1000\n", "-1000\n", "'-1000' is not a number"),
    ("tflm", TFLM_TEXT, "249500", "-5", "'-5' is not a number"),
    ("tflm", TFLM_TEXT, "CONV_2D took 249501 ticks (9 ms).", "",
     "run 2 lists 1 operators, run 0 2"),
    ("tflm", TFLM_TAGS, "52380", "52381", "a total of 1,054,069, its tags sum to 1,054,070"),
    ("neuralspot", NEURALSPOT, "9176380", "1e400", "'1e400' is not a number.*column cycles"),
    ("neuralspot", NEURALSPOT, "9176380", "nan", "'nan' is not a number"),
    ("neuralspot", NEURALSPOT, "\n1, DEPTH", "\n2, DEPTH", "event 2 where 1 is due"),
    ("neuralspot", NEURALSPOT, "daccess", "lsu", "two columns count 'dwt_lsucnt'"),
    ("st-edge-ai", ST_NEW, "13.359 ms", "nan ms", "'nan' is not a number"),
    ("st-edge-ai", ST_NEW, "3.339", "3.939", "the nodes sum to 13.958 ms"),
    ("st-edge-ai", ST_NEW, "[ 4,809,120 ]", "[ 4,809,999 ]", "the nodes sum to 6,412,719 CPU"),
    ("x-cube-ai", ST_OLD, "62.976 (total)", "", "has no total"),
    ("x-cube-ai", ST_OLD, "\n2       4", "\n9       4", "c_id 9 where 2 is due"),
    ("vela", VELA, "15000,75.0", "-1,75.0", "'-1' is not a number"),
    ("vela", VELA, VELA.splitlines()[2], "", "shares of the network"),
    ("vela", VELA, "Conv2D,Conv2D,NPU", "Conv2D,NPU", "15 columns; the header has 16"),
    ("mlperf-tiny", MLPERF_LOG, "m-lap-us-9932704\r\n", "", "1 of 2 time stamps"),
    ("mlperf-tiny", MLPERF_RESULTS, "20.100", "0.000", "a rate of zero"),
    ("mlperf-tiny", MLPERF_RESULTS, "20.100", "nan", "'nan' is not a number"),
    ("mlperf-tiny", MLPERF_RESULTS, "is     20.000", "is     21.000", "that of its 3 windows"),
    ("perf-stat", PERF_TEXT, "1,234,567", "1.234.567", "'1.234.567' is not a number"),
    ("perf-stat", PERF_TEXT, "1,234,567", "1.234", "another language's"),
    ("perf-stat", PERF_TEXT, "0.000694239 seconds time elapsed", "", "seconds elapsed is missing"),
    ("perf-stat", PERF_CSV, "<not supported>,,branches", "5,,cycles", "'cycles' is there twice"),
    ("perf-stat", PERF_CSV, "0.55,msec", "0.010102831,0.55,msec", "counts over intervals"),
    ("perf-stat", PERF_JSON, "1234567.000000", "1234567.5", "not a count of cycles"),
])
def test_wrong_values_and_missing_lines_are_refused_by_name(tmp_path, form, text, old, new, why):
    assert old in text
    with pytest.raises(MeasurementError, match=r"log\.txt:.*" + why):
        imported(tmp_path, form, text.replace(old, new) if old != VELA.splitlines()[2]
                 else text.replace(VELA.splitlines()[3] + "\n", ""))


def test_what_was_not_understood_is_told(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text(TFLM_TEXT, encoding="utf-8")
    found = import_log("tflm", path)
    assert [line for _, line in found.unread] == ["Input CRC32: 0x14F6A510", "done"]
    assert found.lines == 8


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "", "none", "nul\0l"):
        with pytest.raises(MeasurementError, match="readable log"):
            import_log("tflm", tmp_path / name)
    (tmp_path / "log.txt").write_bytes(b"\xfd\xfe")
    with pytest.raises(MeasurementError, match="byte 0 is not UTF-8"):
        import_log("tflm", tmp_path / "log.txt")


def test_a_board_of_another_part_is_refused(tmp_path):
    with pytest.raises(MeasurementError, match="ran on STM32L4, nucleo_u575zi_q"):
        imported(tmp_path, "st-edge-ai", ST_NEW, board="nucleo_u575zi_q")
    with pytest.raises(MeasurementError, match="480 MHz is more than nucleo_l4r5zi has"):
        imported(tmp_path, "st-edge-ai", ST_NEW, board="nucleo_l4r5zi")
    line = "  device              : 0x435 - STM32L4R5xx @120/120MHz fpu,art_lat5"
    text = ST_NEW.replace("  0x435 - STM32L4R5 @480/240MHz fpu,art_lat5", line)
    for before, after in (("13.359", "53.432"), ("3.339", "13.356"), ("10.019", "40.076")):
        text = text.replace(before, after)
    assert line in text
    for name in ("nucleo_l4r5zi", "NUCLEO-L4R5ZI"):
        assert imported(tmp_path, "st-edge-ai", text, board=name).header.board == "nucleo_l4r5zi"
    with pytest.raises(MeasurementError, match="ran on STM32L4, nucleo_h7a3zi_q is a stm32h7a3"):
        imported(tmp_path, "st-edge-ai", text, board="nucleo_h7a3zi_q")
    taken = imported(tmp_path, "st-edge-ai", text, board="nucleo_h7a3zi_q", anyway=True).header
    assert "ran on STM32L4" in dict(taken.environment)["remarks"]
    with pytest.raises(MeasurementError, match="its cpu clock is 120 MHz, not 80 MHz"):
        imported(tmp_path, "st-edge-ai", text, board="nucleo_l4r5zi", cpu_hz=80e6)
    assert imported(tmp_path, "npu-profiler", NPU).header.board == "stm32n6570_dk"


@pytest.mark.parametrize(("change", "says"), [
    (("@480/240MHz", "@240/240MHz"), "at 240 MHz are 26,716.0 us"),
    ((" 13.359 ms by", " 13359.0 ms by"), "contradict each other")])
def test_times_that_contradict_cycles_and_clock_are_refused(tmp_path, change, says):
    text = ST_NEW.replace(*change, 1)
    assert text != ST_NEW
    with pytest.raises(MeasurementError, match=says):
        imported(tmp_path, "st-edge-ai", text)
    taken = imported(tmp_path, "st-edge-ai", text, anyway=True)
    assert "taken as it is" in dict(taken.header.environment)["remarks"]


def test_times_in_another_unit_are_refused_by_what_the_core_can_run_at(tmp_path):
    """No clock is stated: milliseconds under uSeconds make one of 192 GHz."""
    lines = NEURALSPOT.splitlines()
    place = lines[0].replace(" ", "").split(",").index("uSeconds")
    rows = [line.split(",") for line in lines[1:]]
    short = "\n".join([lines[0], *(",".join([
        *row[:place], f"{float(row[place]) / 1e3:g}", *row[place + 1:]]) for row in rows)]) + "\n"
    assert imported(tmp_path, "neuralspot", NEURALSPOT, board="apollo510_evb")
    with pytest.raises(MeasurementError, match="make its cycles those of a clock of 191,999 MHz"):
        imported(tmp_path, "neuralspot", short, board="apollo510_evb")


@pytest.mark.parametrize("first, kind", [
    ("", "measured"), ("Summary 'kws' - predicted, no device was asked\n", "predicted")])
def test_a_report_of_twin_in_the_form_of_a_pmu_is_predicted(tmp_path, first, kind):
    (tmp_path / "log.txt").write_text(first + ETHOS_U_KIT)
    found = import_log("ethos-u", tmp_path / "log.txt")
    assert found.measurement.header.kind == kind and not found.unread


@pytest.mark.parametrize("old, new, message", [
    ("ACTIVE cycles: 413814", "ACTIVE cycles: 4138", "log.txt:7: 4,138 cycles active and 358 idle "
     "are not 414,172: a counter overflowed"),
    ("beats: 48252", "beats: 48x52", "'48x52' is not a number"),
    ("beats: 48252", "beats: ", "is cut or damaged")])
def test_figures_of_an_ethos_u_that_do_not_add_up_are_refused(tmp_path, old, new, message):
    assert old in ETHOS_U_KIT
    with pytest.raises(MeasurementError, match=message):
        imported(tmp_path, "ethos-u", ETHOS_U_KIT.replace(old, new))


def test_thousands_that_are_set_apart_are_read(tmp_path):
    text = TFLM_TEXT.replace("CONV_2D took 224622 ticks", "CONV_2D took 224,622 ticks")
    assert text != TFLM_TEXT
    plain, apart = (imported(tmp_path, "tflm", each) for each in (TFLM_TEXT, text))
    assert apart.samples == plain.samples


def test_colours_and_a_powershell_redirection_are_read(tmp_path):
    plain = imported(tmp_path, "tflm", TFLM_TEXT)
    coloured = "".join(f"\x1b[0;32m{line}\x1b[0m\n" for line in TFLM_TEXT.splitlines())
    assert imported(tmp_path, "tflm", coloured).samples == plain.samples
    path = tmp_path / "wide.txt"
    path.write_bytes(TFLM_TEXT.encode("utf-16"))
    assert import_log("tflm", path).measurement.samples == plain.samples
