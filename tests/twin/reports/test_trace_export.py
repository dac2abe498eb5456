"""Timelines of an inference on an accelerator: spans, bandwidth, trace file, picture."""

import itertools
import json
import math

import pytest
from made_predictions import make_prediction

from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.pricing.accelerator.timeline import list_spans, sample_bandwidth
from twin.pricing.inference import predict
from twin.reports.bars import chart_tasks
from twin.reports.figures.canvas import save_figure
from twin.reports.figures.task_timeline import draw_timeline_figure
from twin.reports.formats import check_format, write_format
from twin.reports.page.accelerated import list_tasks
from twin.reports.page.bars import plot_bars
from twin.reports.trace import make_trace


@pytest.fixture(scope="module")
def prediction():
    return predict(deploy("kws", "stm32n6570_dk", runtime="neural-art"))


@pytest.fixture(scope="module")
def timeline(prediction):
    return draw_timeline_figure(prediction)


def test_epochs_have_the_numbers_of_their_names_in_every_picture(prediction, timeline):
    """Twelve of them, from 1 as the compiler counts, whatever place they have in a list."""
    numbers = [epoch.name.rpartition("_")[2] for epoch in prediction.tasks]
    assert numbers == [str(place) for place in range(1, 13)]
    plot = plot_bars(chart_tasks(prediction))
    assert plot.traces and all(list(trace["x"]) == numbers for trace in plot.traces)
    assert plot.layout["xaxis"]["type"] == "category"
    ticks = {text.get_text().rstrip("sh") for axes in timeline.axes
             if axes.get_title() == "bill by epoch" or "epoch" in axes.get_xlabel()
             for text in axes.get_xticklabels()}
    assert ticks == {*numbers}
    assert [row.cells[0].text for row in list_tasks(prediction).rows] == [
        epoch.name for epoch in prediction.tasks]


def test_spans_lie_inside_their_epoch_and_phases_do_not_overlap(prediction):
    spans = list_spans(prediction)
    for span in spans:
        epoch = prediction.tasks[span.task]
        assert epoch.start_us - 1e-6 <= span.start_us <= span.end_us
        assert span.end_us <= epoch.start_us + epoch.time_us + 1e-6
    host = sorted((span.start_us, span.end_us) for span in spans if span.row == "host")
    assert all(first[1] <= second[0] + 1e-6
               for first, second in itertools.pairwise(host))
    busy_us = math.fsum(end - start for start, end in host)
    core_us = math.fsum(epoch.run.core_npu_cycles for epoch in prediction.tasks) / 1e3
    assert busy_us + core_us == pytest.approx(prediction.time_us)


def test_engines_move_what_their_epoch_asks(prediction):
    spans = list_spans(prediction)
    for epoch in prediction.tasks:
        for engine in epoch.run.task.transfers:
            moved = math.fsum(span.bytes for span in spans if span.task == epoch.index
                              and span.row == f"STRENG {engine.channel}")
            assert moved == pytest.approx(engine.bytes * engine.repeats)


def test_bandwidth_carries_every_byte(prediction):
    spans = list_spans(prediction)
    rates = sample_bandwidth(spans, prediction.time_us, bins=100)
    assert {*rates} == {span.pool for span in spans if span.bytes}
    for pool, mb_per_s in rates.items():
        moved = math.fsum(span.bytes for span in spans if span.pool == pool)
        assert math.fsum(mb_per_s) * prediction.time_us / 100 == pytest.approx(moved, rel=1e-6)


def test_one_span_per_engine_and_epoch_covers_its_steps(prediction):
    coarse = list_spans(prediction, steps=False, tasks=[0])
    fine = list_spans(prediction, tasks=[0])
    assert {span.row for span in coarse} == {span.row for span in fine}
    assert len(coarse) < len(fine)
    assert math.fsum(s.bytes for s in coarse) == pytest.approx(math.fsum(s.bytes for s in fine))


def test_trace_is_in_the_trace_event_format(prediction, tmp_path):
    path = write_format(prediction, tmp_path / "trace.json", ".trace.json")
    trace = json.loads(path.read_text(encoding="utf-8"))
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert all({"name", "pid", "tid", "ts", "dur"} <= event.keys() for event in complete)
    assert all(event["dur"] >= 0 for event in complete)
    epochs = [event for event in complete if event["name"].startswith("epoch_")
              and event["pid"] == 4]
    assert math.fsum(event["dur"] for event in epochs) == pytest.approx(prediction.time_us)
    names = {event["args"]["name"] for event in trace["traceEvents"]
             if event["name"] == "thread_name"}
    assert {"host", "CONV_ACC", "STRENG 0"} <= names
    assert any(event["ph"] == "C" for event in trace["traceEvents"])
    assert make_trace(prediction) == make_trace(prediction)


def test_refusals(prediction, tmp_path):
    with pytest.raises(UsageError, match=r"ends in \.json"):
        check_format(tmp_path / "trace.txt", ".json")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        check_format(tmp_path / "file" / "trace.json", ".json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        check_format(tmp_path / "folder.json", ".json")


def test_events_of_a_thread_never_overlap():
    for name in ("kws", "ic"):
        made = predict(deploy(name, "stm32n6570_dk", runtime="neural-art"))
        threads = {}
        for event in make_trace(made)["traceEvents"]:
            if event["ph"] == "X":
                threads.setdefault((event["pid"], event["tid"]), []).append(
                    (event["ts"], event["ts"] + event["dur"]))
        assert len(threads) > 8
        for spans in threads.values():
            assert all(first[1] <= second[0] + 1e-9
                       for first, second in itertools.pairwise(sorted(spans)))


def test_a_core_has_layers_and_their_causes_one_after_the_other():
    made = make_prediction(4)
    trace = make_trace(made)
    threads = {tid: [event for event in trace["traceEvents"]
                     if event["ph"] == "X" and event["tid"] == tid] for tid in (1, 2)}
    assert [event["args"]["macs"] for event in threads[1]] == [one.macs for one in made.layers]
    for events in threads.values():
        assert math.fsum(one["dur"] for one in events) == pytest.approx(made.time_us, rel=1e-6)
        spans = [(one["ts"], one["ts"] + one["dur"]) for one in events]
        assert all(first[1] <= second[0] + 1e-3 for first, second in itertools.pairwise(spans))
    assert {event["name"] for event in trace["traceEvents"] if event["ph"] == "C"} == {
        "bytes alive", "MAC per cycle", "power, mW"}


def test_timeline_picture_is_drawn(prediction, timeline, tmp_path):
    gantt, bandwidth, bill = timeline.axes
    rows = [label.get_text() for label in gantt.get_yticklabels()]
    assert rows[0] == "host" and "CONV_ACC" in rows and "STRENG 0" in rows
    assert len(bandwidth.patches) == len({span.pool for span in list_spans(prediction)
                                          if span.pool})
    tops = {}
    for bar in bill.patches:
        place = round(bar.get_x() + bar.get_width() / 2)
        tops[place] = max(tops.get(place, 0.0), bar.get_y() + bar.get_height())
    for epoch in prediction.tasks:
        assert tops[epoch.index] == pytest.approx(epoch.time_us)
    # the number the report, the layers and the profiler call an epoch by
    shown = [label.get_text().rstrip("sh") for label in bill.get_xticklabels()]
    assert shown == [epoch.name.rpartition("_")[2] for epoch in prediction.tasks]
    assert save_figure(timeline, tmp_path / "timeline.png").stat().st_size > 10_000


def test_every_unit_at_work_has_a_row(prediction):
    for epoch in prediction.tasks:
        rows = {span.row for span in list_spans(prediction, tasks=[epoch.index])}
        for kind in ("CONV_ACC", "ARITH_ACC"):
            busy = sum(unit.count for unit in epoch.run.task.units if unit.kind == kind)
            assert sum(row.split(" ")[0] == kind for row in rows) == busy
    assert any(span.row == "CONV_ACC 3" for span in list_spans(prediction))
