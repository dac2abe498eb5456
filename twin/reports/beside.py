"""Pictures of two sides beside each other: bars in pairs, and the way from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hwmodels.frozen import frozen
from hwmodels.quantities import NOT_KNOWN, Ends, format_energy, format_time, significant
from twin.attribution.difference import Account, Row
from twin.attribution.published import Comparison
from twin.reports.bars import UNEXPLAINED, Bar, BarChart, Look, chain_steps
from twin.reports.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION

KIND_LOOKS: dict[str, Look] = {
    "predicted": (BLUE, ""), "simulated": (PURPLE, "xxxx"), "measured": (VERMILION, "////"),
    "published": (GREEN, "....")}
"""Colour and hatch by what a figure is."""

STOOD_IN = "predicted with another version of the runtime"
LONGEST_LABEL = 44
MOST, MOST_NAMED = 0.9, 6
"""Share of a gap that parts named in a sentence make together, and how many they may be."""

WORDS = {"ns": format_time, "nJ": format_energy}
"""Writers of units that are a thousandth of what they take."""


@frozen
class Pair:
    """Two bars: what was predicted, and what is beside it, in the axis's unit."""

    label: str
    first: float | None
    second: float | None
    stood_in: bool = False
    comparable: bool = True
    ends: Ends | None = None

    @property
    def ratio(self) -> float | None:
        """First over second; None when either is not known, or they are not of the same."""
        if not self.comparable or self.first is None or not self.second:
            return None
        return self.first / self.second


def name_account(account: Account, unit: str = "") -> str:
    """Return the quantity of an account with its unit, or that of an axis."""
    unit = unit or account.unit
    return unit if account.quantity == unit else f"{account.quantity}, {unit}"


def write_amount(amount: int, unit: str, sign: str = "") -> str:
    """Write nanoseconds and nanojoules with the unit that suits them, other amounts without."""
    return f"{amount:{sign},}" if unit not in WORDS else (
        f"{'-' if amount < 0 else sign}{WORDS[unit](abs(amount) / 1e3)}")


def name_unit(unit: str) -> str:
    """Return the unit that `write_amount` does not write."""
    return "" if unit in WORDS else unit


def say_reason(row: Row) -> str:
    """Name the largest term of a gap, or that the part came or went; "" if no cause is counted."""
    if row.mark or not row.moved or not row.terms:
        return row.mark
    label, gap = row.terms[0]
    return f"{label} {write_amount(gap, row.unit, '+')}"


def say_parts(account: Account, part: str) -> str:
    """Name the few parts that make most of a gap, and their share of it; "" if they are many."""
    gap, found = account.total.gap, list[Row]()
    for row in sorted(account.parts, key=lambda row: -abs(row.gap)):
        if row.gap * gap > 0 and abs(sum(one.gap for one in found)) < MOST * abs(gap):
            found.append(row)
    share = abs(sum(one.gap for one in found) / gap) if gap else 0.0
    if share < MOST or len(found) > MOST_NAMED or 2 * len(found) > len(account.parts):
        return ""
    numbers = map(str, sorted(one.index or 0 for one in found))
    return (f"{part}{'s' * (len(found) > 1)} {', '.join(numbers)} make{'s' * (len(found) == 1)} "
            f"{100 * share:.0f} % of it")


def look_of(kind: str) -> Look:
    """Return how a figure of a kind looks, "measured" or "measured after"."""
    word, _, when = kind.partition(" ")
    return (GREY, "\\\\\\\\") if when == "before" else KIND_LOOKS.get(word, (GREY, ""))


def chart_pairs(pairs: Sequence[Pair], kinds: tuple[str, str], axis: str, **chart: Any) -> BarChart:
    """Describe a pair of bars for each part: before and after, or what is beside and predicted."""
    sides = list(zip(kinds, ("first", "second"), strict=True))
    if not kinds[0].endswith("before"):
        sides.reverse()
    bars = []
    for row, pair in enumerate(pairs):
        for lane, (kind, side) in enumerate(sides):
            value = getattr(pair, side)
            text = NOT_KNOWN if value is None else significant(value)
            ratio = f"   ratio {pair.ratio:.2f}" if lane and pair.ratio is not None else ""
            stood_in = bool(lane) and pair.stood_in
            bars.append(Bar(
                row=row, lane=lane, length=value or 0.0, text=text + ratio,
                ends=pair.ends if lane else None, series=STOOD_IN if stood_in else kind,
                look=(BLUE, "////") if stood_in else look_of(kind),
                hover=f"{pair.label}<br>{kind} {text}"))
    return BarChart(rows=tuple(pair.label for pair in pairs), bars=tuple(bars), axis=axis, lanes=2,
                    **chart)


def pair_rows(rows: Iterable[Row], label: Callable[[Row], str], scale: float = 1.0) -> list[Pair]:
    """Return a pair for each part, in units of so many of the account's."""
    return [Pair(label=label(row), first=row.first / scale, second=row.second / scale)
            for row in rows]


def pair_latencies(comparisons: Iterable[Comparison], label: Callable[[Comparison], str],
                   ) -> list[Pair]:
    """Return milliseconds predicted, with their interval, and published."""
    return [Pair(label=label(one), first=one.predicted_ms, second=one.row.latency_ms,
                 stood_in=one.stood_in, ends=_ends_ms(one)) for one in comparisons]


def pair_energies(comparisons: Iterable[Comparison], label: Callable[[Comparison], str],
                  ) -> list[Pair]:
    """Return millijoules predicted and published."""
    def thousandth(value: float | None) -> float | None:
        return None if value is None else value / 1e3

    return [Pair(label=label(one), first=thousandth(one.predicted_uj),
                 second=thousandth(one.row.energy_uj), stood_in=one.stood_in,
                 comparable=one.energy_ratio is not None) for one in comparisons]


def _ends_ms(one: Comparison) -> Ends | None:
    held = None if one.prediction is None else one.prediction.time_interval
    return None if held is None else (held.low / 1e3, held.high / 1e3)


def chart_gap(account: Account, ends: tuple[str, str], *, most: int = 12, scale: float = 1.0,
              unit: str = "", **chart: Any) -> BarChart:
    """Describe the way from one total of an account to the other, cause by cause.

    Parameters
    ----------
    account
        Of two sides.
    ends : (str, str)
        What the totals are called.
    most
        Causes with a step each, the largest; the others share one.
    scale, unit
        Units of the account in one of the axis, and that of the axis.
    chart
        Name, title and sentence of the page.
    """
    total, unit = account.total, unit or account.unit
    steps: list[tuple[str, float]] = [
        (line.label if len(line.label) <= LONGEST_LABEL else
         f"{line.label[:LONGEST_LABEL - 3]}...", line.gap or 0) for line in total.moved[:most]]
    rest = total.gap - total.unexplained - sum(gap for _, gap in steps)
    steps += [(name, gap) for name, gap in (("other causes", rest),
                                            ("unexplained", total.unexplained)) if gap]
    rows, bars = chain_steps(
        total.first, steps, total.second, ends=ends, looks=(look_of(ends[0]), look_of(ends[1])),
        look=lambda name, gap: UNEXPLAINED if name == "unexplained" else
        (ORANGE, "////") if gap > 0 else (BLUE, "\\\\\\\\"),
        write=lambda one: f"{one / scale:,.3f}" if scale > 1 else f"{one:,.0f}")
    return BarChart(
        rows=rows, scale=scale, bars=tuple(
            replace(bar, hover=f"{rows[bar.row]}<br>{bar.text} {unit}") for bar in bars),
        axis=name_account(account, unit), **chart)
