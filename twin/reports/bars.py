"""Pictures made of bars, each described once.

`figures/bars.py` draws them for files, `page/bars.py` for pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hwmodels.frozen import frozen
from hwmodels.quantities import Ends, drop_none, format_share, format_size, format_time
from twin.pricing.accelerator.timeline import HOST, ROW_KINDS, Span
from twin.pricing.ledger import bill_time_us, percentages
from twin.pricing.locality import WORRYING, LayerLocality, Locality
from twin.pricing.prediction import Prediction
from twin.reports.palette import BLUE, CAUSE_STYLES, DARK_GREY, GREEN, GREY, INK, ORANGE, VERMILION

Look = tuple[str, str]
"""Colour and hatch."""

WHOLE, MORE, LESS = (INK, ""), (VERMILION, ""), (GREEN, "\\\\\\\\")
UNEXPLAINED = (DARK_GREY, "////")

Writer = Callable[[float], str]
"""Writes a quantity with its unit."""


@frozen
class Bar:
    """A bar of a row, in the chart's own unit.

    Parameters
    ----------
    row
        Place of its row, from the top or the left.
    length, start
        From where on, and how far; below zero it goes back.
    look : (str, str)
        Colour and hatch.
    series
        Its entry in the legend; "" for none.
    text, hover
        Beside it, and what a pointer shows on a page.
    inside
        Whether its text stands in it.
    ends
        Of the interval around its end.
    lane
        Which of the bars of its row that lie beside each other.
    """

    row: int
    length: float
    look: Look
    start: float = 0.0
    series: str = ""
    text: str = ""
    hover: str = ""
    inside: bool = False
    ends: Ends | None = None
    lane: int = 0

    @property
    def end(self) -> float:
        """The farther of its ends."""
        return max(self.start, self.start + self.length)


@frozen
class BarChart:
    """Bars in rows that share an axis.

    Parameters
    ----------
    rows
        Labels, downwards, or from left to right where bars stand upright.
    bars
        In any order; of one series they look alike.
    axis, across
        What lengths are, with the unit, and what rows are.
    scale
        Units of the bars in one of the axis.
    upright, stacked
        Whether bars stand; whether those of a row stand upon each other.
    lanes
        Bars of a row that lie beside each other.
    limit
        Where a dashed line is drawn.
    name, title, caption
        Of the page: its own name, what it shows, the same in a sentence.
    """

    rows: tuple[str, ...]
    bars: tuple[Bar, ...]
    axis: str
    across: str = ""
    scale: float = 1.0
    upright: bool = False
    stacked: bool = False
    lanes: int = 1
    limit: float | None = None
    name: str = ""
    title: str = ""
    caption: str = ""

    @property
    def longest(self) -> float:
        """The farthest end of all bars and their intervals."""
        return max((max(bar.end, *(bar.ends or ())) if bar.ends else bar.end
                    for bar in self.bars), default=0.0) or 1.0


def list_bars(lengths: Iterable[float], look: Look, write: Callable[[int, float], str],
              series: str = "") -> tuple[Bar, ...]:
    """Return a bar for each row, all of one look; `write` says of a row's place its hover text."""
    return tuple(Bar(row=row, length=length, look=look, series=series, hover=write(row, length))
                 for row, length in enumerate(lengths))


def chain_steps(start: float, moves: Iterable[tuple[str, float]], end: float, *,
                ends: tuple[str, str], write: Writer,
                look: Callable[[str, float], Look] | None = None,
                looks: tuple[Look, Look] = (WHOLE, WHOLE)) -> tuple[tuple[str, ...],
                                                                    tuple[Bar, ...]]:
    """Return rows and bars of the way from one total to another, each from where the last ended.

    Parameters
    ----------
    moves : iterable of (str, float)
        What moved, and how far.
    ends : (str, str)
        Names of the totals.
    write
        Writes a total; moves get a sign.
    look, looks
        Of a move, by its name and length, and of the totals.
    """
    look = look or (lambda name, move: MORE if move > 0 else LESS)
    rows = [ends[0]]
    bars = [Bar(row=0, length=start, look=looks[0], text=write(start))]
    level = start
    for name, move in moves:
        sign = "+" if move >= 0 else "-"
        bars.append(Bar(row=len(rows), start=level, length=move, look=look(name, move),
                        text=f"{sign}{write(abs(move))}"))
        rows.append(name)
        level += move
    bars.append(Bar(row=len(rows), length=end, look=looks[1], text=write(end)))
    return (*rows, ends[1]), tuple(bars)


def chart_bill(what: str, amounts: Mapping[str, float], write: Writer, total: str = "") -> BarChart:
    """Describe a bill as a waterfall: the causes, largest first, then the total."""
    causes = sorted((cause for cause in amounts if amounts[cause] > 0), key=lambda c: -amounts[c])
    whole = math.fsum(amounts[cause] for cause in causes)
    shares = percentages([amounts[cause] for cause in causes], decimals=1)
    starts = [math.fsum(amounts[one] for one in causes[:place]) for place in range(len(causes))]
    bars = [Bar(row=row, start=start, length=amounts[cause], look=CAUSE_STYLES[cause],
                text=f"{share:.1f} %", hover=f"{cause}<br>{write(amounts[cause])}, {share:.1f} %")
            for row, (cause, start, share) in enumerate(zip(causes, starts, shares, strict=True))]
    bars.append(Bar(row=len(causes), length=whole, look=WHOLE, text=total or write(whole),
                    inside=True))
    largest = f"{causes[0]} is {shares[0]:.1f} %" if causes else "nothing is on it"
    scale, unit = _find_unit(what, whole)
    return BarChart(
        rows=(*causes, "total"), bars=tuple(bars), axis=f"{what}, {unit}", scale=scale,
        name=f"waterfall-{what}", title=f"Bill for {what}, cause by cause",
        caption=f"{write(whole)} in {len(causes)} causes; {largest}. Each bar begins where the "
             "last one ended.")


def stack_causes(amounts: Sequence[Mapping[str, float]], causes: Iterable[str],
                 hover: Callable[[int, str, float], str]) -> tuple[Bar, ...]:
    """Return bars of causes upon each other, a row for each bill; causes of nothing are omitted.

    Parameters
    ----------
    causes
        In the order they are stacked.
    hover
        Returns the amount of a row's cause.
    """
    tops = [0.0] * len(amounts)
    bars = []
    for cause in causes:
        if any(part.get(cause) for part in amounts):
            for row, part in enumerate(amounts):
                amount = part.get(cause, 0.0)
                bars.append(Bar(row=row, start=tops[row], length=amount, series=cause,
                                look=CAUSE_STYLES[cause], hover=hover(row, cause, amount)))
                tops[row] += amount
    return tuple(bars)


def chart_tasks(prediction: Prediction) -> BarChart:
    """Describe the bill of each task, host and accelerator as time."""
    tasks = prediction.tasks
    longest = max(tasks, key=lambda task: task.time_us)
    amounts = [{cause: bill_time_us(prediction, task.bill, cause)
                for cause in prediction.bill.causes()} for task in tasks]
    return BarChart(
        rows=tuple(str(task.number) for task in tasks), upright=True,
        across=prediction.compiler.task_name,
        axis="time, ms", scale=1e3, stacked=True, name=f"{prediction.compiler.task_name}-bills",
        title=f"Bill of each {prediction.compiler.task_name}",
        caption=f"{longest.name} is the longest: {format_time(longest.time_us)}.",
        bars=stack_causes(amounts, prediction.bill.causes(), lambda row, cause, amount: (
            f"{tasks[row].name}<br>{cause} {format_time(amount)}")))


def list_rows(spans: Sequence[Span]) -> list[str]:
    """Return what is busy: host, then units, then engines."""
    kinds = {span.row: span.kind for span in spans}
    return sorted(kinds, key=lambda row: (ROW_KINDS.index(kinds[row]), row))


def chart_spans(prediction: Prediction, spans: Sequence[Span], looks: Sequence[Look]) -> BarChart:
    """Describe when host, units and stream engines are busy; engines look as their pool does."""
    rows = list_rows(spans)
    pools = list(dict.fromkeys(span.pool for span in spans if span.pool))

    def describe(span: Span) -> tuple[str, Look]:
        if span.pool:
            return f"engine, {span.pool}", looks[pools.index(span.pool) % len(looks)]
        return ("host", (DARK_GREY, "")) if span.row == HOST else ("unit", (GREY, "."))

    return BarChart(
        rows=tuple(rows), axis="time, ms", scale=1e3, name="timeline", title="Who is busy when",
        caption=f"{len(prediction.tasks)} {prediction.compiler.task_name}s in "
             f"{format_time(prediction.time_us)}; {prediction.compiler.channel_name}s by the pool "
             "they are bound to. Drag to look closer, double click to go back.",
        bars=tuple(sorted((Bar(
            row=rows.index(span.row), start=span.start_us, length=span.end_us - span.start_us,
            series=(description := describe(span))[0], look=description[1],
            hover=f"{span.label}<br>{format_time(span.start_us)} to {format_time(span.end_us)}")
            for span in spans), key=lambda bar: bar.series)))


def chart_working_sets(locality: Locality) -> BarChart:
    """Describe the bytes of the lines each layer touches beside what the caches hold."""
    capacity = locality.capacity_bytes
    touched = [layer.working_set_bytes for layer in locality.layers]
    low = min([capacity, *(size for size in touched if size)]) / 2
    caches = ", ".join(f"{cache.name} {format_size(cache.size_bytes)}" for cache in locality.caches)
    return _chart_layers(
        locality, [size or None for size in touched], (BLUE, ""), capacity, start=low,
        series=("no more than the cache holds", "more than the cache holds"),
        texts=[format_size(size) for size in touched], tell=lambda layer: (
            f"{format_size(layer.working_set_bytes)} touched"),
        axis="lines touched, KiB", scale=1024, name="working-set",
        title="Working set of each layer against the cache",
        caption=f"{sum(size > capacity for size in touched)} of {sum(map(bool, touched))} layers "
             f"touch more than the {format_size(capacity)} cached ({caches}); those are hatched.")


def chart_miss_rates(locality: Locality) -> BarChart:
    """Describe misses per line looked up, layer by layer."""
    rates = [layer.miss_rate for layer in locality.layers]
    known = drop_none(rates)
    return _chart_layers(
        locality, [None if rate is None else 100 * rate for rate in rates], (GREEN, ""),
        100 * WORRYING, series=("up to 10 %", "above 10 %: bound by the cache"),
        texts=[f"{format_share(layer.misses, layer.accesses)}   {layer.misses:,} misses"
               for layer in locality.layers], tell=lambda layer: (
            f"{layer.misses:,} of {layer.accesses:,}: "
            f"{format_share(layer.misses, layer.accesses)}"),
        axis="misses per line looked up, %", name="miss-rates", title="Miss rate of each layer",
        caption=f"{format_share(locality.misses, locality.accesses)} of lines looked up are "
             f"missed; {sum(rate > WORRYING for rate in known)} of {len(known)} layers miss more "
             "than 10 % and are hatched.")


def _chart_layers(locality: Locality, values: Sequence[float | None], within: Look, limit: float, *,
                  series: tuple[str, str], texts: Sequence[str],
                  tell: Callable[[LayerLocality], str], start: float = 0.0,
                  **chart: Any) -> BarChart:
    """Describe a bar for each layer, set apart beyond a limit; None is not cached."""
    bars = []
    for row, (layer, value, text) in enumerate(zip(locality.layers, values, texts, strict=True)):
        beyond = value is not None and value > limit
        bars.append(Bar(
            row=row, start=start, length=0.0 if value is None else value - start,
            look=(ORANGE, "////") if beyond else within, series=series[beyond],
            text="not cached" if value is None else text,
            hover=f"{layer.index} {layer.name or layer.op} ({layer.op})<br>{tell(layer)}"))
    return BarChart(rows=tuple(f"{layer.op}  {layer.index}" for layer in locality.layers),
                    bars=tuple(bars), limit=limit, **chart)


def _find_unit(what: str, whole: float) -> tuple[float, str]:
    """Return how many microseconds or microjoules the unit of an axis has, and its name."""
    base = "s" if what == "time" else "J"
    return next(((factor, prefix + base) for factor, prefix in (
        (1e6, ""), (1e3, "m"), (1.0, "u")) if whole >= factor), (1e-3, "n" + base))
