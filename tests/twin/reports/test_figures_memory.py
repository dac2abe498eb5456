"""Pictures of caches and memory: what they show, from the numbers they are made of."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from hwmodels.bus.events import GRANT
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.pricing.access_sample import run_layer_bus, sample_accesses
from twin.pricing.locality import measure_locality
from twin.reports.figures.access_map import draw_access_map_figure
from twin.reports.figures.cache_layers import (
    draw_miss_rate_figure,
    draw_miss_rates,
    draw_working_set_figure,
    draw_working_sets,
)
from twin.reports.figures.cache_sweep import draw_miss_curve_figure
from twin.reports.figures.canvas import blank_figure
from twin.studies.caches import SweepPoint, sweep_caches


@pytest.fixture(scope="module")
def locality():
    return measure_locality(deploy("ad", "stm32h747i_disco"))


def axes_of(draw, *arguments):
    with blank_figure(6, 4) as figure:
        axes = figure.subplots()
        draw(*arguments, axes)
    return axes


def test_bars_are_working_sets_and_the_line_is_the_capacity(locality):
    axes = axes_of(draw_working_sets, locality)
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert ends == pytest.approx([layer.working_set_bytes / 1024 for layer in locality.layers])
    assert axes.lines[0].get_xdata()[0] == 16


def test_bars_are_miss_rates_and_the_line_is_ten_per_cent(locality):
    axes = axes_of(draw_miss_rates, locality)
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(
        [100 * layer.miss_rate for layer in locality.layers if layer.miss_rate is not None])
    assert axes.lines[0].get_xdata()[0] == 10


def test_headings_say_how_many_layers_are_beyond(locality):
    beyond = sum(layer.working_set_bytes > 16384 for layer in locality.layers)
    above = sum(layer.miss_rate > 0.1 for layer in locality.layers if layer.miss_rate is not None)
    assert f"{beyond} of" in draw_working_set_figure(locality).texts[0].get_text()
    assert f"{above} of" in draw_miss_rate_figure(locality).texts[0].get_text()


def test_the_curve_has_a_line_per_associativity_and_a_star(locality):
    sweep = sweep_caches(locality.deployment, [4096, 16384], [1, 4])
    lines = draw_miss_curve_figure(locality, sweep).axes[0].lines
    assert [line.get_label() for line in lines] == ["1 way", "4 ways", "l1d: 16 KiB, 4 ways"]
    assert lines[-1].get_ydata()[0] == pytest.approx(100 * locality.miss_rate)


def test_a_cache_without_misses_has_its_point_at_zero(locality):
    points = [SweepPoint(size_bytes=size, ways=4, accesses=1000, misses=misses)
              for size, misses in ((1024, 900), (2048, 5), (4096, 0))]
    axes = draw_miss_curve_figure(locality, points).axes[0]
    assert axes.lines[0].get_ydata().tolist() == [90.0, 0.5, 0.0]
    low, _ = axes.get_ylim()
    assert low < 0 and axes.get_yscale() == "symlog"


def test_a_sample_is_of_the_layer_and_in_its_operands(locality):
    deployment = locality.deployment
    sample = sample_accesses(deployment, 0, points=500)
    first = locality.layers[0]
    assert (sample.accesses, sample.misses) == (first.accesses, first.misses)
    assert (np.diff(sample.cycles) >= 0).all() and sample.cycles.max() <= sample.total_cycles
    assert {"weights", "input", "output"} <= set(sample.role.tolist())
    assert 0 < np.count_nonzero(sample.missed) <= sample.misses
    assert len(sample.cycles) < 2000
    for name in set(sample.memory.tolist()):
        memory = deployment.board.memory(name)
        inside = sample.address[sample.memory == name]
        assert ((inside >= memory.address) & (inside < memory.address + memory.size_bytes)).all()


def test_the_map_has_a_panel_per_memory(locality):
    sample = sample_accesses(locality.deployment, 0, points=500)
    figure = draw_access_map_figure(locality, sample)
    assert len(figure.axes) == len(set(sample.memory.tolist())) == 2


def test_the_bus_of_a_layer_carries_its_misses():
    busy = deploy("ad", "stm32h747i_disco").replace(
        {"load.mdma.memory": "sram", "load.mdma.bytes_per_second": 1e8})
    name, run = run_layer_bus(busy, 0)
    mine = run.times[run.bursts.range_of("main")]
    assert name == "axi" and (mine[:, GRANT] >= 0).all()
    assert len(mine) >= measure_locality(busy).layers[0].misses
    assert len(run.times[run.bursts.range_of("mdma")]) > 0


def test_an_alias_has_no_accesses_to_draw(locality):
    graph = deploy("kws", "stm32h747i_disco")
    with pytest.raises(UsageError, match="accepted: 0, 1, 2"):
        sample_accesses(graph, 99)
