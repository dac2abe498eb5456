"""Pictures whole: texts, ticks, bars, lines and marks are as kept, see test_kept_reports.py."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need the plot extra")

from made_outlines import compare_kept, outline_figure
from made_predictions import make_prediction
from made_studies import make_row, make_table
from test_kept_reports import LIMITS, accelerated, changed, grown, small

from twin.attribution.views import View
from twin.reports.figures.beside import draw_attribution, draw_beside
from twin.reports.figures.changes import (
    draw_before_after_figure,
    draw_configurations_figure,
    draw_steps_figure,
)
from twin.reports.figures.dashboard import draw_dashboard_figure, draw_radar_figure
from twin.reports.figures.overview import PICTURES, draw_overview
from twin.reports.figures.studies import (
    draw_front_figure,
    draw_heat_figure,
    draw_parallel_figure,
)
from twin.studies.results import Table


def steps():
    return [("first", small()), ("second", make_prediction(2, seed=1))]


FIGURES = {
    **{name: lambda draw=draw: draw(small()) for name, draw in PICTURES.items()},
    "memories-accelerated": lambda: PICTURES["memories"](accelerated()),
    "sheet": lambda: draw_overview(small()),
    "beside": lambda: draw_beside(View(difference=grown())),
    "attribution": lambda: draw_attribution(grown()),
    "before-after": lambda: draw_before_after_figure(
        changed().before, changed().after, "placement.weights = sram"),
    "configurations": lambda: draw_configurations_figure(steps()),
    "steps": lambda: draw_steps_figure(steps()),
    "dashboard": lambda: draw_dashboard_figure(make_table(limits=LIMITS)),
    "radar": lambda: draw_radar_figure(make_table(limits=LIMITS)),
    "front": lambda: draw_front_figure(make_table(limits=LIMITS)),
    "parallel": lambda: draw_parallel_figure(make_table(limits=LIMITS)),
    "heat": lambda: draw_heat_figure(Table(rows=tuple(
        make_row(board, time_us=1e3 * clock, clock=f"{clock}MHz")
        for board in "ab" for clock in (100, 20)), axes=("board", "clock"))),
}


@pytest.mark.parametrize("name", FIGURES)
def test_pictures(name) -> None:
    figure = FIGURES[name]()
    text = "none\n" if figure is None else outline_figure(figure)
    compare_kept(Path(__file__).parent / "kept" / f"picture-{name}.txt", text)
