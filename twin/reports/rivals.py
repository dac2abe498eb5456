"""Several configurations beside each other: what they are called, and pictures of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from hwmodels.frozen import frozen
from hwmodels.quantities import NOT_KNOWN, Ends, format_frequency, list_by_key, significant
from twin.reports.bars import Bar, BarChart
from twin.reports.charts import Axis, Chart, Curve, look_of
from twin.reports.palette import BLUE, GREEN, GREY
from twin.studies.limits import Limits
from twin.studies.rows import NAMED, QUANTITIES, SURE, WORDS, Row
from twin.studies.study.figures import write_level
from twin.studies.sweep import list_asked, mark_front, name_network, network_of, rivals_of

FIGURES = {"time_us": ("time", "ms", 1e-3), "energy_uj": ("energy", "mJ", 1e-3),
           "ram_bytes": ("RAM", "KiB", 1 / 1024), "flash_bytes": ("flash", "KiB", 1 / 1024),
           "price_usd": ("price", "USD", 1.0), "mean_mw": ("mean power", "mW", 1.0),
           "error": ("error rate", "%", 100.0), "parameter_bytes": ("parameters", "KiB", 1 / 1024)}
"""Name, unit and factor of each quantity of a row."""

BEST = "★"
"""Beside what wins."""

MARKS_OF = {"no": "x", "may": "+"}
"""Marks of what misses a limit, and of what a figure that is not known decides."""

MARK_MEANINGS = {"no": "crosses miss a limit", "may": "plus signs may meet: a figure is not known"}

MOST_POINTS, MOST_GROUPS = 1500, 8
FAR = 2.0
"""A limit beyond so many times the longest bar is written, not drawn: bars would be short."""
RINGS = (1, 2, 5, 10, 100, 1000, 10000)


@frozen
class Rival:
    """A configuration and what it is called among the others."""

    label: str
    row: Row


def write_figure(quantity: str, value: float | None) -> str:
    """Write a quantity of a row with its unit."""
    return (NOT_KNOWN if value is None else f"{value:.2%}" if quantity == "error" else
            f"{value:,.2f} USD" if quantity == "price_usd" else write_level(quantity, value))


def label_figure(quantity: str) -> str:
    """Return what an axis of a quantity says."""
    name, unit, _ = FIGURES[quantity]
    return f"{name}, {unit}"


def name_rivals(rows: Sequence[Row]) -> tuple[Rival, ...]:
    """Name rows by what they differ in: board, library, clock, then each axis with its name."""
    groups: list[tuple[str, list[str]]] = [
        ("board", [row.board for row in rows]), ("runtime", [row.runtime for row in rows]),
        ("model", [row.network for row in rows])]
    names = list_asked(rows)
    clocks = [format_frequency(row.clock_hz) if row.clock_hz else "" for row in rows]
    if "clock" in names or any(name.startswith("clocks.") for name in names):
        groups.append(("clock", clocks))
    groups += [(name, [value and f"{name.rpartition('.')[2]} {value}"
                       for row in rows for value in [row.asked(name)]])
               for name in names if name not in NAMED]
    differing = [texts for _, texts in groups if len(set(texts)) > 1] or [groups[0][1]]
    labels = [" · ".join(filter(None, parts)) for parts in zip(*differing, strict=True)]
    return tuple(Rival(label=label, row=row) for label, row in zip(labels, rows, strict=True))


def chart_quantity(rivals: Sequence[Rival], quantity: str, limit: float | None = None) -> BarChart:
    """Describe a quantity of each; the least, of those that meet the limits, is set apart."""
    name, unit, factor = FIGURES[quantity]
    known = [one for one in rivals if getattr(one.row, quantity) is not None]
    ends = [bounds[2] for one in known if (bounds := one.row.bounds_of(quantity)) is not None]
    beyond = limit is not None and limit > FAR * max(ends, default=limit)
    rows = [one.row for one in rivals]
    lowest, leading = find_lowest(rows, quantity), {*list_leading(rows)}
    bars = []
    for place, one in enumerate(rivals):
        value = getattr(one.row, quantity)
        best = one.row in leading and value == lowest.get(one.row.compared_as(quantity), math.nan)
        low, _, high = one.row.bounds_of(quantity) or (0.0, 0.0, 0.0)
        days = "" if quantity != "mean_mw" or one.row.life_days is None else (
            f" ({significant(one.row.life_days)} days)")
        bars.append(Bar(
            row=place, length=value or 0.0, series="least" if best else "others",
            look=(GREEN, "////") if best else (BLUE, ""), ends=(low, high) if high > low else None,
            text=NOT_KNOWN if value is None else (
                significant(value * factor) + days + f" {BEST}" * best),
            hover=f"{one.label}<br>{write_figure(quantity, value)}"))
    return BarChart(
        rows=tuple(one.label for one in rivals), axis=label_figure(quantity), scale=1 / factor,
        limit=None if beyond else limit,
        bars=tuple(sorted(bars, key=lambda bar: bar.series != "least")),
        name=f"bars-{quantity.split('_')[0]}", title=f"{name[0].upper()}{name[1:]}, {unit}",
        caption=_tell_lowest(known, quantity, lowest, leading)
        + f" The limit, {write_figure(quantity, limit)}, lies beyond." * beyond)


def list_quantities(rivals: Sequence[Rival]) -> tuple[str, ...]:
    """Return the four drawn 2x2: time, energy, RAM or mean power, prices that differ or flash."""
    prices = {one.row.price_usd for one in rivals} - {None}
    power = any(one.row.mean_mw is not None for one in rivals)
    return ("time_us", "energy_uj", "mean_mw" if power else "ram_bytes",
            "price_usd" if len(prices) > 1 else "flash_bytes")


def list_leading(rows: Sequence[Row]) -> list[Row]:
    """List those of which the lowest is looked for: that surely meet the limits, else that do."""
    return [row for row in rows if row.sure] or [row for row in rows if row.met]


def find_lowest(rows: Sequence[Row], quantity: str) -> dict[str, float]:
    """Return the lowest of `list_leading`, by kind that compares.

    None of a kind of which all rows, whether they meet the limits or not, have as much.
    """
    kinds = list_by_key((row.compared_as(quantity), row) for row in rows
                        if getattr(row, quantity) is not None)
    leading = {*list_leading(rows)}
    return {kind: min(met) for kind, same in kinds.items() if (
        met := [getattr(row, quantity) for row in same if row in leading])
            and len({getattr(row, quantity) for row in same}) > 1}


def say_among(rows: Sequence[Row]) -> str:
    """Say among which rows the lowest is looked for; "" for all of them."""
    mixed = any(row.sure for row in rows) and any(row.met and not row.sure for row in rows)
    return "" if all(row.met for row in rows) and not mixed else (
        " of those that meet the limits" + f" with {SURE:.0%} or more" * mixed)


def _tell_lowest(known: Sequence[Rival], quantity: str, lowest: Mapping[str, float],
                 leading: Collection[Row]) -> str:
    """Say who has least, of those that meet the limits where some do not."""
    values = [getattr(one.row, quantity) for one in known]
    least, most = (write_figure(quantity, end(values, default=0.0)) for end in (min, max))
    if len(set(values)) < 2:
        return f"All have {most}."
    winners = [(kind, next(one.label for one in known if one.row in leading
                           and one.row.compared_as(quantity) == kind
                           and getattr(one.row, quantity) == value), value)
               for kind, value in lowest.items()]
    if not any(one.row.met for one in known):
        return f"None meets the limits; the least is {least}, the most is {most}."
    many = len({one.row.compared_as(quantity) for one in known}) > 1
    caption = "; ".join(f"{label}, {write_figure(quantity, value)}"
                     + (" " + kind.removeprefix(f"{quantity} ")) * many
                     for kind, label, value in winners)
    among = say_among([one.row for one in known])
    among = (among and f", least{among}") + "; chips and boards do not compare" * many
    if most in (write_figure(quantity, value) for _, _, value in winners):
        return f"{BEST} hatched: {caption}{among}; the others have no more."
    return (f"{BEST} hatched: {caption}{among}; the most is {most}." if caption else
            f"Chips at their rail and boards at their input do not compare; the most is {most}.")


def chart_radar(shown: Sequence[Rival]) -> Chart | None:
    """Describe each as a ring over what is known of all; None where fewer than three things are."""
    spokes = [(FIGURES[quantity][0], [float(getattr(one.row, quantity)) for one in shown])
              for quantity in QUANTITIES
              if all(getattr(one.row, quantity) for one in shown)
              and len({one.row.compared_as(quantity) for one in shown}) == 1]
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

    places = [*range(len(spokes)), 0]
    rings = [ratio for ratio in RINGS if ratio <= worst
             and (ratio in (1, 2, 10, 100) or worst < 100)]
    return Chart(
        name="radar", title="Strengths and weaknesses", polar=True,
        caption="The rim is the best of these, rings further in take so many times as much of it; "
             "certainty is how narrow the interval of the time is.",
        x=Axis(ticks=tuple(enumerate(names))),
        y=Axis(ends=(0.0, 1.05), ticks=tuple(
            (radius(ratio), "best" if ratio == 1 else f"x{ratio}") for ratio in rings)),
        curves=tuple(Curve(
            x=places, y=[radius(ring[place]) for place in places], name=one.label, width=2,
            **look_of(number), hover=[
                f"{one.label}<br>{names[place]}: " + (
                    "the best" if ring[place] == 1 else
                    f"{significant(ring[place])} times the best") for place in places])
            for number, (one, ring) in enumerate(zip(shown, ratios, strict=True))))


def choose_objectives(rows: Sequence[Row], wanted: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return two quantities to draw over each other; None where two are not known."""
    order = dict.fromkeys((*wanted, "time_us", "energy_uj", "ram_bytes", "flash_bytes"))
    if "error" in order:  # Accuracy against energy, or against time where that is not known.
        order = dict.fromkeys(("energy_uj", "error", *order))
    known = [name for name in order if any(getattr(row, name) is not None for row in rows)]
    return (known[0], known[1]) if len(known) > 1 else None


def chart_front(rivals: Sequence[Rival], objectives: tuple[str, str], limits: Limits | None = None,
                groups: Sequence[str] = ()) -> Chart:
    """Describe two quantities over each other with their intervals, and the Pareto front.

    Parameters
    ----------
    rivals
        A few look each as it does alone, many by their network and board, or library.
    objectives : (str, str)
        Across and up.
    limits
        Drawn as dashed lines.
    groups
        Boards, by which they look where several such charts share a legend; the rest look alike, as
        do boards without a row that may be best where there are many.
    """
    across, up = objectives
    known = [one for one in rivals
             if (getattr(one.row, across) or 0) > 0 and (getattr(one.row, up) or 0) > 0]
    marked = mark_front([one.row for one in known], objectives)
    known = [Rival(label=one.label, row=row) for one, row in zip(known, marked, strict=True)]
    shown = known if len(known) <= MOST_POINTS else sorted(
        known, key=lambda one: (not one.row.front, not one.row.met))[:MOST_POINTS]
    grouped: dict[str, list[Rival]] = {}
    many = len({one.row.board for one in shown}) > 1
    networks = {network_of(one.row) for one in known}
    apart = len(networks) > 1 and not groups and len(
        {(name_network(one.row), one.row.board) for one in shown}) <= MOST_GROUPS
    for one in shown:
        name = one.row.board if many or groups else one.row.runtime
        grouped.setdefault(
            one.label if len(shown) <= MOST_GROUPS and not groups else
            f"{name_network(one.row)} on {name}" if apart else name, []).append(one)
    named = [*groups] or [*grouped]
    if not groups and len(named) > MOST_GROUPS:  # more looks than differ
        named = [name for name, mine in grouped.items() if any(one.row.front for one in mine)]
    others = [one for name, mine in grouped.items() if name not in named for one in mine]
    fronts = [_list_corners([one.row for one in known if rivals_of(one.row, objectives) == kind],
                            across, up)
              for kind in dict.fromkeys(rivals_of(one.row, objectives) for one in known)]
    caption = (f"{sum(map(len, fronts))} of {len(known)} are on the front"
            + (" of their network" if len(networks) > 1 else "")
            + (", of chips or of boards" if len(fronts) > len(networks) else "")
            + ": nothing is better in both. Bars are 90 % intervals; filled marks may be best, "
            "hollow ones are beaten" + "".join(
                f"; {words}" for verdict, words in MARK_MEANINGS.items()
                if any(one.row.verdict == verdict for one in known)) + ".")
    if len(known) < len(rivals):
        caption += f" {say_undrawn([one.row for one in rivals], objectives)}."
    caption += f" {len(known) - len(shown)} hollow ones are not drawn." if len(
        known) > len(shown) else ""
    asked = dict((limits or Limits()).list_limits())
    return Chart(
        name=f"front-{across.split('_')[0]}-{up.split('_')[0]}", caption=caption,
        title=f"{FIGURES[across][0].capitalize()} against {FIGURES[up][0]}, with intervals",
        x=Axis(label=label_figure(across), log=True), y=Axis(label=label_figure(up), log=True),
        rules=tuple((axis, asked[name] * FIGURES[name][2])
                    for axis, name in (("x", across), ("y", up)) if name in asked),
        curves=(*(replace(curve, colour=GREY, mark=curve.mark if curve.mark in "x+" else "o")
                  for curve in _list_points("others", others, objectives, 0)),
                *(curve for number, name in enumerate(named)
                  for curve in _list_points(name, grouped.get(name, ()), objectives, number)),
                *(Curve(x=[x for x, _ in corners], y=[y for _, y in corners], dashes=":", width=1,
                        name="" if place else "front", steps=True)
                  for place, corners in enumerate(fronts))))


def say_undrawn(rows: Sequence[Row], objectives: Sequence[str]) -> str:
    """Say how many predicted rows lack a figure that is drawn, and which; "" for none."""
    lacking = [[WORDS[name] for name in objectives if getattr(row, name) is None] for row in rows
               if not row.failure]
    missing = dict.fromkeys(name for names in lacking for name in names)
    return f"{sum(map(bool, lacking))} without {' or '.join(missing)} not drawn" if missing else ""


def _list_points(name: str, mine: Sequence[Rival], objectives: tuple[str, str],
                 number: int) -> Iterator[Curve]:
    """Yield those that meet the limits, that do not, and that may, each marked, as one name."""
    for verdict in ("yes", *MARKS_OF):
        if same := [one for one in mine if one.row.verdict == verdict]:
            curve = _draw_points(name, same, objectives, number)
            yield curve if verdict == "yes" else replace(curve, mark=MARKS_OF[verdict], hollow=())
            name = ""


def _draw_points(name: str, mine: Sequence[Rival], objectives: tuple[str, str],
                 number: int) -> Curve:
    points: list[list[float]] = []
    ends: list[list[Ends | None]] = []
    for quantity in objectives:
        factor = FIGURES[quantity][2]
        bounds = [one.row.bounds_of(quantity) or (0.0, 0.0, 0.0) for one in mine]
        points.append([point * factor for _, point, _ in bounds])
        ends.append([(low * factor, high * factor) if high > low else None
                     for low, _, high in bounds])
    return Curve(
        x=points[0], y=points[1], x_ends=ends[0], y_ends=ends[1], name=name,
        **{**look_of(number), "dashes": ""}, sizes=(8.0,),
        hollow=[not one.row.front for one in mine], hover=[
            f"{one.label}<br>" + ", ".join(write_figure(quantity, getattr(one.row, quantity))
                                           for quantity in objectives) for one in mine])


def _list_corners(rows: Sequence[Row], across: str, up: str) -> list[Ends]:
    """Return the corners of the front, left to right."""
    points = sorted((getattr(row, across) * FIGURES[across][2], getattr(row, up) * FIGURES[up][2])
                    for row in rows)
    found: list[Ends] = []
    for x, y in points:
        if not found or y < found[-1][1]:
            found.append((x, y))
    return found


def chart_stages(labels: Sequence[str], shares: Mapping[str, Sequence[tuple[float, float, float]]],
                 texts: Callable[[str, int], str], caption: str = "") -> Chart:
    """Describe what each stage leaves of each figure.

    Parameters
    ----------
    shares : mapping of str to sequence of (low, share, high)
        By figure, per cent of the first stage's; without an interval all are one.
    texts
        Writes a figure of a stage, by its place.
    caption
        The same in a sentence.
    """
    places = list(range(len(labels)))
    return Chart(
        name="timeline", title="What each stage leaves", caption=caption,
        x=Axis(ends=(-0.3, len(labels) - 0.7), ticks=tuple(enumerate(labels))),
        y=Axis(label="per cent of the first"), curves=tuple(Curve(
            x=places, y=[share for _, share, _ in bounds], name=name, width=2, **look_of(number),
            y_ends=[(low, high) if high > low else None for low, _, high in bounds],
            hover=[f"{label}<br>{name} {texts(name, place)}"
                   for place, label in enumerate(labels)])
            for number, (name, bounds) in enumerate(shares.items())))
