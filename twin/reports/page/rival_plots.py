"""Plots of several configurations: bars of each figure, a radar, a front with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hwmodels.quantities import significant
from twin.reports.page.axes import FIGURES, error_bars, log_axis, rule
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.rivals import BEST, Rival, write_figure
from twin.reports.page.styles import INK, PAGE, hatches
from twin.reports.palette import (
    BLUE,
    DARK_GREY,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    WINE,
)
from twin.studies.limits import Limits
from twin.studies.results import QUANTITIES
from twin.studies.sweep import mark_front, network_of

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, WINE, DARK_GREY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Told apart by shape as well as by colour."""

MOST_BARS, MOST_SPOKED, MOST_POINTS, LONGEST_LABEL = 12, 6, 1500, 26


def draw_dashboard(rivals: Sequence[Rival], limits: Limits | None = None) -> tuple[Plot, ...]:
    """Return bars of time, energy, RAM and flash, two by two; the best is hatched and starred."""
    asked = dict((limits or Limits()).list_limits())
    return tuple(_draw_bars(rivals, quantity, asked.get(quantity)) for quantity in QUANTITIES[:4]
                 if any(getattr(one.row, quantity) is not None for one in rivals))


def _draw_bars(rivals: Sequence[Rival], quantity: str, limit: float | None) -> Plot:
    name, unit, factor = FIGURES[quantity]
    known = [one for one in rivals if getattr(one.row, quantity) is not None]
    shown = known[:MOST_BARS]
    meeting = [one for one in known if one.row.met]
    least = min(getattr(one.row, quantity) for one in meeting or known)
    worst = max(getattr(one.row, quantity) for one in known)
    alike = all(getattr(one.row, quantity) == worst for one in known)
    best = [one.row.met and getattr(one.row, quantity) == least and not alike for one in shown]
    traces = [_bar_trace(shown, [place for place, wins in enumerate(best) if wins is winning],
                         quantity, winning=winning) for winning in (True, False)
              if winning in best]
    told = _tell_least(known, quantity, least, worst, alike=alike)
    told += f" {len(known) - len(shown)} more are in the table." if len(known) > len(shown) else ""
    two_lines = any(" · " in one.label for one in shown)
    return Plot(
        name=f"bars-{quantity.split('_')[0]}", title=f"{name[0].upper()}{name[1:]}, {unit}",
        told=told, traces=tuple(traces), half=True,
        height_px=90 + (38 if two_lines else 26) * len(shown), layout={
            "barmode": "overlay", "showlegend": False,
            "xaxis": {"title": {"text": f"{name}, {unit}"}, "rangemode": "tozero"},
            "yaxis": label_axis([one.label for one in shown]),
            "shapes": [] if limit is None else [rule(limit * factor, across=True)]})


def _tell_least(known: Sequence[Rival], quantity: str, least: float, worst: float, *,
                alike: bool) -> str:
    """Say who has least, of those that meet the limits where some do not."""
    if alike:
        return f"All have {write_figure(quantity, worst)}."
    most = f"the most is {write_figure(quantity, worst)}."
    winner = next((one for one in known if one.row.met
                   and getattr(one.row, quantity) == least), None)
    if winner is None:
        return f"None meets the limits; the least is {write_figure(quantity, least)}, {most}"
    among = "" if all(one.row.met for one in known) else ", least of those that meet the limits"
    return (f"{BEST} hatched: {winner.label}, {write_figure(quantity, least)}{among}; {most}")


def _bar_trace(shown: Sequence[Rival], places: Sequence[int], quantity: str, *,
               winning: bool) -> dict[str, Any]:
    factor = FIGURES[quantity][2]
    mine = [shown[place] for place in places]
    bounds = [one.row.bounds_of(quantity) or (0.0, 0.0, 0.0) for one in mine]
    trace: dict[str, Any] = {
        "type": "bar", "orientation": "h", "y": list(places), "width": 0.8,
        "x": [point * factor for _, point, _ in bounds], "marker": {
            "color": GREEN if winning else BLUE, "pattern": hatches("/" if winning else "")},
        "hoverinfo": "text", "hovertext": [
            f"{plain(one.label)}<br>{write_figure(quantity, getattr(one.row, quantity))}"
            for one in mine]}
    if any(high > low for low, _, high in bounds):
        trace["error_x"] = error_bars(bounds, factor, color=INK, thickness=1.3, width=3)
    return trace


def label_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Return an upright axis with a label at each whole number, the first on top."""
    return {"range": [len(labels) - 0.5, -0.5], "tickvals": list(range(len(labels))),
            "ticktext": [short_label(label) for label in labels], "zeroline": False}


def short_label(label: str) -> str:
    """Return a label for an axis, in two lines; what is too long loses its end, part by part."""
    first, _, rest = label.partition(" · ")
    head, dot, last = rest.rpartition(" · ")
    room = LONGEST_LABEL - len(dot) - len(last)
    return "<br>".join(plain(part) for part in (
        _cut(first, LONGEST_LABEL), f"{_cut(head, max(room, 9))}{dot}{last}" if dot
        else _cut(last, LONGEST_LABEL)) if part)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most - 1]}…"


def draw_radar(rivals: Sequence[Rival]) -> Plot | None:
    """Draw each as a ring over what is known of all; None where fewer than three things are."""
    shown = rivals[:MOST_SPOKED]
    spokes = [(FIGURES[quantity][0], [float(getattr(one.row, quantity)) for one in shown])
              for quantity in QUANTITIES
              if all(getattr(one.row, quantity) for one in shown)]
    if all(one.row.time is not None for one in shown):
        spokes.append(("certainty", [math.log(one.row.time.high / one.row.time.low)
                                     for one in shown if one.row.time is not None]))
    if len(spokes) < 3 or len(shown) < 2:
        return None
    names = [{"time": "speed"}.get(name, name) for name, _ in spokes]
    ratios = [[values[place] / min(values) for _, values in spokes] for place in range(len(shown))]
    worst = max(2.0, *(ratio for ring in ratios for ratio in ring))

    def radius(ratio: float) -> float:
        return 1 - 0.9 * math.log(ratio) / math.log(worst)

    traces = []
    for place, (one, ring) in enumerate(zip(shown, ratios, strict=True)):
        traces.append({
            "type": "scatterpolar", "mode": "lines+markers", "name": plain(one.label),
            "r": [radius(ratio) for ratio in (*ring, ring[0])], "theta": [*names, names[0]],
            "hoverinfo": "text", "hovertext": [
                f"{plain(one.label)}<br>{name}: "
                + ("the best" if ratio == 1 else f"{significant(ratio)} times the best")
                for name, ratio in zip([*names, names[0]], [*ring, ring[0]], strict=True)],
            "line": {"color": COLOURS[place], "dash": DASHES[place], "width": 2},
            "marker": {"symbol": SYMBOLS[place], "size": 8, "color": COLOURS[place]}})
    rings = [ratio for ratio in (1, 2, 5, 10, 100, 1000, 10000) if ratio <= worst]
    rings = [ratio for ratio in rings if ratio in (1, 2, 10, 100) or worst < 100]
    return Plot(
        name="radar", title="Strengths and weaknesses", traces=tuple(traces), height_px=460,
        half=True, told="The rim is the best of these, rings further in take so many times as "
        "much of it; certainty is how narrow the interval of the time is."
        + (f" The first {len(shown)} are drawn." if len(shown) < len(rivals) else ""), layout={
            "margin": {"l": 60, "r": 60, "t": 30, "b": 30},
            "legend": {"y": -0.12, "yanchor": "top"},
            "polar": {"bgcolor": "rgba(0,0,0,0)", "angularaxis": {
                "gridcolor": "#999999", "linecolor": "#999999", "direction": "clockwise"},
                "radialaxis": {
                "range": [0, 1.05], "tickvals": [radius(ratio) for ratio in rings],
                "ticktext": ["best" if ratio == 1 else f"x{ratio}" for ratio in rings],
                "gridcolor": "#999999", "linecolor": "#999999", "tickfont": {"size": 10}}}})


def choose_objectives(rivals: Sequence[Rival],
                      wanted: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return two quantities to draw over each other; None where two are not known."""
    order = dict.fromkeys((*wanted, "time_us", "energy_uj", "ram_bytes", "flash_bytes"))
    known = [name for name in order
             if sum(getattr(one.row, name) is not None for one in rivals) > 0]
    return (known[0], known[1]) if len(known) > 1 else None


def draw_front(rivals: Sequence[Rival], objectives: tuple[str, str],
               limits: Limits | None = None, *, half: bool = False) -> Plot:
    """Draw two quantities over each other with their intervals, and the Pareto front."""
    across, up = objectives
    known = [one for one in rivals
             if (getattr(one.row, across) or 0) > 0 and (getattr(one.row, up) or 0) > 0]
    marked = mark_front([one.row for one in known], objectives)
    known = [Rival(label=one.label, row=row) for one, row in zip(known, marked, strict=True)]
    shown = known if len(known) <= MOST_POINTS else sorted(
        known, key=lambda one: (not one.row.front, not one.row.met))[:MOST_POINTS]
    groups: dict[str, list[Rival]] = {}
    for one in shown:  # A few by themselves, many by their board or model.
        groups.setdefault(one.label if len(shown) <= len(COLOURS) else _group_of(one, shown),
                          []).append(one)
    traces = [_draw_points(name, mine, across, up, place)
              for place, (name, mine) in enumerate(groups.items())]
    fronts = [_front_points([one for one in known if one.row.met
                             and network_of(one.row) == network], across, up)
              for network in dict.fromkeys(network_of(one.row) for one in known)]
    for place, best in enumerate(fronts):
        traces.append({
            "type": "scatter", "mode": "lines", "name": "front", "hoverinfo": "skip",
            "legendgroup": "front", "showlegend": place == 0,
            "x": [x for x, _ in best], "y": [y for _, y in best],
            "line": {"color": INK, "width": 1, "dash": "dot", "shape": "hv"}})
    ends = {name: [bound * FIGURES[name][2] for one in shown
                   for bound in (one.row.bounds_of(name) or ())] for name in objectives}
    meeting = all(one.row.met for one in known)
    told = (f"{sum(map(len, fronts))} of {len(known)} are on the front"
            + (" of their network" if len(fronts) > 1 else "")
            + f": nothing {'' if meeting else 'that meets the limits '}is better in both. "
            "Bars are 90 % intervals; filled marks may be best, hollow ones are beaten"
            + ("." if meeting else " or miss a limit."))
    told += f" {len(known) - len(shown)} hollow ones are not drawn." if len(
        known) > len(shown) else ""
    asked = dict((limits or Limits()).list_limits())
    names = [f"{FIGURES[name][0]}, {FIGURES[name][1]}" for name in objectives]
    return Plot(
        name=f"front-{across.split('_')[0]}-{up.split('_')[0]}", told=told,
        title=f"{FIGURES[across][0].capitalize()} against {FIGURES[up][0]}, with intervals",
        traces=tuple(traces), height_px=460, half=half, layout={
            "xaxis": log_axis(ends[across], names[0]), "yaxis": log_axis(ends[up], names[1]),
            "shapes": [rule(asked[name] * FIGURES[name][2], across=name == across)
                       for name in objectives if name in asked]})


def _group_of(one: Rival, others: Sequence[Rival]) -> str:
    boards = {other.row.board for other in others}
    return one.row.board if len(boards) > 1 else one.row.runtime


def _draw_points(name: str, mine: Sequence[Rival], across: str, up: str,
                 place: int) -> dict[str, Any]:
    colour, symbol = COLOURS[place % len(COLOURS)], SYMBOLS[place % len(SYMBOLS)]
    trace: dict[str, Any] = {
        "type": "scatter", "mode": "markers", "name": plain(name), "hoverinfo": "text",
        "marker": {"color": colour, "size": 10, "line": {"width": 1, "color": PAGE}, "symbol": [
            symbol if one.row.front else f"{symbol}-open" for one in mine]},
        "hovertext": [f"{plain(one.label)}<br>{write_figure(across, getattr(one.row, across))}, "
                      f"{write_figure(up, getattr(one.row, up))}" for one in mine]}
    for axis, quantity in (("x", across), ("y", up)):
        factor = FIGURES[quantity][2]
        bounds = [one.row.bounds_of(quantity) or (0.0, 0.0, 0.0) for one in mine]
        trace[axis] = [point * factor for _, point, _ in bounds]
        if any(high > low for low, _, high in bounds):
            trace[f"error_{axis}"] = error_bars(bounds, factor, thickness=1, width=3, color=colour)
    return trace


def _front_points(rivals: Sequence[Rival], across: str, up: str) -> list[tuple[float, float]]:
    """Return the corners of the front, left to right."""
    points = sorted((getattr(one.row, across) * FIGURES[across][2],
                     getattr(one.row, up) * FIGURES[up][2]) for one in rivals)
    found: list[tuple[float, float]] = []
    for x, y in points:
        if not found or y < found[-1][1]:
            found.append((x, y))
    return found
