"""Reports of ST's tools: nodes, totals, settings and what is refused of them, by hand."""

from __future__ import annotations

import pytest
from made_logs import NPU, ST_NEW, ST_NPU, ST_OLD

from calibration.errors import MeasurementError
from calibration.importers import import_log
from calibration.importers.st_edge_ai import recognise


def read(tmp_path, text, form="st-edge-ai", **more):
    path = tmp_path / "log.txt"
    path.write_text(text)
    return import_log(form, path, **more)


def changed(text, *pairs):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_a_report_is_one_run_with_its_spread_and_settings(tmp_path):
    found = read(tmp_path, ST_NEW)
    one = found.measurement
    assert found.unread == () and one.runs == (0,)
    assert {name: one.values(name)[0] for name in one.counters if one.count(name)} == {
        "latency": pytest.approx(13_359), "latency_least": pytest.approx(13_357),
        "latency_most": pytest.approx(13_361), "latency_sd": pytest.approx(1), "macs": 2_667_474,
        "cpu_cycles": 6_411_840}
    units = {sample.counter: (sample.unit, sample.clock) for sample in one.samples}
    assert (units["latency_sd"], units["macs"], units["cpu_cycles"]) == (
        ("us", None), ("MACs", None), ("cycles", "cpu"))
    assert one.header.clocks == {"cpu": 480e6}
    assert one.header.facts == {"device": "0x435 - STM32L4R5",
                                "operators": "Conv2D (0x103),Conv2dPool (0x109)"}


def test_an_old_report_has_one_decimal_total_and_a_device(tmp_path):
    one = read(tmp_path, ST_OLD, "x-cube-ai").measurement
    assert one.header.facts["device"] == "0x411/UNKNOW" and one.header.runtime == "x-cube-ai"
    assert one.header.model == "network" and one.layers == tuple(range(7))
    assert one.header.facts["operators"].split(",")[0] == "10011/(Merged Conv2d / Pool)"
    assert one.values("latency", 6) == [10]


@pytest.mark.parametrize(("line", "runtime"), [
    ("ST Edge AI Core v2.2.0-20266 2adc00962", "st-edge-ai@2.2.0"),
    ("STEdgeAI-4.0.0", "st-edge-ai@4.0.0"), ("X-CUBE-AI v7.3.0", "x-cube-ai@7.3.0"),
    ("stm32ai 8.1.0", "x-cube-ai@8.1.0"), ("made by hand", "st-edge-ai")])
def test_the_tool_that_wrote_it_names_the_library(tmp_path, line, runtime):
    text = changed(ST_NEW, (ST_NEW.splitlines()[0], line))
    assert read(tmp_path, text).measurement.header.runtime == runtime


def test_without_a_table_of_nodes_the_whole_is_taken_and_so_said(tmp_path):
    text = "".join(line for line in ST_NEW.splitlines(keepends=True)[:10] if "c_id" not in line)
    found = read(tmp_path, text)
    assert found.measurement.layers == () and found.measurement.values("latency")[0] > 13_000
    assert "no table of nodes: no times of layers" in found.remarks


def test_phases_of_an_npu_are_kept_apart_and_summed(tmp_path):
    one = read(tmp_path, ST_NPU).measurement
    assert {name: one.values(name, 1)[0] for name in one.counters if one.count(name, 1)} == {
        "latency": 40, "pre_cycles": 169, "core_cycles": 32, "post_cycles": 31914,
        "cpu_cycles": 169 + 32 + 31914}
    assert not recognise(NPU) and recognise(ST_NPU) and not recognise("duration of it\n")


@pytest.mark.parametrize(("text", "pairs", "said"), [
    (ST_NEW, [("[ 1,602,720 ]", "[ 1,602,720 5 ]")], r"log\.txt:15: 2 counts of CPU cycles; 1"),
    (ST_NEW, [("   1       2 ", "   2       2 ")], r"log\.txt:16: c_id 2 where 1 is due"),
    (ST_NEW, [(" duration       :   13.359 ms", " duration : 13.359 ms\n duration : 13.4 ms")],
     r"log\.txt:6: latency is there twice; is this two reports in one"),
    (ST_NEW, [("   total ", "   whole ")], "the table of nodes has no total"),
    (ST_NEW, [("   0       0      Conv2D", "   x       0      Conv2D"),
              ("   1       2      Conv", "   x       2      Conv")], "the table of nodes is empty"),
    # sums of two nodes may be off by four halves of a digit and a little
    (ST_NEW, [("10.019", "10.022")], "the nodes sum to 13.361 ms, the report says 13.359 ms"),
    (ST_NEW, [("[ 4,809,120 ]", "[ 4,809,123 ]")],
     "the nodes sum to 6,411,843 CPU cycles, the report says 6,411,840"),
    (ST_OLD, [("62.976 (total)", "62.969 (total)")], "nodes sum to 62.976 ms, the report says")])
def test_a_report_that_was_cut_or_does_not_sum_is_refused(tmp_path, text, pairs, said):
    with pytest.raises(MeasurementError, match=said):
        read(tmp_path, changed(text, *pairs), "st-edge-ai" if text == ST_NEW else "x-cube-ai")


@pytest.mark.parametrize(("text", "pairs"), [
    (ST_NEW, [("10.019", "10.021")]), (ST_NEW, [("[ 4,809,120 ]", "[ 4,809,122 ]")]),
    (ST_OLD, [("62.976 (total)", "62.971 (total)")])])
def test_rounding_of_each_node_is_let_pass(tmp_path, text, pairs):
    assert read(tmp_path, changed(text, *pairs),
                "st-edge-ai" if text == ST_NEW else "x-cube-ai").measurement.layers
