"""The power of a device over time, by state; below it the temperature, where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwmodels.quantities import format_time
from twin.reports.figures.canvas import new_figure, rule_values, write_legend
from twin.reports.palette import DARK_GREY, VERMILION, fill_series
from twin.studies.scenario.simulation import STATES, Span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.studies.scenario.outcome import Outcome

LOOKS = {state: fill_series(place) for place, state in enumerate(STATES)}

SHOWN_HOPS = 4
"""Hops of the timeline: more would be lines only."""


def draw_scenario(outcome: Outcome) -> Figure:
    """Return the figure: the first hops state by state, and the temperature of all the time."""
    scenario, run = outcome.scenario, outcome.run
    warm = run.hottest_c is not None
    life = "" if outcome.life_days is None else f", battery {outcome.life_days:.3g} days"
    with new_figure(
            10.0, 4.8 if warm else 3.2, f"{scenario.name}: {run.mean_mw:.3g} mW in the mean{life}",
            f"predicted · {outcome.machine.prediction.graph.name} on "
            f"{outcome.machine.prediction.board.name} · awake {run.duty:.1%} · "
            f"{run.late} late and {run.lost} lost of {len(run.answers_us) + run.lost} hops",
    ) as figure:
        axes = figure.subplots(2 if warm else 1, 1, squeeze=False)
        draw_states(axes[0][0], run.spans, (SHOWN_HOPS + 1) * scenario.sensor.hop_us,
                    scenario.sensor.hop_us)
        if warm:
            draw_temperature(axes[1][0], run.spans, outcome)
        write_legend(figure)
    return figure


def draw_states(axes: Axes, spans: Sequence[Span], until_us: float, hop_us: float) -> None:
    """Draw power against time, filled by state; dotted lines where buffers are full."""
    seen: set[str] = set()
    factor = 1e-3 if until_us < 5e6 else 1e-6
    for span in spans:
        if span.start_us >= until_us:
            break
        end = min(span.end_us, until_us)
        axes.fill_between([span.start_us * factor, end * factor], [span.power_mw] * 2, 0,
                          **LOOKS[span.state] | {"linewidth": 0},
                          label=None if span.state in seen else span.state)
        seen.add(span.state)
    for number in range(1, int(until_us // hop_us) + 1):
        axes.axvline(number * hop_us * factor, color=DARK_GREY, linewidth=0.6, linestyle=":")
    axes.set_xlim(0, until_us * factor)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time, {'ms' if factor == 1e-3 else 's'}; dotted: a buffer is full every "
                    f"{format_time(hop_us)}")
    axes.set_ylabel("power, mW")
    rule_values(axes, "y")


def draw_temperature(axes: Axes, spans: Sequence[Span], outcome: Outcome) -> None:
    """Draw the temperature over all the time that was kept, and where it is throttled."""
    thermal = outcome.scenario.thermal
    assert thermal is not None
    axes.plot([span.end_us * 1e-6 for span in spans],
              [span.temperature_c or 0.0 for span in spans], color=VERMILION, linewidth=1.0)
    if (outcome.run.hottest_c or 0.0) > thermal.ambient_c + 0.5 * (
            thermal.limit_c - thermal.ambient_c):
        axes.axhline(thermal.limit_c, color=DARK_GREY, linewidth=0.8, linestyle="--")
    axes.set_xlabel("time, s")
    axes.set_ylabel("temperature, degC")
    rule_values(axes, "y")
