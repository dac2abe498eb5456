"""Several configurations beside each other: who wins what, by how much, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hwmodels.frozen import NamedTexts
from hwmodels.quantities import (
    NOT_KNOWN,
    format_energy,
    format_frequency,
    format_size,
    format_time,
    significant,
)
from twin.reports.columns import Cell, Column, number
from twin.reports.page.parts import Answer
from twin.reports.rivals import BEST, Rival, find_lowest, list_leading, say_among, write_figure
from twin.reports.tables.limits import format_chance, say_meets
from twin.reports.tables.study_sentences import say_life, say_sleep
from twin.studies.rows import QUANTITIES, WORDS, Row, mixes_boundaries
from twin.studies.selection import Choice, Winner, find_winners
from twin.studies.sweep import network_of

PLACES = {"chip": "chip at its rail", "board": "board at its input"}
"""Where energies are counted."""


def list_winners(rivals: Sequence[Rival]) -> list[tuple[Winner, Rival]]:
    """Return the best by each metric of those that meet limits, and what it is called."""
    return [(won, next(one for one in rivals if one.row is won.row))
            for won in find_winners([one.row for one in rivals])]


def list_answers(rivals: Sequence[Rival], find_less: Callable[[Row, str], Row | None] = lambda won,
                 name: None, ) -> tuple[Answer, ...]:
    """Return a card for each metric: the best by it, its figure, and how sure that is.

    Parameters
    ----------
    find_less
        Returns a row that is no rival and has less of a quantity than a row.
    """
    found = []
    for won, best in list_winners(rivals):
        quantity, chance = won.quantity, won.probability
        interval = best.row.interval_of(quantity)
        known = [getattr(one.row, quantity) for one in rivals
                 if one.row.competes(quantity, best.row.compared_as(quantity))]
        words = [best.label]
        if len(rivals) > 1 and len(set(known)) == 1:
            words = ["the same for all that meet" if len(known) > 1 else f"{best.label}, the only "
                    + ("one known" if all(one.row.met for one in rivals) else "one that meets")]
        if won.less is not None:
            words.append(_say_less(won, rivals))
        if interval is not None:
            words.append(interval.describe(partial(write_figure, quantity)))
        if chance is not None:
            words.append(f"really the best with {format_chance(chance)}")
        if (less := find_less(won.row, quantity)) is not None:
            words.append(f"{write_figure(quantity, getattr(less, quantity))} with a library that "
                         f"is not chosen: {less.runtime} on {less.board}")
        found.append(Answer(
            won.words, write_figure(quantity, getattr(best.row, quantity)),
            range="; ".join(words)))
    return tuple(found)


def _say_less(won: Winner, rivals: Sequence[Rival]) -> str:
    """Say who has less of a metric, and why it does not, or not surely, meet the limits."""
    row = won.less
    assert row is not None, "asked of a metric in which another is better"
    label = next((one.label for one in rivals if one.row is row), row.board)
    why = ", ".join(WORDS[name] for name in row.unknown or row.violations)
    meets = ("may meet them" if row.verdict == "may" else "misses them" if why else
             f"meets them with {format_chance(row.probability)}")
    why += " is not known" * (row.verdict == "may")
    return (f"{label} has {write_figure(won.quantity, getattr(row, won.quantity))} and {meets}"
            + f": {why}" * bool(why))


def say_lead(rivals: Sequence[Rival]) -> str:
    """Say who is fastest and has least mean power or energy, and how far the others are.

    Energies at one boundary: where rows of both are there, of chips at their rail.
    """
    winners = {won.quantity: (won, best) for won, best in reversed(list_winners(rivals))}
    many = mixes_boundaries(one.row for one in rivals)
    fastest, sentences = None, list[str]()
    for quantity in ("time_us", "mean_mw" if "mean_mw" in winners else "energy_uj"):
        if quantity not in winners:
            continue
        won, best = winners[quantity]
        value = getattr(best.row, quantity)
        rest = sorted(getattr(one.row, quantity) / value for one in rivals
                      if one is not best and value
                      and one.row.competes(quantity, best.row.compared_as(quantity)))
        fastest = fastest or best
        place = f" ({PLACES[best.row.boundary]})" if many and quantity == "energy_uj" else ""
        words, too, verb = {
            "time_us": (f"is the fastest{won.among} with", "", "as long"),
            "mean_mw": (f"has the lowest mean power{won.among},",
                        f"It has the lowest mean power{won.among}, too:", "as much power"),
            "energy_uj": (f"needs least energy{won.among}{place},",
                          f"It needs least energy{won.among}, too{place}:",
                          "as much energy")}[quantity]
        text = too if sentences and best is fastest else f"{best.label} {words}"
        text += f" {write_figure(quantity, value)}"
        if won.less is not None:
            text += f" ({_say_less(won, rivals)})"
        less = [one for one in rivals if quantity == "energy_uj" and one.row.boundary == "board"
                and one.row.met and (one.row.energy_uj or value) < value]
        if less:
            text += f" ({less[0].label} takes less at its board's input)"
        if rest:
            text += f"; the next takes {_times(rest[0])} {verb}"
            may = " that meet or may" * (not all(one.row.sure for one in rivals))
            text += f", the last of {len(rest) + 1}{may} takes {_times(rest[-1])}" * (len(rest) > 1)
        sentences.append(text)
    return ". ".join(sentences) + "." if sentences else (
        "None of them meets the limits." if rivals else "None of them could be predicted.")


def _times(ratio: float) -> str:
    return f"{significant(ratio)} times"


def head_figures(least: Callable[[Row], Mapping[str, float]], rows: Sequence[Row],
                 ) -> tuple[Column, ...]:
    """Return columns of time, its interval, energy, RAM, flash and price of what has a row.

    Parameters
    ----------
    least
        Returns the least of each quantity among a row's rivals, which are marked.
    rows
        All of them: mean power, battery life and boundary have a column where a duty was asked.
    """
    networks = dict.fromkeys(map(network_of, rows))
    leading = {row for name in networks
               for row in list_leading([one for one in rows if network_of(one) == name])}

    def head(header: str, quantity: str, kind: str = "") -> Column:
        return number(header, lambda one: _write_cell(
            one.row, quantity, least(one.row) if one.row in leading else {}), kind=kind)

    duty: list[Column] = []
    if any(one.sleep for one in rows):
        duty = [Column("energy of", "row.boundary"), head("mean power", "mean_mw", "predicted")]
        duty += [number("days", "row.life_days", lambda days: NOT_KNOWN if days is None else
                        significant(days), kind="predicted")] * any(
                            one.life_days is not None for one in rows)
    return (head("time", "time_us", "predicted"),
            number("90 % interval", lambda one: Cell("") if one.row.time is None else Cell(
                one.row.time.write(format_time), one.row.time.high)),
            head("energy", "energy_uj", "predicted"), *duty, head("RAM", "ram_bytes"),
            head("flash", "flash_bytes"), head("USD", "price_usd"))


def _write_cell(row: Row, quantity: str, least: Mapping[str, float]) -> Cell:
    value = getattr(row, quantity)
    text = write_figure(quantity, value).removesuffix(" USD")
    if value is not None and least.get(row.compared_as(quantity)) == value:
        return Cell(f"{text} {BEST}", value, tone="good")
    if value is not None and quantity in row.violations:
        return Cell(f"{text} over", value, tone="bad")
    return Cell(text, value, tone="dim" if value is None else "")


def meets_cell(one: Choice | Rival) -> Cell:
    """Return how probable it is that limits are met, else `VERDICTS`' word."""
    row = one.row
    return Cell(say_meets(row), row.probability,
                tone="good" if row.sure else "bad" if row.verdict == "no" else "")


def list_least(rivals: Sequence[Rival]) -> dict[str, float]:
    """Return the lowest of what compares, of what meets limits; none where all have as much."""
    rows = [one.row for one in rivals]
    return {kind: value for quantity in QUANTITIES
            for kind, value in find_lowest(rows, quantity).items()}


def say_best_mark(rows: Sequence[Row]) -> str:
    """Say what the mark of the best means in a table of rows."""
    if not any(row.met for row in rows):
        return "none meets the limits"
    return (f"{BEST} is lowest" + say_among(rows)
            + ", energy among chips or among boards (one alone has none)" * mixes_boundaries(rows))


def row_details(row: Row) -> NamedTexts:
    """Return what folds out below a row: how it is set up, and what its figures rest on."""
    energy = row.energy
    return tuple((name, text) for name, text in (
        ("clock", format_frequency(row.clock_hz) if row.clock_hz else ""),
        ("voltage", row.voltage_scale), ("weights in", row.weights), ("arena in", row.arena),
        ("energy interval", "" if energy is None else energy.write(format_energy)),
        ("idle board", "" if row.idle_mw is None else
         f"{row.idle_mw:,.0f} mW are in the energy"),
        ("intervals", row.basis or "none: stated prices"), ("calibration", row.calibration),
        ("meets the limits", format_chance(row.probability)),
        ("asleep", say_sleep(row) if row.sleep else ""),
        ("battery life", "" if row.life_days is None else say_life(row)),
        ("price", f"{row.price_usd:g} USD ({row.price_of})" if row.price_of else ""),
        ("kit", "" if row.kit_usd is None else f"{row.kit_usd:g} USD"),
        ("room", "" if not row.ram_room_bytes else f"{format_size(row.ram_room_bytes)} RAM, "
         f"{format_size(row.flash_room_bytes)} flash")) if text)
