"""The page of a prediction for hardware nobody measured: figure, what it rests on, what narrows."""

from __future__ import annotations

from dataclasses import replace

from calibration.fitting.intervals import Interval
from hwmodels.quantities import format_time
from twin.pricing.unmeasured import RUN, Ported, Ranking
from twin.reports.bars import Bar, BarChart
from twin.reports.page.bars import plot_bars
from twin.reports.page.deployment import Report, describe_report
from twin.reports.page.memory import find_locality
from twin.reports.page.parts import Notes, Page, Plot, Section, make_section, make_table
from twin.reports.palette import BLUE, GREEN, SKY
from twin.reports.tables.portability import BEHIND, NARROWING, say_behind, say_best, say_makeup

DRAWN = (("physics", (SKY, ".")), ("ported", (BLUE, "")), ("twin predict", (GREEN, "/")))


def describe_port(ported: Ported, command: str = "") -> Page:
    """Return the page of a ported prediction: the deployment's, with what stands behind it."""
    prediction = ported.prediction
    page = describe_report(Report(prediction=prediction, command=command,
                                  locality=find_locality(prediction)))
    is_measured = prediction.certainty is not None and prediction.certainty.measured
    factor = prediction.time_us / ported.physics_us
    interval = ported.certainty.time_us
    sentence = (f"{format_time(prediction.time_us)}, {interval.describe(format_time)}: "
                f"physics says "
                f"{format_time(ported.physics_us)}, and boards that were measured took "
                f"{factor:.2f} times what their datasheets say.")
    sections = [_describe_steps(ported), make_section("behind", "What it rests on", make_table(
            "behind-table", say_behind(ported), BEHIND, ported.behind))]
    if ported.ranking is not None:
        sections.append(describe_narrowing(ported.ranking))
    best = None if ported.ranking is None else max(
        (ported.ranking.best, *ported.ranking.single, *ported.ranking.runs),
        key=lambda one: one.narrowing)
    advice = "" if best is None else (
        f"Measure {' and '.join(name.removeprefix(RUN) for name in best.names)} on it: the "
        f"interval is then expected {100 * best.narrowing:.0f} % narrower.")
    warnings = [one for one in page.sections if one.name == "warnings"]
    return replace(
        page, subtitle=f"{page.subtitle} · {'not ' * (not is_measured)}measured itself",
        verdict=("Measured itself: this is what twin predict says" if is_measured else
            "Predicted for hardware nobody measured"), tone="", sentence=sentence, advice=advice,
        advises="What to measure next",
        sections=(*warnings, *sections, *(one for one in page.sections if one not in warnings)))


def _describe_steps(ported: Ported) -> Section:
    """Return physics, what was learnt, and what shipped prices say."""
    return make_section(
        "steps", "Physics first, experience second", draw_steps(ported),
        Notes((f"beside twin predict: {ported.difference}",
               f"the interval is {say_makeup(ported)}")))


def draw_steps(ported: Ported) -> Plot:
    """Draw the three predictions with their intervals."""
    values: list[tuple[float, Interval | None]] = [
        (ported.physics_us, None), (ported.prediction.time_us, ported.certainty.time_us),
        (ported.shipped.time_us, ported.shipped.time_interval)]
    return plot_bars(BarChart(
        rows=tuple(name for name, _ in DRAWN), axis="time, ms", scale=1e3, name="steps-plot",
        title="From the datasheet to the prediction",
        caption="Physics: counts on this board at datasheet prices. Ported: times what the "
             "boards below took over what their datasheets say. Bars are intervals.",
        bars=tuple(Bar(row=row, length=time_us, look=look,
                       hover=f"{name}<br>{format_time(time_us)}",
                       ends=None if interval is None else (interval.low, interval.high))
                   for row, ((name, look), (time_us, interval)) in enumerate(
                       zip(DRAWN, values, strict=True)))), height_px=240)


def describe_narrowing(ranking: Ranking) -> Section:
    """Return what each measurement would leave of the interval, most first."""
    found = sorted((*ranking.single, *ranking.runs), key=lambda one: -one.narrowing)
    return make_section("narrowing-section", "What would narrow it", make_table(
        "narrowing-table", f"Expected before it is measured; what to take next: "
        f"{say_best(ranking)}", NARROWING, found))
