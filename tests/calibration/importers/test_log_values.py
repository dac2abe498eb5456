"""Small logs of several tools: what each word of them becomes, and what is refused, by hand."""

from __future__ import annotations

import json

import pytest
from made_logs import ETHOS_U_KIT, MLTK_JSON, MLTK_TEXT, VELA, ZEPHYR, ZEPHYR_BENCH

from calibration.errors import IncompleteLogError, MeasurementError
from calibration.importers import import_log
from calibration.importers.ethos_u import find_foreign
from calibration.importers.itm import read_packets
from calibration.importers.listing import Listing
from calibration.importers.log import Log, count, measurement_of, number_of
from calibration.importers.tick_pairs import TickPair, bound_ticks
from hwmodels.board.file import load_board


def read(tmp_path, form, text, **more):
    path = tmp_path / "log.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_log(form, path, **more)


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("12", 12), (" [ 1,234 ] ", 1234), ("1,234,567", 1_234_567), ("1 234.5", 1234.5),
    ("1_234", 1234), ("1'234", 1234), ("1\u202f234", 1234), ("1.5e3", 1500), (".5", 0.5),
    ("5.", 5), ("9e15", 9e15)])
def test_numbers_are_read_however_their_thousands_are_set_apart(text, value):
    assert number_of(text, Log(where="log"), 1) == value


@pytest.mark.parametrize("text", ["", "-1", "+1", "nan", "inf", "1,23", "1,2345", "1,234 567",
                                  "1,234.5.6", "0x10", "1e400", "12a", "1 2"])
def test_what_is_no_number_is_refused_by_its_line(text):
    with pytest.raises(MeasurementError, match=r"^log:7: .* is not a number; accepted: 0 or more"):
        number_of(text, Log(where="log"), 7)


def test_a_count_is_whole():
    assert count("1,234", Log(where="log"), 7) == 1234 == count("1.234e3", Log(where="log"), 7)
    with pytest.raises(MeasurementError, match=r"^log:7: '1\.5' is not a whole number$"):
        count(" 1.5", Log(where="log"), 7)


def test_a_log_knows_its_lines_its_end_and_what_was_read():
    log = Log(where="log", text="one\n\n ---- \ntwo")
    assert [*log.lines()] == [(1, "one"), (4, "two")] and log.open_line() == (4, "two")
    log.take(1)
    assert log.unread == ((4, "two"),)
    log.remark_open_end()
    assert log.remarks == []
    log.check_end()
    assert log.remarks == ["it ends within line 4, which was not understood and may be cut: 'two'"]
    log.take(4)
    log.remarks.clear()
    log.check_end()
    assert log.remarks == []
    log.remark_open_end()
    assert log.remarks == ["line 4 is the last and has no line end: if it was cut, so is its "
                           "figure"]
    for ended in ("one\n", "one\r", "", "one\n   "):
        assert Log(where="log", text=ended).open_line() is None
    with pytest.raises(IncompleteLogError, match=r"^log: not complete: a line$"):
        log.lack("a line")
    partial = Log(where="log", partial=True)
    partial.lack("a line")
    assert partial.remarks == ["partial: a line"]
    with pytest.raises(MeasurementError, match=r"^log: nothing of this format; expected lines$"):
        measurement_of(log, [], expected="lines")


@pytest.mark.parametrize(("pairs", "bounds"), [
    ([], (0.0, float("inf"))), ([(5000, 0)], (5e6, float("inf"))),
    # 10 ms rounded lie in 9.5 to 11: of 10,000 ticks 909 kHz to 1.05 MHz
    ([(10_000, 10)], (10_000 / 11 * 1e3, 10_000 / 9.5 * 1e3)),
    ([(10_000, 10), (1_000_000, 1000)], (1e9 / 1001, 1e9 / 999.5)),
    # rounded up: 9.01 ms is told as 10
    ([(9010, 10), (999_010, 1000)], (999_010 / 1001 * 1e3, 999_010 / 999 * 1e3 * (1 + 1e-6))),
    ([(10_000, 10), (50_000, 10)], (0.0, float("inf")))])
def test_ticks_beside_milliseconds_bound_their_clock(pairs, bounds):
    found = bound_ticks([TickPair(line=1, ticks=ticks, ms=ms) for ticks, ms in pairs])
    assert found == pytest.approx(bounds)


ROW = "| {} | conv_2d | 2.6M   | 1.3M   | {} | {} | {} | 1x49x10x1 |"
HEAD = "| Index | OpCode | # Ops | # MACs | Acc Cycles | CPU Cycles | Time (s) | Input Shape |"


@pytest.mark.parametrize(("time", "us"), [("14.8m", 14_800), ("1.5", 1.5e6), ("7.0u", 7),
                                          ("0.000123", 123), ("2.0 m", 2000)])
def test_figures_of_mltk_are_times_their_letter(tmp_path, time, us):
    text = f"Profiling Summary\nName: None\nModel Layers\n{HEAD}\n" + ROW.format(0, 12, 34, time)
    found = read(tmp_path, "mltk", text + "\n").measurement
    assert found.values("latency", 0)[0] == pytest.approx(us)
    assert found.values("npu_cycles", 0) == [12] and found.values("cpu_cycles", 0) == [34]
    assert (found.header.model, found.header.runtime) == ("not known", "tflm")
    assert found.header.kind == "measured" and found.header.clocks == {}


def test_rounded_cycles_of_mltk_are_omitted_and_so_said(tmp_path):
    found = read(tmp_path, "mltk", MLTK_TEXT)
    assert found.measurement.counters == ("latency",)
    assert [one for one in found.remarks if one.startswith("figures are rounded to a tenth")]
    assert found.measurement.header.clocks == {"cpu": 78e6}
    assert found.measurement.header.runtime == "mvp"
    whole = read(tmp_path, "mltk", MLTK_JSON)
    assert not [one for one in whole.remarks if "rounded" in one]


@pytest.mark.parametrize(("change", "said"), [
    (lambda text: text.replace("| 130.0k     ", ""), r"log\.txt:18: 7 columns; the header has"),
    (lambda text: text.replace("1x12        |", "1x12"), r"log\.txt:18: 7 columns; the"),
    (lambda text: text.replace("| 1     |", "| 2     |"), r"log\.txt:18: layer 2 where 1 is due"),
    (lambda text: text.replace("14.8m", "14.8q"), r"log\.txt:17: '14.8q' is not a number"),
    (lambda text: text.replace("Time (s): 16.5m", "Time (s): 18.0m"),
     "layers take 16,500 us, the whole 18,000")])
def test_a_damaged_table_of_mltk_is_refused_by_its_line(tmp_path, change, said):
    text = change(MLTK_TEXT)
    assert text != MLTK_TEXT
    with pytest.raises(MeasurementError, match=said):
        read(tmp_path, "mltk", text)


@pytest.mark.parametrize(("energy", "time", "kind"), [
    ("0", True, "measured"), ("0.0002", True, "predicted"), ("0", False, "predicted")])
def test_what_states_energy_or_no_time_is_the_simulators(tmp_path, energy, time, kind):
    document = json.loads(MLTK_JSON)
    for row in document["layers"]:
        row["energy"] = energy
        if not time:
            del row["time"]
    found = read(tmp_path, "mltk", json.dumps(document))
    assert found.measurement.header.kind == kind
    assert ("the simulator's estimates" in found.remarks) is (kind == "predicted")


@pytest.mark.parametrize("line", [
    "conv_2d : 1234560 cycles , 10288000 ns", "conv_2d: 1,234,560 cycles (10288 us)",
    "[00:00:01.204,101] <inf> main: conv_2d : 1234560 cycles , 10,288,000 ns :",
    "REC: conv_2d : 1234560 cycle , 10288.0 us", "| conv_2d : 1234560 cycles , 10288000 ns |"])
def test_lines_of_zephyr_are_read_in_either_unit(tmp_path, line):
    found = read(tmp_path, "zephyr", f"{line}\nsoftmax : 2400 cycles , 20000 ns\n").measurement
    assert found.values("timer_ticks", 0) == [1_234_560] and found.values("latency", 1) == [20]
    assert found.values("latency", 0)[0] == pytest.approx(10_288)
    assert found.header.facts["operators"] == "conv_2d,softmax"


@pytest.mark.parametrize(("name", "whole"), [
    ("inference", True), ("the model", True), ("Total time", True), ("invoke", True),
    ("network", True), ("modelling", False), ("conv total", False)])
def test_a_name_of_the_whole_is_no_layer(tmp_path, name, whole):
    text = f"conv : 1200 cycles , 10000 ns\n{name} : 1212 cycles , 10100 ns\n"
    found = read(tmp_path, "zephyr", text).measurement
    assert found.layers == ((0,) if whole else (0, 1))
    assert found.count("timer_ticks") == whole


@pytest.mark.parametrize(("text", "said"), [
    ("conv : 0 cycles , 10000 ns\n", "0 cycles in 10 us: one of them is none"),
    ("conv : 1200 cycles , 0 ns\n", "1,200 cycles in 0 us: one of them is none"),
    ("a : 1200 cycles , 10000 ns\nconv : 1200 cycles , 10000\n",
     r"log\.txt:2: 'conv : 1200 cycles , 10000' is cut or damaged; expected lines such as"),
    ("a : 1200 cycles , 10000 ns\nb : 1300 cycles , 10000 ns\n",
     r"log\.txt:2: 1,300 cycles in 10 us are of a clock of 130 MHz, other lines of 119.388 to"),
    ("Clock frequency: 120 MHz\na : 1300 cycles , 10000 ns\n", "of 130 MHz, other lines of 120 to "
     "120 MHz"),
    ("a : 600 cycles , 5000 ns\nb : 600 cycles , 5000 ns\ntotal : 1190 cycles , 9917 ns\n",
     "the layers sum to 1,200 cycles, the line of the whole says 1,190"),
    ("a : 600 cycles , 5000 ns\nb : 600 cycles , 5000 ns\ntotal : 1340 cycles , 11167 ns\n",
     "the layers sum to 1,200 cycles, the line of the whole says 1,340")])
def test_lines_of_zephyr_that_contradict_each_other_are_refused(tmp_path, text, said):
    with pytest.raises(MeasurementError, match=said):
        read(tmp_path, "zephyr", text)


def test_a_whole_may_hold_a_tenth_between_its_layers_and_a_layer_nothing(tmp_path):
    text = ("a : 600 cycles , 5000 ns\nb : 600 cycles , 5000 ns\nc : 0 cycles , 0 ns\n"
            "total : 1332 cycles , 11100 ns\n")
    found = read(tmp_path, "zephyr", text).measurement
    assert found.values("timer_ticks", 2) == [0] and found.values("timer_ticks") == [1332]
    assert read(tmp_path, "zephyr", ZEPHYR).measurement.runs == (0, 1)


def test_wholes_alone_are_held_against_no_operators(tmp_path):
    net = Listing(network="net", operators=("conv_2d", "softmax"), known=("conv_2d", "softmax"))
    found = read(tmp_path, "zephyr", ZEPHYR_BENCH, listing=net).measurement
    assert found.layers == () and found.runs == (0, 1)
    with pytest.raises(MeasurementError, match="inference 0 lists 1 of the 2 operators of net"):
        read(tmp_path, "zephyr", "conv_2d : 1200 cycles , 10000 ns\n"
             "total : 1212 cycles , 10100 ns\n", listing=net)


def test_numbered_counters_of_an_ethos_u_are_named_by_their_events(tmp_path):
    text = ("ethosu_pmu_cycle_cntr : 100\nethosu_pmu_cntr0 : 7\nethosu_pmu_cntr1 : 5\n"
            "ethosu_pmu_cntr2 : 9\nInference runtime: 2000 CPU cycles total\n"
            "Ethos-U PMU Events:[ETHOSU_PMU_SRAM_RD_DATA_BEAT_RECEIVED, ETHOSU_PMU_NPU_IDLE]\n"
            "ethosu_pmu_cycle_cntr : 110\n")
    found = read(tmp_path, "ethos-u", text)
    one = found.measurement
    assert {name: one.values(name).tolist() for name in one.counters} == {
        "npu_cycles": [100, 110], "sram_rd_data_beat_received": [7], "npu_idle": [5],
        "cpu_cycles": [2000]}
    units = {sample.counter: (sample.unit, sample.clock) for sample in one.samples}
    assert units == {"npu_cycles": ("cycles", "npu"), "npu_idle": ("cycles", "npu"),
                     "sram_rd_data_beat_received": ("beats", None), "cpu_cycles": ("cycles", "cpu")}
    assert "no list of events names cntr2: omitted" in found.remarks
    assert "CPU cycles of a fast model are no time of a core" in found.remarks
    assert not read(tmp_path, "ethos-u", ETHOS_U_KIT, clock_hz=1e9).measurement.count("latency", 0)


@pytest.mark.parametrize(("active", "said"), [(84, None), (83, "83 cycles active and 0 idle are "
                                                           "not 100: a counter overflowed"),
                                              (116, None), (117, "117 cycles active")])
def test_active_and_idle_cycles_are_the_total_but_for_reading_it(tmp_path, active, said):
    text = f"NPU ACTIVE: {active} cycles\nNPU IDLE: 0 cycles\nNPU TOTAL: 100 cycles\n"
    if said is None:
        assert read(tmp_path, "ethos-u", text).measurement.values("npu_cycles") == [100]
        return
    with pytest.raises(MeasurementError, match=rf"log\.txt:3: {said}"):
        read(tmp_path, "ethos-u", text)


def test_an_inference_without_its_total_is_refused(tmp_path):
    text = "NPU TOTAL: 100 cycles\nNPU ACTIVE: 90 cycles\nNPU ACTIVE: 91 cycles\n"
    with pytest.raises(MeasurementError, match="inference 1 has no total of its cycles"):
        read(tmp_path, "ethos-u", text)


@pytest.mark.parametrize(("board", "name", "said"), [
    ("nucleo_l4r5zi", "axi0_x", "nucleo_l4r5zi has no Ethos-U"),
    ("stm32n6570_dk", "axi0_x", "stm32n6570_dk has no Ethos-U"),
    ("corstone300_fvp", "axi0_x", ""), ("corstone300_fvp", "ext0_x", "ports are AXI0 and AXI1"),
    ("corstone300_fvp", "sram_x", "sram_x is no counter of the ethos-u"),
    ("corstone320_fvp", "axi0_x", "ports are SRAM and EXT"), ("corstone320_fvp", "ext0_x", "")])
def test_ports_are_those_of_the_boards_npu(board, name, said):
    found = find_foreign(["npu_cycles", name], load_board(board))
    assert said in found and bool(found) is bool(said)


def test_rows_of_vela_are_layers_over_all_sub_graphs(tmp_path):
    head, first, fused, last = VELA.splitlines()
    found = read(tmp_path, "vela", "\n".join([
        "Ethos-U Vela", head, first, fused, last.replace(",NPU,", ",CPU,", 1), head,
        first.replace("75.0", "100.0"), ""]))
    one = found.measurement
    assert one.layers == (0, 1, 2, 3) and one.values("npu_cycles", 3) == [15000]
    assert one.header.facts["operators"] == "Conv2D,Conv2D,AvgPool,Conv2D"
    assert "layer 2 is left to the CPU: no cycles known" in found.remarks
    assert {name: one.values(name, 0)[0] for name in (
        "compute_cycles", "sram_cycles", "dram_cycles", "on_chip_flash_cycles", "macs",
        "working_bytes")} == {"compute_cycles": 15000, "sram_cycles": 3800, "dram_cycles": 0,
                              "on_chip_flash_cycles": 0, "macs": 320000, "working_bytes": 12976}
    units = {sample.counter: (sample.unit, sample.clock) for sample in one.samples}
    assert (units["macs"], units["working_bytes"], units["sram_cycles"]) == (
        ("MACs", None), ("bytes", None), ("cycles", "npu"))


@pytest.mark.parametrize(("share", "fits"), [("75.2", True), ("74.8", True), ("75.3", False),
                                             ("74.7", False)])
def test_shares_of_vela_sum_to_all_but_for_their_rounding(tmp_path, share, fits):
    """Three rows of a decimal: off by (3 / 2 + 1) tenths at most."""
    text = VELA.replace("75.0", share, 1)
    if fits:
        assert read(tmp_path, "vela", text).measurement.layers == (0, 1, 2)
        return
    with pytest.raises(MeasurementError, match=rf"network's cycles sum to {float(share) + 25:.2f}"):
        read(tmp_path, "vela", text)
    with pytest.raises(MeasurementError, match=r"log\.txt:2: no line of a table \(.*\)"):
        read(tmp_path, "vela", VELA.replace("Conv2D,Conv2D", 'Conv2D,"Conv2D"x', 1))


def packets(data):
    return [(one.kind, one.source, one.payload, one.offset)
            for one in read_packets(Log(where="log", data=bytes(data)))]


@pytest.mark.parametrize(("data", "found"), [
    ([0, 0, 0, 0, 0, 0x80], [("sync", 0, b"", 0)]), ([0] * 7 + [0x80], [("sync", 0, b"", 0)]),
    ([0, 0, 0], [("torn", 0, b"", 0)]), ([0x70], [("overflow", 0, b"", 0)]),
    ([0x09, 7], [("software", 1, b"\7", 0)]), ([0x0A, 7, 8], [("software", 1, b"\7\x08", 0)]),
    ([0x0B, 1, 2, 3, 4], [("software", 1, b"\1\2\3\4", 0)]),
    ([0x0B, 1, 2, 3], [("torn", 0, b"", 0)]),
    ([0x05, 9], [("hardware", 0, b"\x09", 0)]), ([0x05], [("torn", 0, b"", 0)]),
    # local time stamps: in a header of one byte, or behind one with its bit of continuation
    ([0x20, 0x70], [("timestamp", 2, b"", 0), ("overflow", 0, b"", 1)]),
    ([0xC0, 0x81, 0x01, 0x70], [("timestamp", 4, b"\x81\x01", 0), ("overflow", 0, b"", 3)]),
    ([0xC0, 0x81], [("torn", 4, b"\x81", 0)]), ([0x94, 0x01], [("timestamp", 1, b"\x01", 0)]),
    ([0xB4, 0x01], [("timestamp", 3, b"\x01", 0)]), ([0x08], [("extension", 0, b"", 0)])])
def test_packets_of_an_itm_are_those_of_its_manual(data, found):
    """Armv7-M, appendix D4.2: synchronisation, overflow, sources, time stamps, extensions."""
    assert packets(data) == found


@pytest.mark.parametrize(("data", "said"), [
    ([0, 0, 0, 0, 0x80], "byte 0: 4 bytes of zero are no synchronisation"),
    ([0x70, 0, 0, 0, 0, 0, 0x81], "byte 1: 5 bytes of zero are no sync"),
    ([0x04], "byte 0: header 0x04 is reserved"), ([0x70, 0x24], "byte 1: header 0x24 is reserved")])
def test_bytes_no_itm_sends_are_refused_by_their_place(data, said):
    with pytest.raises(MeasurementError, match=f"^log: {said}"):
        packets(data)


def test_events_of_each_counter_are_its_bits_in_steps_of_256(tmp_path):
    """Port 1 marks layers; other ports, other hardware packets and a second mark count nothing."""
    mark = [0x0A, 2, 0]
    text = bytes([*mark, 0x05, 0b11111, 0x05, 0b00010, 0x0D, 0b11111, 0x12, 9, 9, 0x06, 1, 1,
                  0x0A, 0xFF, 0xFF, 0x0A, 0xFF, 0xFF, 0x05, 1, 0x05, 1])
    found = read(tmp_path, "itm", text)
    one = found.measurement
    assert one.runs == (0,) and one.layers == (2,)
    assert {name: one.values(name, 2).tolist() for name in one.counters} == {
        "dwt_cpicnt": [256], "dwt_exccnt": [512], "dwt_sleepcnt": [256], "dwt_lsucnt": [256],
        "dwt_foldcnt": [256]}
    assert "2 event packets between inferences are omitted" in found.remarks
    assert one.header.facts["layer_marks"] == "1" and one.header.facts["resolution"] == "256 events"
    torn = read(tmp_path, "itm", text + b"\x05")
    assert f"the last packet, at byte {len(text)}, is cut" in torn.remarks
    with pytest.raises(MeasurementError, match="the capture ends within layer 2 of inference 1"):
        read(tmp_path, "itm", text + bytes(mark))
    empty = read(tmp_path, "itm", bytes([*mark, 0x0A, 0xFF, 0xFF])).measurement
    assert empty.values("dwt_lsucnt", 2).tolist() == [0]
