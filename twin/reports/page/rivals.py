"""Several configurations beside each other: who wins what, by how much, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hwmodels.quantities import (
    format_energy,
    format_frequency,
    format_size,
    format_time,
    significant,
)
from twin.reports.columns import Cell, Column, number
from twin.reports.page.parts import Answer
from twin.reports.rivals import BEST, Rival, write_figure
from twin.reports.tables.limits import format_chance
from twin.studies.results import QUANTITIES, Row
from twin.studies.selection import Choice, draw_least, list_metrics

MOST_DRAWN = 50
"""Of the best by a metric, those whose chances are weighed against each other."""


def list_winners(rivals: Sequence[Rival]) -> tuple[tuple[str, str, Rival, float | None], ...]:
    """Return metric, quantity, the best by it of those that meet limits, how probable that is."""
    found = []
    for metric, quantity, boundary in list_metrics([one.row for one in rivals if one.row.met]):
        known = [one for one in rivals if one.row.met and getattr(one.row, quantity) is not None
                 and boundary in ("", one.row.boundary)]
        if known:
            nearest = sorted(known, key=lambda one: float(getattr(one.row, quantity)))[:MOST_DRAWN]
            chances = draw_least([one.row for one in nearest], quantity)
            found.append((metric, quantity, nearest[0],
                          None if chances is None else float(chances[0])))
    return tuple(found)


def list_answers(rivals: Sequence[Rival]) -> tuple[Answer, ...]:
    """Return a card for each metric: the best by it, its figure, and how sure that is."""
    found = []
    for metric, quantity, best, chance in list_winners(rivals):
        interval = best.row.interval_of(quantity)
        known = [figure for one in rivals if one.row.met
                 and (figure := getattr(one.row, quantity)) is not None]
        told = [best.label]
        if len(rivals) > 1 and len(set(known)) == 1:
            told = [f"{best.label}, the only one known" if len(known) == 1 else
                    "the same for all that meet"]
        if interval is not None:
            told.append(f"{100 * interval.level:.0f} % interval "
                        f"{write_figure(quantity, interval.low)} to "
                        f"{write_figure(quantity, interval.high)}")
        if chance is not None and len(rivals) > 1:
            told.append(f"really the best with {format_chance(chance)}")
        found.append(Answer(name=metric, value=write_figure(quantity, getattr(best.row, quantity)),
                            range="; ".join(told)))
    return tuple(found)


def say_lead(rivals: Sequence[Rival]) -> str:
    """Say who is fastest and who needs least energy, and how far the others are."""
    winners = {quantity: best for _, quantity, best, _ in list_winners(rivals)}
    told: list[str] = []
    for quantity, words, needs, verb in (
            ("time_us", "is the fastest with", "", "as long"),
            ("energy_uj", "needs least energy,", "It needs least energy, too:",
             "as much energy")):
        best = winners.get(quantity)
        if best is None:
            continue
        value = getattr(best.row, quantity)
        rest = sorted(getattr(one.row, quantity) / value for one in rivals
                      if one is not best and getattr(one.row, quantity) is not None and value)
        same = bool(told) and best is winners.get("time_us")
        said = f"{needs if same else f'{best.label} {words}'} {write_figure(quantity, value)}"
        if rest:
            said += f"; the next takes {_times(rest[0])} {verb}"
            said += f", the last {_times(rest[-1])}" if len(rest) > 1 else ""
        told.append(said)
    return ". ".join(told) + "." if told else "None of them could be predicted."


def _times(ratio: float) -> str:
    return f"{significant(ratio)} times"


def head_figures(least: Callable[[Row], Mapping[str, float]]) -> tuple[Column, ...]:
    """Return columns of time, its interval, energy, RAM, flash and price of what has a row.

    Parameters
    ----------
    least : callable
        Returns the least of each quantity among a row's rivals, which are marked.
    """
    def head(header: str, quantity: str, kind: str = "") -> Column:
        return number(header, lambda one: _write_cell(one.row, quantity, least(one.row)),
                      kind=kind)

    return (head("time", "time_us", "predicted"),
            number("90 % interval", lambda one: Cell(text="") if one.row.time is None else Cell(
                text=f"{format_time(one.row.time.low)} to {format_time(one.row.time.high)}",
                value=one.row.time.high)),
            head("energy", "energy_uj", "predicted"), head("RAM", "ram_bytes"),
            head("flash", "flash_bytes"), head("USD", "price_usd"))


def _write_cell(row: Row, quantity: str, least: Mapping[str, float]) -> Cell:
    value = getattr(row, quantity)
    text = write_figure(quantity, value).removesuffix(" USD")
    if row.met and value is not None and least.get(quantity) == value:
        return Cell(text=f"{text} {BEST}", value=value, tone="good")
    if value is not None and quantity in row.violations:
        return Cell(text=f"{text} over", value=value, tone="bad")
    return Cell(text=text, value=value, tone="dim" if value is None else "")


def meets_cell(one: Choice | Rival) -> Cell:
    """Return how probable it is that limits are met, else `VERDICTS`' word."""
    row = one.row
    return Cell(text=format_chance(row.probability) or row.verdict, value=row.probability,
                tone={"yes": "good", "may": "", "no": "bad"}[row.verdict])


def list_least(rivals: Sequence[Rival]) -> dict[str, float]:
    """Return the least of each quantity, of what meets limits; none where all have as much."""
    found = {}
    for quantity in QUANTITIES:
        known = {getattr(one.row, quantity) for one in rivals if one.row.met} - {None}
        if len(known) > 1:
            found[quantity] = min(known)
    return found


def row_details(row: Row) -> tuple[tuple[str, str], ...]:
    """Return what folds out below a row: how it is set up, and what its figures rest on."""
    energy = row.energy
    return tuple((name, text) for name, text in (
        ("clock", format_frequency(row.clock_hz) if row.clock_hz else ""),
        ("voltage", row.voltage_scale), ("weights in", row.weights), ("arena in", row.arena),
        ("energy interval", "" if energy is None else
         f"{format_energy(energy.low)} to {format_energy(energy.high)}"),
        ("idle board", "" if row.idle_mw is None else
         f"{row.idle_mw:,.0f} mW are in the energy"),
        ("intervals", row.basis or "none: stated prices"), ("calibration", row.calibration),
        ("meets the limits", format_chance(row.probability)),
        ("room", "" if not row.ram_room_bytes else f"{format_size(row.ram_room_bytes)} RAM, "
         f"{format_size(row.flash_room_bytes)} flash")) if text)
