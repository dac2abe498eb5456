"""Pictures of how sure, how used and how full; of configurations beside each other."""

import math

import pytest
from made_predictions import make_prediction

from twin.api.commands.sweep import sweep
from twin.deployment.deploy import deploy
from twin.pricing.calibrated import predict_calibrated

pytest.importorskip("matplotlib", reason="pictures need the plot extra")


from twin.reports.figures.changes import (
    draw_before_after_figure,
    draw_configurations,
    write_change_pictures,
)
from twin.reports.figures.dashboard import draw_dashboard_figure, draw_radar_figure
from twin.reports.figures.intervals import draw_interval_figure
from twin.reports.figures.layers import draw_layer_figure
from twin.reports.figures.memory_map import draw_memory_figure
from twin.reports.figures.sunburst import draw_sunburst_figure
from twin.reports.figures.utilisation import draw_utilisation_figure
from twin.reports.rivals import name_rivals


@pytest.fixture(scope="module")
def calibrated():
    return predict_calibrated(deploy("ad", "nucleo_l4r5zi"))


@pytest.fixture(scope="module")
def table():
    return sweep(["kws", "ad"], ["nucleo_l4r5zi", "nucleo_f401re"], clocks="each", max_ms=100)


def texts_of(figure):
    import matplotlib.text

    return " ".join(" ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text)
                             ).split())


def test_energy_bars_are_as_long_as_the_layers_energies():
    made = make_prediction(4)
    axes = draw_layer_figure(made, "energy").axes[0]
    for row, layer in enumerate(made.layers):
        end = max(bar.get_x() + bar.get_width() for bar in axes.patches
                  if abs(bar.get_y() + bar.get_height() / 2 - row) < 1e-9)
        assert end == pytest.approx(layer.energy_uj)
    assert "not known" in texts_of(draw_layer_figure(make_prediction(1, energy=False), "energy"))


def test_rings_are_whole_and_energy_only_where_it_is_known():
    from matplotlib.patches import Wedge

    for energy, rings in ((True, 6), (False, 3)):
        figure = draw_sunburst_figure(make_prediction(3, energy=energy))
        angle = math.fsum(wedge.theta2 - wedge.theta1 for wedge in figure.findobj(Wedge))
        assert angle == pytest.approx(360 * rings, rel=1e-4)


def test_utilisation_is_as_long_as_the_inference_and_below_the_peak(calibrated):
    figure = draw_utilisation_figure(calibrated)
    groups, macs, power = figure.axes
    assert groups.get_xlim()[1] == pytest.approx(calibrated.time_us / 1e3)
    tops = max(bar.get_y() + bar.get_height() for bar in groups.patches)
    assert tops == pytest.approx(100)
    used, edges, _ = macs.patches[0].get_data()
    assert 0 < max(used) <= 100 and edges[-1] == pytest.approx(calibrated.time_us / 1e3)
    assert max(power.patches[0].get_data().values) > 0


def test_intervals_hold_the_prediction_and_stated_prices_have_none(calibrated):
    figure = draw_interval_figure(calibrated)
    assert len(figure.axes[0].get_yticklabels()) == len(calibrated.layers) + 1
    assert calibrated.certainty.basis in texts_of(figure)
    assert draw_interval_figure(make_prediction(2)) is None


def test_memories_are_drawn_whole(calibrated):
    axes = draw_memory_figure(calibrated).axes[0]
    flash = math.fsum(bar.get_width() for bar in axes.patches if round(bar.get_y() + 0.3) == 1)
    assert flash == pytest.approx(
        100 * calibrated.flash_bytes / calibrated.flash_available_bytes)


def test_a_change_ends_where_the_prediction_after_it_does(tmp_path):
    before, after = make_prediction(4), make_prediction(4, seed=9)
    figure = draw_before_after_figure(before, after, "another seed")
    steps = figure.axes[1].patches
    assert steps[0].get_width() == pytest.approx(before.time_us / 1e3)
    assert "another seed" in texts_of(figure)
    moves = math.fsum(bar.get_width() for bar in steps if bar.get_x() > 0)
    assert moves == pytest.approx((after.time_us - before.time_us) / 1e3)
    written = write_change_pictures(before, [("a.b=1", after), ("c.d=2", before)], f"{tmp_path}/")
    assert [path.stem for path in written] == ["before_after", "configurations", "steps"]


def test_configurations_are_stacked_to_their_time():
    from twin.reports.figures.canvas import blank_figure

    named = [("one", make_prediction(2)), ("two", make_prediction(3))]
    with blank_figure(6, 3) as figure:
        axes = figure.subplots()
        draw_configurations(named, axes)
    for place, (_, one) in enumerate(named):
        width = math.fsum(bar.get_width() for bar in axes.patches
                          if abs(bar.get_y() + bar.get_height() / 2 - place) < 1e-9)
        assert width == pytest.approx(one.time_us / 1e3)


def test_networks_are_not_compared_with_each_other(table):
    for figure in (draw_dashboard_figure(table), draw_radar_figure(table)):
        text = texts_of(figure)
        assert "configurations of kws" in text and "1 other networks" in text
    values = [line.get_ydata() for line in draw_radar_figure(table).axes[0].lines]
    assert max(max(line) for line in values) == pytest.approx(1.0)
    names = [one.label for one in name_rivals([
        row for row in table.predicted if row.model == "kws"])]
    assert len(set(names)) == len(names)
