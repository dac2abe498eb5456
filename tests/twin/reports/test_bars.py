"""Bars: steps end at the total, and both renderers draw what one description says."""

import pytest

pytest.importorskip("matplotlib", reason="pictures need the plot extra")

from made_predictions import make_prediction

from twin.pricing.ledger import cause_times_us
from twin.reports.bars import MORE, Bar, BarChart, chain_steps, stack_causes
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import blank_figure
from twin.reports.page.bars import plot_bars


def draw(chart):
    with blank_figure(6, 4) as figure:
        axes = figure.subplots()
        draw_bars(chart, axes)
    return axes


def test_each_step_begins_where_the_last_ended_and_carries_its_sign():
    rows, bars = chain_steps(10.0, [("less", -4.0), ("more", 1.0)], 7.0, ends=("a", "b"),
                             write=lambda one: f"{one:g}")
    assert rows == ("a", "less", "more", "b")
    assert [(bar.start, bar.length) for bar in bars] == [(0, 10), (10, -4), (6, 1), (0, 7)]
    assert [bar.text for bar in bars] == ["10", "-4", "+1", "7"]


def test_many_long_names_below_bars_are_upright():
    for names, turned in ((list("abc"), 0.0), ([f"elementwise@{one}" for one in range(30)], 90.0)):
        axes = draw(BarChart(rows=tuple(names), axis="time, ms", upright=True, bars=tuple(
            Bar(row=row, length=1.0, look=("#000000", "")) for row in range(len(names)))))
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {turned}


@pytest.mark.parametrize("upright", [False, True])
def test_files_and_pages_draw_the_same_bars(upright):
    prediction = make_prediction(5)
    chart = BarChart(
        rows=tuple("abcde"), axis="time, ms", scale=1e3, upright=upright, stacked=True,
        bars=stack_causes([cause_times_us(prediction, layer.bill) for layer in prediction.layers],
                          prediction.bill.causes(), lambda row, cause, amount: f"{row} {cause}"))
    axes, plot = draw(chart), plot_bars(chart)
    along = "y" if upright else "x"
    drawn = sum(bar.get_height() if upright else bar.get_width() for bar in axes.patches)
    assert drawn == pytest.approx(prediction.time_us / 1e3)
    assert sum(sum(trace[along]) for trace in plot.traces) == pytest.approx(drawn)
    assert {trace["name"] for trace in plot.traces} == set(axes.get_legend_handles_labels()[1])
    assert plot.layout["barmode"] == "stack" and plot.layout[f"{along}axis"]["title"]["text"] == (
        axes.get_ylabel() if upright else axes.get_xlabel())


def test_bars_of_a_series_are_as_wide_as_those_of_another():
    bars = tuple(Bar(row=row, length=1.0, look=MORE, series=series) for row, series in enumerate(
        ("often", "rare", "often", "rare", "often")))
    plot = plot_bars(BarChart(rows=tuple("abcde"), bars=bars, axis="ms"))
    assert plot.layout["barmode"] == "overlay" and [trace["width"] for trace in plot.traces] == [
        0.8, 0.8]


def test_text_before_a_bar_that_ends_far_out_can_be_read():
    rows, bars = chain_steps(10.0, [("more", 1.0)], 11.0, ends=("a", "b"), write=str)
    texts = plot_bars(BarChart(rows=rows, bars=bars, axis="ms")).traces[-1]
    assert texts["textposition"] == ["middle left"] * 3
    assert list(texts["x"]) == [10.0, 10.0, 11.0]
