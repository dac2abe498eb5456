"""The profiler's text report becomes a measurement, number by number."""

import pytest
from made_logs import NPU as LOG

from calibration.errors import MeasurementError
from calibration.importers import import_log


@pytest.fixture
def measurement(tmp_path):
    path = tmp_path / "prof.log"
    path.write_text(LOG, encoding="utf-8")
    return import_log("npu-profiler", path).measurement


def value(measurement, counter, layer):
    (only,) = measurement.values(counter, layer)
    return only


def test_header_names_clocks_board_and_epochs(measurement):
    assert dict(measurement.header.clocks_hz) == {
        "cpu": 800e6, "npu": 1e9, "noc": 400e6, "nic": 900e6}
    assert measurement.header.board == "stm32n6570_dk"
    assert measurement.header.kind == "measured" and measurement.part == "epoch"
    assert dict(measurement.header.environment)["epoch 0"] == "EpochBlock_186 HW"
    assert dict(measurement.header.environment)["inputs"] == "uint8[1,224,224,3]"


@pytest.mark.parametrize(("counter", "expected"), [
    ("operation_hw.conv", 4), ("unit_STR_ENG", 8), ("ops", 453348), ("compute_cycles", 4608),
    ("max_cycles", 27648), ("compiler_pool_npuRAM5_write_bytes", 8820), ("pre_cycles", 18859),
    ("core_cycles", 10599), ("post_cycles", 5253), ("core_npu_cycles", 13300),
    ("busif0_read_bytes", 14080), ("busif0_read_bursts_1", 8), ("busif0_read_bursts_8", 208),
    ("busif0_write_bursts_8", 0), ("engine_4_in_busif0_octoFlash_active_cycles", 15190),
    ("engine_4_in_busif0_octoFlash_buffer_bytes", 4608), ("npu_cache_read_miss", 80),
    ("npu_cache_write_through", 0), ("pool_octoFlash_read_bytes", 4608),
])
def test_epoch_lines(measurement, counter, expected):
    assert value(measurement, counter, 0) == expected


def test_hybrid_epochs_keep_their_extra_phases_apart(measurement):
    assert value(measurement, "post_cycles", 1) == 4626
    assert value(measurement, "extra_core_cycles", 1) == 1950
    assert value(measurement, "core_npu_cycles", 1) == 2820


@pytest.mark.parametrize(("counter", "expected"), [
    ("max_cycles", 27925), ("compute_cycles", 4875), ("ops", 453448), ("duration", 101),
    ("npu_core_duration", 16), ("pre_share", 29.53), ("cpu_cycles", 80560), ("core_cycles", 12615),
    ("npu_cycles", 100700), ("core_npu_cycles", 16161), ("pool_npuRAM5_write_bytes", 8828),
])
def test_whole_model_lines(measurement, counter, expected):
    assert value(measurement, counter, None) == pytest.approx(expected)


def test_cycles_name_their_clock(measurement):
    clocks = {sample.counter: sample.clock for sample in measurement.samples}
    assert clocks["core_cycles"] == "cpu"
    assert clocks["core_npu_cycles"] == "npu"
    assert clocks["busif0_read_bytes"] is None


@pytest.mark.parametrize(("line", "broken", "named"), [
    ("  mcu cycles             : [18859, 10599, 5253]", "  mcu cycles             : [18859]",
     "'mcu cycles'"),
    ("rburst[1,2,4,8]x8=(8,12,16,208)", "rburst[1,2,4,8]x8=(8,12)", "'busif 0'"),
    ("r=10208 w=7960 ", "r=10208 w=7961 ", "'busif .total.' is 7,960 bytes write"),
    ("   npuRAM5               : r=19600 w=8820 -> 2.14", "   npuRAM6 : r=0 w=8820 -> 2.14",
     "'total' is 24,208 bytes read"),
    ("ops                    : 100", "ops                    : 1e400", "'ops'"),
    ("ops                    : 100", "ops                    : " + "9" * 400, "'ops'"),
    ("  compute cycles         : 10 (max_cycles=20)",
     "  compute cycles         : 10 (max_cycles=20)\n  ops                    : 5",
     "'ops' is there"),
    ("R[hit=0, miss=80, alloc-miss=0, evict=0]", "R[hit=0]", "'NPU cache cnts'"),
])
def test_a_broken_line_is_named(tmp_path, line, broken, named):
    path = tmp_path / "prof.log"
    path.write_text(LOG.replace(line, broken), encoding="utf-8")
    with pytest.raises(MeasurementError, match=r"prof\.log:\d+: " + named):
        import_log("npu-profiler", path)


def test_other_files_and_formats_are_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing here", encoding="utf-8")
    with pytest.raises(MeasurementError, match="nothing of format npu-profiler"):
        import_log("npu-profiler", path)
    with pytest.raises(MeasurementError, match="npu-profiler"):
        import_log("npu-profile", path)
    with pytest.raises(MeasurementError, match="no readable log"):
        import_log("npu-profiler", tmp_path / "absent.log")


# What a log cut short, or put together wrongly, is refused for.
@pytest.mark.parametrize(("change", "why"), [
    (lambda text: text[:text.index("EpochBlock_187")], "it has 1 of 3 epochs"),
    (lambda text: text[:text.index("  Measured")], "no cpu_cycles"),
    (lambda text: text.replace("c_idx=4", "c_idx=9"), "epoch 9 where 4 is due"),
    (lambda text: text + text[text.index("  EpochBlock_186"):], "is there twice"),
    (lambda text: text.replace("(core only = 12615)", "(core only = 12616)"),
     "total of core_cycles is 12,616, its epochs sum to 12,615"),
    (lambda text: text.replace("[125, 33, 31942]", "[125, 33, 31943]"), "total of cpu_cycles"),
    (lambda text: text.replace("[npuRAM4: r=771, w=257]", "[npuRAM4: r=771, w=258]"),
     "total of pool_npuRAM4_write_bytes is 257, its epochs sum to 258"),
    (lambda text: text.replace("core only = 16161", "core only = 216161"),
     "total of core_npu_cycles"),
    (lambda text: text.replace("core only = 16161", "core only = 15000"),
     "total of core_npu_cycles"),
    (lambda text: text.replace("(npu_freq=1000MHz)", "(npu_freq=900MHz)", 1),
     "0.015 ms at 900 MHz, not 0.013 ms"),
    (lambda text: text.replace("npu_freq=1000MHz,nic", "npu_freq=900MHz,nic"),
     r":36: gives npu_freq as 1000 MHz, lines above as 900 MHz"),
])
def test_what_is_not_whole_is_refused(tmp_path, change, why):
    path = tmp_path / "prof.log"
    path.write_text(change(LOG), encoding="utf-8")
    with pytest.raises(MeasurementError, match=why):
        import_log("npu-profiler", path)


def test_an_incomplete_log_is_taken_on_request_and_says_so(tmp_path):
    path = tmp_path / "prof.log"
    path.write_text(LOG[:LOG.index("  EpochBlock_189")], encoding="utf-8")
    imported = import_log("npu-profiler", path, partial=True)
    assert imported.measurement.layers == (0, 1)
    assert imported.remarks[0] == "partial: it has 2 of 3 epochs"
    assert "2 of 3 epochs" in dict(imported.measurement.header.environment)["remarks"]


@pytest.mark.parametrize(("old", "new", "why"), [
    ("duration               : 0.043ms", "duration               : -0.043ms", ":34: 'duration'"),
    ("duration               : 0.043ms", "duration               : 43.0us", ":34: 'duration'"),
    ("duration               : 0.043ms", "duration               : 0.737ms",
     ":34: 'duration' is 0.737 ms, the epoch's 34,711 MCU cycles are 0.043"),
    ("total duration        : 0.101ms", "total duration        : 9.488ms", "says 9.488 ms where"),
    ("npu_core:0.016ms", "npu_core:0.019ms", "'total duration' says 0.019 ms where 16,161 cycles"),
    ("npu cycles            : 100700", "npu cycles            : 200700", "200,700 cycles of the n"),
    ("EpochType.HW", "EpochType.SW", ":26: 'epoch type' is SW, .* c_type=HW"),
    ("npu_freq=1000MHz", "npu_freq=0MHz", "npu_freq is 0 MHz|no number of ms at 0 MHz"),
    ("mcu_freq=800MHz", "mcu_freq=400MHz", ":35: 'mcu cycles' .* 0.047 ms at 400 MHz, not 0.024"),
    ("0.024,0.013,0.007 ms", "0.024,0.013 ms", "3 counts of cycles and 2 times"),
    ("0.024,0.013,0.007 ms", "24,13,7 us", "times are not understood"),
])
def test_what_a_line_says_twice_must_agree(tmp_path, old, new, why):
    path = tmp_path / "prof.log"
    path.write_text(LOG.replace(old, new), encoding="utf-8")
    for partial in (False, True):
        with pytest.raises(MeasurementError, match=why):
            import_log("npu-profiler", path, partial=partial)


def test_a_log_cut_in_mid_line_is_taken_without_that_line(tmp_path):
    path = tmp_path / "prof.log"
    for mark, left in (("  NPU cache cnts         : R[hit", 1),
                       ("  core npu cycles        : 28", 2)):
        path.write_text(LOG[:LOG.index(mark) + len(mark)], encoding="utf-8")
        with pytest.raises(MeasurementError, match="not complete"):
            import_log("npu-profiler", path)
        imported = import_log("npu-profiler", path, partial=True)
        assert any("no end and is omitted" in remark for remark in imported.remarks)
        assert len(imported.measurement.layers) == left
        assert imported.measurement.count("core_npu_cycles", 1) == 0


def test_a_log_without_a_last_line_end_is_whole(tmp_path):
    path = tmp_path / "prof.log"
    path.write_text(LOG.rstrip(), encoding="utf-8")
    assert not import_log("npu-profiler", path, partial=True).remarks


def test_every_line_of_a_whole_log_is_understood(tmp_path):
    path = tmp_path / "prof.log"
    path.write_text(LOG, encoding="utf-8")
    assert import_log("npu-profiler", path).unread == ()
    path.write_text(LOG.replace("   active  ", "   strange "), encoding="utf-8")
    (line,) = import_log("npu-profiler", path).unread
    assert "strange" in line[1]


def test_a_prediction_printed_in_this_form_stays_a_prediction(tmp_path):
    text = LOG.replace(" NPU Utility - AiRunner Profiler (version 0.4)\n", "").replace(
        "  Measured\n", "  Target\n")
    path = tmp_path / "prof.log"
    path.write_text(text, encoding="utf-8")
    found = import_log("npu-profiler", path).measurement
    assert found.header.kind == "predicted"
    assert value(found, "cpu_cycles", None) == 80560


def test_a_clock_and_a_board_must_not_contradict_the_log(tmp_path):
    path = tmp_path / "prof.log"
    path.write_text(LOG, encoding="utf-8")
    with pytest.raises(MeasurementError, match="says its cpu clock is 800 MHz, not 80 MHz"):
        import_log("npu-profiler", path, clock_hz=80e6)
    with pytest.raises(MeasurementError, match=r"ran on stm32n6, nucleo_l4r5zi is a stm32l4"):
        import_log("npu-profiler", path, board="nucleo_l4r5zi")
    assert import_log("npu-profiler", path, board="my_n6").measurement.header.board == "my_n6"
