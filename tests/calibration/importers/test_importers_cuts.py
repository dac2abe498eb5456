"""A log cut after any line is refused, whole, or says what it lacks."""

from __future__ import annotations

import pytest
from made_logs import LOGS, TFLM_CSV, TFLM_TEXT
from tflite.BuiltinOperator import BuiltinOperator

from calibration.datasets import read_table
from calibration.errors import MeasurementError
from calibration.importers import BINARY, Imported, import_log
from calibration.importers.listing import Listing
from calibration.importers.tflm_operators import NAMES

SELF_CONTAINED = ("perf-stat", "itm")
"""Each line or packet counts one event of the whole program: fewer lines are fewer counters."""

CASES = [(form, log) for form, logs in LOGS.items() if form not in BINARY for log in logs]
KNOWN = ("conv_2d", "depthwise_conv_2d", "average_pool_2d", "reshape", "fully_connected", "softmax")
NET = Listing(network="net", operators=("depthwise_conv_2d", "conv_2d"), known=KNOWN)


def read(tmp_path, form: str, text: str, **more: object) -> Imported:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    return import_log(form, path, **more)


@pytest.mark.parametrize(("form", "text"), CASES, ids=[
    f"{form}-{place}" for place, (form, _) in enumerate(CASES)])
def test_a_log_cut_at_any_line_says_what_it_lacks(tmp_path, form, text):
    whole = set(read(tmp_path, form, text).measurement.samples)
    lines = text.splitlines(keepends=True)
    refused = 0
    for end in range(len(lines)):
        try:
            found = read(tmp_path, form, "".join(lines[:end]))
        except MeasurementError as error:
            assert "log.txt" in str(error)
            refused += 1
            continue
        samples = set(found.measurement.samples)
        assert samples == whole or found.remarks or form in SELF_CONTAINED, end
    assert refused


def tflm_log(operators: list[str], ticks: list[int]) -> str:
    return "".join(f"{name} took {value} ticks ({value // 1000} ms).\n"
                   for name, value in zip(operators, ticks, strict=True))


def published_log() -> tuple[list[str], list[int]]:
    """The Apollo510's published layers of kws, as TFLite Micro's profiler would print them."""
    rows = read_table("apollo510_kws_pmu").rows
    return ([str(row["Tag"]) for row in rows],
            [int(float(str(row["ARM_PMU_CPU_CYCLES"]))) for row in rows])


def test_published_layers_cut_at_each_line_are_refused_where_the_network_is_known(tmp_path):
    tags, ticks = published_log()
    net = Listing(network="kws", operators=tuple(tag.lower() for tag in tags), known=KNOWN)
    assert len(read(tmp_path, "tflm", tflm_log(tags, ticks), listing=net).measurement.layers) == 13
    for end in range(1, len(tags)):
        with pytest.raises(MeasurementError, match=f"it lists {end} of the 13 operators of kws"):
            read(tmp_path, "tflm", tflm_log(tags[:end], ticks[:end]), listing=net)
        less = read(tmp_path, "tflm", tflm_log(tags[:end], ticks[:end]))
        assert any("how many operators the network has is not known" in one
                   for one in less.remarks)


def test_inferences_in_one_list_are_runs(tmp_path):
    tags, ticks = published_log()
    net = Listing(network="kws", operators=tuple(tag.lower() for tag in tags), known=KNOWN)
    later = [value + 3 for value in ticks]
    twice = tflm_log(tags * 2, ticks + later)
    for more in ({}, {"listing": net}):
        found = read(tmp_path, "tflm", twice, **more).measurement
        assert found.runs == (0, 1) and len(found.layers) == 13
        assert found.values("timer_ticks", 0).tolist() == [ticks[0], later[0]]
    told = read(tmp_path, "tflm", twice).remarks
    assert any("26 operators is 2 times the same 13" in one for one in told)
    slower = tflm_log(tags * 2, ticks + [2 * value for value in ticks])
    assert read(tmp_path, "tflm", slower, listing=net).measurement.runs == (0, 1)
    unsure = read(tmp_path, "tflm", slower)
    assert len(unsure.measurement.layers) == 26
    assert any("one inference, or 2; --model says" in one for one in unsure.remarks)


def test_a_profiler_nobody_clears_counts_each_inference_once(tmp_path):
    one, two = "ADD took 10 ticks (1 ms).\nMUL took 70 ticks (7 ms).\n", \
        "ADD took 11 ticks (1 ms).\nMUL took 71 ticks (7 ms).\n"
    found = read(tmp_path, "tflm", f"{one}\n{one}{two}").measurement
    assert found.values("timer_ticks", 1).tolist() == [70, 71]


@pytest.mark.parametrize(("text", "why"), [
    (TFLM_TEXT.replace("CONV_2D took 249561", "SOFTMAX took 249561"), "run 0 has SOFTMAX as"),
    (TFLM_TEXT.replace("CONV_2D took 249500", "RESHAPE took 2495"), "run 1 .* not those of run 0"),
    ("DEPTHWISE_CONV_2D took 1 ticks (1 ms).\nSOFTMAX took 2 ticks (1 ms).\n",
     "it has SOFTMAX as operator 1, that of net is conv_2d"),
    ("DEPTHWISE_CONV_2D took 1 ticks (1 ms).\n", "lists 1 of the 2 operators of net"),
    ("DEPTHWISE_CONV_2D took 1 ticks (1 ms).\nCONV_2D took 2 ticks (1 ms).\n"
     "SOFTMAX took 2 ticks (1 ms).\n", "lists 3 operators, net has 2"),
    ("DEPTHWISE_CONV_2D took 1 ticks (1 ms).\nCONV_2D took 2 ti", "line 2 breaks off"),
])
def test_operators_of_another_network_are_refused(tmp_path, text, why):
    with pytest.raises(MeasurementError, match=why):
        read(tmp_path, "tflm", text, listing=NET)


def test_partial_is_advised_only_where_it_takes_the_log(tmp_path):
    first, cut = "DEPTHWISE_CONV_2D took 1 ticks (1 ms).\n", "CONV_2D took 2 ti\n"
    with pytest.raises(MeasurementError, match="'CONV_2D took 2 ti'; --partial takes what there"):
        read(tmp_path, "tflm", first + cut, listing=NET)
    with pytest.raises(MeasurementError, match="'CONV_2D took 2 ti'; --partial does not help: "
                                               "run 1 has SOFTMAX as operator 0"):
        read(tmp_path, "tflm", f"{first}{cut}SOFTMAX took 3 ticks (1 ms).\n", listing=NET)


def test_a_log_that_breaks_off_in_a_later_inference_is_partial(tmp_path):
    first, second = ("DEPTHWISE_CONV_2D took 1 ticks (1 ms).\n", "CONV_2D took 2 ticks (1 ms).\n")
    with pytest.raises(MeasurementError, match="run 1 lists 1 operators, run 0 2; --partial takes"):
        read(tmp_path, "tflm", first + second + first, listing=NET)


@pytest.mark.parametrize("stamp", ["[00:00:0{}.123] ", "I (53{}1) TFLM: ", "12:34:5{}.789 -> "])
def test_times_a_logger_writes_before_lines_are_no_part_of_names(tmp_path, stamp):
    lines = ["DEPTHWISE_CONV_2D took 5 ticks (1 ms).", "CONV_2D took 7 ticks (1 ms)."] * 2
    found = read(tmp_path, "tflm", "\n".join(
        stamp.format(place) + line for place, line in enumerate(lines)), listing=NET).measurement
    assert found.values("timer_ticks", 1).tolist() == [7, 7]


def test_lines_of_the_benchmark_itself_are_no_operators(tmp_path):
    """As published: the sum of an inference stands above its operators, set-up above all."""
    text = "InitializeBenchmarkRunner took 192 ticks (0 ms).\n\n" + "".join(
        f"NoPersonDataIterations(1) took {7 + run} ticks (0 ms)\n"
        f"DEPTHWISE_CONV_2D took {3 + run} ticks (0 ms).\nCONV_2D took 4 ticks (0 ms).\n\n"
        for run in range(2)) + "NoPersonDataIterations(10) took 71 ticks (0 ms)\n"
    found = read(tmp_path, "tflm", text, listing=NET)
    assert found.measurement.runs == (0, 1) and found.measurement.layers == (0, 1)
    assert found.measurement.values("timer_ticks", 0).tolist() == [3, 4] and not found.unread
    assert any("are omitted: no operators" in one for one in found.remarks)


def test_an_operator_nobody_knows_and_a_shortened_one_are_let_pass(tmp_path):
    text = "DEPTHWISE_C took 1 ticks (1 ms).\nmy_custom_op took 2 ticks (1 ms).\n"
    assert len(read(tmp_path, "tflm", text, listing=NET).measurement.layers) == 2


def test_a_torn_name_is_set_beside_the_operator_of_its_place(tmp_path):
    text = TFLM_TEXT.replace("DEPTHWISE_CONV_2D took 224600", "DEPTD took 224600")
    with pytest.raises(MeasurementError, match="line 6: DEPTD is not an operator of TFLite Micro, "
                                               "operator 0 of net is depthwise_conv_2d; is the"):
        read(tmp_path, "tflm", text, listing=NET)


@pytest.mark.parametrize(("old", "new", "why"), [
    ("249500 ticks (9 ms)", "24950 ticks (9 ms)", r"log.txt:7: 24,950 ticks in 9 ms do not agree "
     r"with 5 of 6 lines, whose ticks are of 24.96 to 31.19 MHz"),
    ("224601 ticks (8 ms)", "224601 ticks (0 ms)", r"log.txt:9: 224,601 ticks in 0 ms do not"),
    ("DEPTHWISE_CONV_2D took 224600", "DEPTD took 224600",
     "line 6: DEPTD is not an operator of TFLite Micro, the nearest is DEPTHWISE_CONV_2D; is the")])
def test_a_damaged_digit_and_a_torn_name_are_refused_by_line(tmp_path, old, new, why):
    assert old in TFLM_TEXT
    with pytest.raises(MeasurementError, match=why):
        read(tmp_path, "tflm", TFLM_TEXT.replace(old, new))
    assert set(NAMES) <= set(vars(BuiltinOperator)) and len(NAMES) > 200
    rounded_up = TFLM_TEXT.replace("(9 ms)", "(10 ms)")
    assert read(tmp_path, "tflm", rounded_up).clocked


def test_what_milliseconds_tell_of_ticks_is_said(tmp_path):
    text = tflm_log(["CONV_2D", "SOFTMAX"], [5_000_400, 250_700])
    (told,) = [one for one in read(tmp_path, "tflm", text).remarks if "MHz" in one]
    assert told.startswith("the log's own milliseconds make its ticks 0.9999 to 1 MHz")
    assert not [one for one in read(tmp_path, "tflm", text, clock_hz=1e6).remarks if "MHz" in one]
    with pytest.raises(MeasurementError, match="to 1 MHz, not 80 MHz"):
        read(tmp_path, "tflm", text, clock_hz=80e6)
    (wrong,) = [one for one in read(tmp_path, "tflm", text, clock_hz=80e6, anyway=True).remarks
                if "MHz" in one]
    assert "not 80 MHz: taken as it was asked for" in wrong


def test_a_line_of_0_ms_bounds_the_clock_from_below(tmp_path):
    text = tflm_log(["CONV_2D", "SOFTMAX"], [47_839, 250]).replace("(47 ms)", "(0 ms)")
    assert text.count("(0 ms)") == 2
    with pytest.raises(MeasurementError, match=r"ticks 47.84 MHz or more, not 0.24 MHz"):
        read(tmp_path, "tflm", text, clock_hz=240e3)
    assert read(tmp_path, "tflm", text, clock_hz=240e6).measurement
    assert not read(tmp_path, "tflm", text).clocked


def test_a_last_row_without_a_line_end_is_remarked(tmp_path):
    found = read(tmp_path, "tflm", TFLM_CSV.rstrip())
    assert any("line 6 is the last and has no line end" in one for one in found.remarks)


def test_the_clock_of_the_core_and_the_library_are_kept(tmp_path):
    header = read(tmp_path, "tflm", TFLM_CSV, clock_hz=1e6, cpu_hz=80e6,
                  runtime="tflm-cmsis-nn@2023").measurement.header
    assert dict(header.clocks_hz) == {"cpu": 80e6, "timer": 1e6}
    assert header.runtime == "tflm-cmsis-nn@2023"


HEAD = '"Event","Tag","Ticks"\n'


@pytest.mark.parametrize(("text", "said"), [
    (f"{HEAD}0,CONV_2D,1000\n1,SOFTMAX,50\n{HEAD}", "1 of 2 tables have a head and no rows"),
    (HEAD, "1 of 1 tables have a head and no rows"),
    (f"{HEAD}0,CONV_2D,0\n1,SOFTMAX,0\n", "run 0: timer_ticks is 0 of a whole inference"),
    (f"{HEAD}0,CONV_2D,4294967295\n", "timer_ticks is 4,294,967,295: all bits are set")])
def test_a_head_without_rows_and_a_clock_that_stands_are_refused(tmp_path, text, said):
    path = tmp_path / "cut.log"
    path.write_text(text)
    with pytest.raises(MeasurementError, match=said):
        import_log("tflm", path)
    if "tables" in said and text != HEAD:
        (run,) = {one.run for one in import_log("tflm", path, partial=True).measurement.samples}
        assert run == 0
