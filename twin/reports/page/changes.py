"""What would help: changes that were predicted, as a table and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.quantities import format_energy, format_size, format_time
from twin.pricing.prediction import Prediction
from twin.reports.columns import Column, number
from twin.reports.page.parts import Section, make_section, make_table
from twin.reports.page.power import with_idle
from twin.studies.change import Change
from twin.studies.remedies import NOTABLE

PLACES = ("placement.arena", "placement.weights", "placement.code")
"""Settings that say where something lies."""
WORTH = 0.995
"""Share of the time above which a move is not worth a line."""


def tell_best(changes: Sequence[Change] | None) -> str:
    """Say which change helps most, by how much, and at what effort; "" where nothing was tried."""
    if changes is None:
        return ""
    best = changes[0] if changes else None
    if best is None or best.time_ratio is None or best.time_ratio >= NOTABLE:
        return (f"None of {len(changes)} settings and rebuilds that were tried saves two per cent "
                "of the time.")
    caption = f"{best.words}: {write_change(best.time_ratio)} time"
    if best.time_ratio_interval is not None:
        caption += f" ({best.time_ratio_interval.write(write_change)})"
    if best.energy_ratio is not None:
        caption += (f", {write_change(best.energy_ratio)} energy"
                 + ("" if best.row.idle_mw is None else " with the idle board's"))
    return f"{caption}; a {best.effort}{f', {best.costs}' if best.costs else ''}."


def list_places(changes: Sequence[Change], prediction: Prediction) -> tuple[str, ...]:
    """Return where arena, weights and code would save time, and how much, most first."""
    return tuple(
        f"{path.removeprefix('placement.')} in {value}: -{format_time(saved_us)} "
        f"({write_change(change.time_ratio)} time)"
        for change in changes if len(change.settings) == 1 and change.time_ratio is not None
        for path, value in change.settings if path in PLACES
        if change.row.time_us is not None and change.time_ratio < WORTH
        for saved_us in (prediction.time_us - change.row.time_us,))


def describe_changes(changes: Sequence[Change], prediction: Prediction) -> Section:
    """Return the changes that were tried, best first, with what each does."""
    idle = prediction.board.idle()
    energy_uj = with_idle(prediction, prediction.energy_uj, prediction.time_us)
    return make_section(
        "what-if", "What if", make_table("change-table", "Changes that were tried", (
            Column("change", lambda one: ", ".join(map("=".join, one.settings))), Column("effort"),
            number("time", "row.time_us", format_time, kind="predicted"),
            _ratio("time by", "time_ratio"),
            number("energy" if idle is None else "energy with idle", "row.energy_uj",
                   format_energy, kind="predicted"),
            _ratio("energy by", "energy_ratio"), number("RAM", "row.ram_bytes", format_size),
            number("flash", "row.flash_bytes", format_size),
            Column("note", lambda one: one.row.failure and "cannot be", tone="dim")), changes,
            details=lambda one: ((name, text) for name, text in (
                ("why not", one.row.reason), ("costs", one.costs), ("rests on", one.rests_on))
                if text),
            total=("as it is", "", format_time(prediction.time_us), "", format_energy(energy_uj),
                   "", format_size(prediction.ram_bytes), format_size(prediction.flash_bytes),
                   "")),
        lead="Each change alone, predicted again; none has a factor of its own. Add --set "
             "PATH=VALUE to the command to keep one." + (
            "" if idle is None or energy_uj is None else
            f" Energy in this table holds the {idle} the idle board draws meanwhile, as in "
            "advise, sweep and limits; elsewhere on this page it is above idle where it does not "
            "say 'with idle'."))


def _ratio(header: str, name: str) -> Column:
    """Return a column of ratios; those that matter are set apart."""
    return number(header, name, lambda ratio: "" if ratio is None else write_change(ratio),
                  tone=lambda one: judge_ratio(getattr(one, name), NOTABLE))


def judge_ratio(ratio: float | None, notable: float) -> str:
    """Return how a ratio is set: below what is notable, or as far above one."""
    return "" if ratio is None else "good" if ratio < notable else (
        "bad" if ratio > 1 / notable else "")


def write_change(ratio: float) -> str:
    """Write a ratio as a change in percent, or as a factor where it is large."""
    return f"x{ratio:.2f}" if ratio > 2 else f"{100 * (ratio - 1):+.1f} %"
