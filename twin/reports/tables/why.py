"""The answer of `twin why`: causes by probability, what each costs and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwmodels.quantities import format_time, significant
from twin.attribution.diagnosis.faults import UNIT
from twin.attribution.diagnosis.outlook import DATA
from twin.attribution.diagnosis.why import EXPECTED, Why
from twin.attribution.diagnosis.why_words import Row
from twin.reports.tables.parts import Content, new_pairs, spaced

MOST_ROWS, MOST_NAMED = 4, 5
"""Causes with a line each to change; further ones that are named."""

LEAST = 0.02
"""Of a cause, the least probability that is worth a word."""

FURTHER = {"cycles": "--cycles N", "network": "--measured ad=TIME"}
"""Numbers that say more, by their names in `Why.also`."""

FASTER = "faster_library"

FAR = 2.0
"""Times beyond the interval what was measured is not as expected, even where nothing else is left
to explain it; and what is to explain, from which a predicted cost is too large (assumed)."""

OFF = 1.1
"""By how much another release of the library differs to be worth one."""


Labelled = Iterator[tuple[str, str]]
"""Labels, and what they stand for."""


def why_report(why: Why) -> Content:
    """Return what is expected, the likeliest causes, and what would tell them apart."""
    return spaced([new_pairs(_head(why)), new_pairs(_causes(why)), new_pairs(_next(why))])


def _head(why: Why) -> Labelled:
    gap = why.measured_us - why.expected_us
    explain = f", {format_time(gap)} to explain" if gap > 0 else ""
    others, ratio = _list_others(why), significant(why.measured_us / why.expected_us)
    version = why.runtime.partition("@")[2]
    ratio = (f"{ratio} x expected" if ratio != "1" else "as expected") + f" of {version}" * bool(
        others)
    yield "measured", (f"{format_time(why.measured_us)}, {ratio}{explain}: {why.model} on "
                       f"{why.board}")
    yield "expected", (f"{format_time(why.expected_us)}, 90 % within {format_time(why.low_us)} to "
                       f"{format_time(why.high_us)}, {why.runtime}"
                       + " or another release" * bool(others)
                       + (f"; wider than predict's: {why.wider}" if why.wider else ""))
    yield from why.also
    if others:
        times = ", ".join(f"{name} {format_time(time)}" for name, time in others.items())
        yield "or", f"{times}: say which release runs (--runtime)"


def _list_others(why: Why) -> dict[str, float]:
    """Return the releases of another expected time, and that in us."""
    return {name: time for name, time, _ in why.releases
            if not 1 / OFF < time / why.expected_us < OFF}


def _causes(why: Why) -> Labelled:
    rows: list[Row | None] = [row for row in _shown(why)[:MOST_ROWS]]
    gap = why.measured_us - why.expected_us
    place = sum(row is not None and row.probability > why.as_expected for row in rows)
    if why.as_expected >= LEAST:
        rows.insert(place, None)
    for row in rows:
        if row is None:
            highest = max(chance for *_, chance in why.releases)
            likely = [name for name, _, chance in why.releases if chance >= highest / 2]
            yield f"{100 * why.as_expected:3.0f} %", EXPECTED + (
                ", as nothing else is left" if not
                why.low_us / FAR < why.measured_us < FAR * why.high_us else
                f", if {' or '.join(likely)} runs" if {*likely} <= {*_list_others(why)} else "")
            continue
        takes = (f"{format_time(why.expected_us + row.explains_us)} expected"
                 if row.cause == FASTER else
                 _sign(row.explains_us) + _say_more(row.explains_us, gap))
        amount = f" ({row.detail}): {takes}" if row.detail else ""
        yield f"{100 * row.probability:3.0f} %", f"{row.says}{amount}"
        yield "", row.change


def _say_more(added_us: float, gap_us: float) -> str:
    """Say what is to explain, where far more is predicted."""
    return f" predicted, {format_time(gap_us)} to explain" * (0 < FAR * gap_us < added_us)


def _sign(added_us: float) -> str:
    return f"{'+' if added_us >= 0 else '-'}{format_time(abs(added_us))}"


def _say_found(given: Mapping[str, str], answered: int) -> Labelled:
    """Yield how often planted builds had their cause first, and with which numbers more of them.

    Parameters
    ----------
    answered
        As of `Why`.
    """
    numbers = [name for name in FURTHER if name in given]
    own = "both" if len(numbers) == len(FURTHER) else "".join(numbers) or "one"
    own += f" answered {min(answered, 3)}" * bool(answered)
    if own not in DATA["found"]:
        return
    found = DATA["found"][own]
    yield "in general", (f"of all planted builds with such numbers the cause was first in "
                         f"{found[0]} %, among three in {found[1]} %")
    missing = [words for name, words in FURTHER.items() if name not in given]
    missing += ["an answer to `ask`"] * (not answered)
    first, three = DATA["found"]["both answered 1"]
    if missing and found[0] < first:
        yield "surer", f"with {', '.join(missing)}: first in {first} %, among three in {three} %"


def _shown(why: Why) -> list[Row]:
    """Return the causes worth a word: of a time too short, none that adds to it but if stated."""
    is_short = why.measured_us < why.low_us
    return [row for row in why.rows if row.probability >= LEAST
            and not (is_short and row.explains_us > 0 and row.probability < 1 - LEAST)]


def _next(why: Why) -> Labelled:
    others = [f"{row.cause} {100 * row.probability:.0f} %" for row in _shown(why)[MOST_ROWS:]]
    if others:
        yield "or", ", ".join(others[:MOST_NAMED])
    named = {row.cause for row in _shown(why)}
    pair = next((pair for pair in why.pairs if named.difference({UNIT}).issuperset(pair[0])), None)
    if pair and why.two_at_once >= LEAST:
        (one, two), chance, explains_us = pair
        yield "two at once", (f"{100 * why.two_at_once:.0f} %, likeliest {one} and {two}"
                              + f" ({100 * chance:.0f} %)" * (chance >= 0.01)
                              + f": {_sign(explains_us)} together"
                              + _say_more(explains_us, why.measured_us - why.expected_us))
    if why.asked in named:
        question = next(row.question for row in why.rows if row.cause == why.asked)
        yield "ask", f"{question} (yes: --is {why.asked}, no: --not {why.asked})"
    if why.indistinct:
        yield "no effect", f"{', '.join(why.indistinct)} (none or below 10 %)"
    if not why.pairs:
        return  # By the counters of an accelerator.
    within = 100 * (why.high_us / min(time for _, time, _ in why.releases) - 1)
    yield "cannot see", (f"causes that add less than {within:.0f} % lie within the interval: wait "
                         "states, ticks, a busy bus, -O1")
    if why.verdict not in (EXPECTED, UNIT, FASTER):  # Of no planted build.
        yield from _say_found(dict(why.also), why.answered)
    yield "times of layers", "say more: twin import, then twin diagnose"
