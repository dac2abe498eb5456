"""Hardware ranked for networks: scores, winners, and what would help where limits are not met."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hwmodels.quantities import (
    format_power,
    format_size,
    format_time,
    list_by_key,
    list_first,
    significant,
)
from twin.pricing.variables import CAUSE
from twin.reports.columns import Column, number
from twin.reports.tables.advice import say_best
from twin.reports.tables.limits import format_chance
from twin.reports.tables.parts import Console, Content, Group, Text
from twin.reports.tables.studies import (
    draw_columns,
    fit_widths,
    group_alike,
    head_grade,
    head_placement,
    list_figures,
    mark_row,
    say_spread,
    write_legend,
)
from twin.reports.tables.study_sentences import (
    LISTED,
    describe_limits,
    describe_row,
    group_by,
    say_idle,
    say_others,
    say_prices,
)
from twin.studies.limits import Limits
from twin.studies.penalties import NEAR, draw_least, is_far, list_ratios
from twin.studies.rows import SURE, WORDS, Row
from twin.studies.selection import Choice, Selection, Winner

MISSES = 6
"""Most boards that miss limits, each with its change."""


def selection_report(selection: Selection, console: Console) -> Content:
    """Return the ranking of each network, its winners, and the infeasible boards with reasons."""
    parts: list[Content] = []
    for mine in selection.networks.values():
        parts += [*_network_parts(selection, mine, console), Text("")]
    parts += [*(Text(line, "dim") for line in (
        *list_notes(selection),
        *write_legend(selection.table, [one.row for one in selection.feasible])))]
    parts += [Text(""), *(Text(line) for line in say_picks(selection))]
    return Group(*parts)


def say_picks(selection: Selection) -> tuple[str, ...]:
    """Say in a sentence which board to take for each network, and which one for all of them."""
    models = selection.networks
    return (*(say_pick(selection, model) for model in models),
            *([_say_together(selection)] if len(models) > 1 else []))


def _say_together(selection: Selection) -> str:
    """Say which single board does all networks best: by the sum of its places among them."""
    places = list_by_key(
        (row.board, (place, row)) for mine in selection.networks.values()
        for place, row in enumerate((one.row for one in mine if one.row.met), 1))
    networks = len(selection.networks)
    able = [each for each in places.values() if len(each) == networks]
    together = "both" if networks == 2 else f"all {networks}"
    if not able:
        does = "meets the limits of" if selection.limits else "runs"
        return f"{together}: no board {does} {together}"
    best = min(able, key=lambda each: sum(place for place, _ in each))
    return (f"{together}: pick {best[0][1].board}, of {len(able)} that do the one whose places add "
            "up to least; " + ", ".join(
                f"{row.network} {format_time(row.time_us)} with {row.runtime} (place {place})"
                for place, row in best))


def say_pick(selection: Selection, model: str) -> str:
    """Say in a sentence which board to take, which is next, and what would decide."""
    mine = selection.networks[model]
    network = mine[0].row.network
    met, may = ([one for one in mine if one.row.verdict == verdict] for verdict in ("yes", "may"))
    if all(one.row.failure for one in mine):
        return f"{network}: no board runs it"
    if not met:
        return f"{network}: {_say_nearest(mine, changed=not may)}"
    pick, *others = met
    quantity = selection.by[0] if selection.by else "mean_mw" if pick.row.sleep else "energy_uj"
    headline = f"{network}: " + (
        "pick" if pick.row.sure else f"no board meets with {SURE:.0%} or more; best is"
        ) + f" {describe_row(pick.row)}"
    if pick.row.price_usd is not None:
        headline += f", {pick.row.price_usd:g} USD"
    headline += f"; runner-up {describe_row(others[0].row)}" if others else "; no other board meets"
    headline += _say_changed(pick, mine, quantity)
    return f"{headline}; {_say_undecided(met, may, quantity, selection.by)}"


def _say_nearest(mine: Sequence[Choice], *, changed: bool) -> str:
    """Say which board comes nearest where none meets, a change of it counted where asked for."""
    by_change = min((
        (not best.row.sure, best.rank, -(best.row.probability or 0.0), place)
        for place, one in enumerate(mine) if one.advice and (best := one.advice.best)),
        default=None) if changed else None
    nearest = mine[by_change[-1] if by_change else 0]
    headline = ("no board meets as it is; with a change" if by_change else
                "no board surely meets; nearest is")
    return f"{headline} {nearest.row.board}: {explain_miss(nearest)}"


def _say_undecided(met: Sequence[Choice], may: Sequence[Choice], quantity: str,
                   by: Sequence[str]) -> str:
    """Say which figure that is not known, or not well, would decide for another board."""
    pick, *others = met
    doubts = [f"{WORDS[name]} of {one.row.board}" for one in may for name in one.row.unknown]
    doubts += [f"{WORDS[quantity]} of {one.row.board}" for one in met
               if getattr(one.row, quantity) is None]
    doubts += [f"price of {one.row.board}" for one in others if not by
               and (points := _price_points(one)) and pick.score - one.score < points]
    if doubts:
        return f"not known and would decide: {list_first(doubts, 3)}"
    chances = draw_least([pick.row, *(
        one.row for one in others[:1]
        if one.row.compared_as(quantity) == pick.row.compared_as(quantity))], quantity)
    if chances is not None and chances[0] <= 1 - SURE:
        return (f"{others[0].row.board} has less {WORDS[quantity]} with "
                f"{format_chance(float(chances[1]))}; other points of its score put it second")
    if chances is not None and chances[0] < SURE:
        return (f"a measurement of either would decide: {pick.row.board} has less "
                f"{WORDS[quantity]} with {format_chance(float(chances[0]))}")
    if quantity == "price_usd" and "assumed" in pick.row.price_of:
        return "prices are assumed: quotes would decide (--price BOARD=USD)"
    return "all figures that decide are known" + (
        " but its price, which counts as the most expensive" * bool(_price_points(pick)))


def _price_points(choice: Choice) -> float:
    """Return the points a choice loses for a price that is not known."""
    return 0.0 if choice.row.price_usd is not None else math.fsum(
        one.points for one in choice.penalties if one.name == WORDS["price_usd"])


def _say_changed(pick: Choice, choices: Sequence[Choice], quantity: str) -> str:
    """Say which board would have less of a quantity with a change that meets the limits."""
    kind, least = pick.row.compared_as(quantity), getattr(pick.row, quantity)
    found = [(value, one.row.board, best.words) for one in choices
             if one.advice is not None and (best := one.advice.best) is not None
             and best.row.sure and best.row.compared_as(quantity) == kind
             and (value := getattr(best.row, quantity)) is not None]
    value, board, words = min(found, default=(None, "", ""))
    return f"; lower {WORDS[quantity]} with a change: {board}, {words}" if (
        value is not None and least is not None and value < least) else ""


def _network_parts(selection: Selection, mine: Sequence[Choice], console: Console) -> list[Content]:
    """Return the parts of one network."""
    feasible = [one for one in mine if one.row.met]
    parts: list[Content] = [Text(
        f"{mine[0].row.network}: {say_how_many(mine, selection.limits)}", "bold")]
    parts += [Text(line) for line in _say_winners(selection, mine)]
    if feasible:
        parts += [Text(""), _table(feasible, selection, console), *(
            Text(f"{one.row.board}: with {one.setting}") for one in feasible if one.setting)]
    far = [one for one in mine if is_far(one.row, selection.limits)]
    missing = sorted((one for one in mine if not one.row.met and one not in far),
                     key=lambda one: one.row.verdict)
    if missing or far:
        parts.append(Text(""))
    alike = group_alike(missing, lambda one: one.row.reason or (
        one.row.unknown if one.row.verdict == "may" else one.row.board))
    parts += [Text(f"{'may' if same[0].row.verdict == 'may' else 'not'} "
                   f"{list_first((one.row.board for one in same), LISTED)} "
                   f"(score {same[0].score:.0f}): {explain_miss(same[0])}")
              for same in alike[:MISSES]]
    if alike[MISSES:]:
        parts.append(Text("not " + list_first(
            (one.row.board for same in alike[MISSES:] for one in same), LISTED)
            + ": further from the limits, or infeasible; --json and a page (--report) say why"))
    if far:
        parts.append(Text(f"not, {NEAR:g} times or more above a limit, so that no change was tried "
                          "(twin advise MODEL -b BOARD tries): " + list_first((
                              f"{one.row.board} ({WORDS[name]} {significant(ratio)} times)"
                              for one in far for name, ratio in list_ratios(
                                  one.row, selection.limits)[:1]), LISTED)))
    return parts


def say_how_many(choices: Sequence[Choice], limits: Limits) -> str:
    """Say how many boards meet limits as they are set up, how many of them surely, and the rest."""
    rows = [one.row for one in choices]
    doubtful = [row.probability or 0.0 for row in rows if row.met and not row.sure]
    one, met = len(rows) == 1, sum(row.met for row in rows)
    headline = f"{met - len(doubtful)} of {len(rows)} board{'s' * (not one)} "
    if not limits:
        return f"{headline}run{'s' * one} it"
    ends = dict.fromkeys(format_chance(end) for end in (min(doubtful), max(doubtful))
                         ) if doubtful else ()
    return (f"{headline}meet{'s' * one} {describe_limits(limits)}"
            + f" with {SURE:.0%} or more; {len(doubtful)} with {' to '.join(ends)}" * bool(doubtful)
            + say_others(rows) + " as set up" * any(row.verdict == "no" for row in rows))


def explain_miss(choice: Choice) -> str:
    """Say why a board does not do, and what would help."""
    row = choice.row
    if row.verdict == "may":
        return f"{choice.reason}; meets the limits if that does"
    found = f"{row.failure or row.runtime}: {choice.reason}"
    return found if choice.advice is None else f"{found}; {say_best(choice.advice, costs=False)}"


FIGURES: dict[str, Callable[[Row], str]] = {
    "ram_bytes": lambda row: format_size(row.ram_bytes),
    "price_usd": lambda row: f"{row.price_usd:g} USD",
    "mean_mw": lambda row: format_power(row.mean_mw)}
"""What a metric is won with, where the words of a row do not hold it."""


def _say_winners(selection: Selection, mine: Sequence[Choice]) -> list[str]:
    """Return a line for each row that wins a metric, with the probability that it does."""
    def say(won: Winner) -> str:
        figure = FIGURES[won.quantity](won.row) if won.quantity in FIGURES else ""
        chance = "" if won.probability is None else f"{format_chance(won.probability)} likely"
        about = ", ".join(filter(None, (figure, chance)))
        return won.words + f" ({about})" * bool(about)

    def name(won: Winner) -> str:
        shown, less = describe_row(won.row), selection.find_less(won.row, won.quantity)
        return shown if less is None else (
            f"in the table {shown}; less with a library that is not in it: {describe_row(less)}"
            + (f", {FIGURES[won.quantity](less)}" if won.quantity in FIGURES else ""))

    wins = group_by((name(won), say(won)) for won in selection.list_winners(mine[0].row.model))
    return [f"{', '.join(metrics)}: {text}" for text, metrics in wins.items()]


def _table(choices: Sequence[Choice], selection: Selection, console: Console) -> Content:
    scores = {id(one.row): one.score for one in choices}
    rows = [one.row for one in choices]

    def columns(wide: bool) -> list[Column]:
        return [Column("", mark_row), number("score", lambda row: scores[id(row)], "{:.0f}"),
                Column("board"), Column("runtime"),
                number("MHz", "clock_hz", lambda hertz: f"{(hertz or 0) / 1e6:g}"),
                *head_grade(rows), *head_placement(rows),
                *list_figures(rows, selection.table, wide=wide),
                *([Column("mostly", say_mostly)] if any(map(say_mostly, rows)) else [])]

    chosen, left_out = fit_widths(columns, rows, console, selection.limits)
    spread = [Text(note, "dim") for note in say_spread([str(one.header) for one in chosen],
                                                             rows)]
    return Group(
        draw_columns(chosen, rows), *spread,
        Text(f"not shown at {console.width} columns: {', '.join(left_out)}; -o or --json has them",
             "dim") if left_out else None,
        Text("mostly " + "; ".join(f"{name}: {list_first(boards, 2)}" for name, boards in (
            group_by((say_mostly(row).partition(" ")[0], row.board) for row in rows)).items()))
        if "mostly" in left_out else None)


def say_mostly(row: Row) -> str:
    """Return the largest cause of a row's time and its share of it; "" where none is known."""
    causes = [(value, name.partition(".")[2]) for name, value in row.variables
              if name.startswith(f"{CAUSE}.")]
    value, name = max(causes, default=(0.0, ""))
    return f"{name} {value / row.time_us:.0%}" if name and row.time_us else ""


def list_notes(selection: Selection) -> list[str]:
    """Say what a score is, how many configurations stand behind it, and which price is unknown."""
    able = [one.row for one in selection.choices if one.row.verdict != "no"]
    unknown = dict.fromkeys(row.board for row in able if row.price_usd is None)
    ranked = ", then ".join(WORDS[name] for name in selection.by)
    costs = group_by((one.advice.best.costs, one.row.board) for one in selection.choices
                     if one.advice and one.advice.best)
    return [*([f"boards that meet the limits are ordered by {ranked}, not by score"]
              if ranked else []),
            f"{len(selection.table.predicted)} configurations predicted (-o writes all); score: "
            "twin explain score",
            *(f"{text}: {list_first(boards, LISTED)}" for text, boards in costs.items()),
            *say_idle(able), *say_prices(able),
            *([f"price not known: {list_first(unknown, LISTED)}; --price BOARD=USD states yours"]
              if unknown else [])]
