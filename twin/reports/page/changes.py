"""What would help: changes that were predicted, as a table and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.quantities import format_energy, format_size, format_time
from twin.pricing.prediction import Prediction
from twin.reports.page.parts import Cell, Column, Row, Section, Table
from twin.reports.page.power import with_idle
from twin.studies.advice import NOTABLE
from twin.studies.change import Change


def tell_best(changes: Sequence[Change] | None) -> str:
    """Say which change helps most, by how much, and at what effort; "" where nothing was tried."""
    if changes is None:
        return ""
    best = changes[0] if changes else None
    if best is None or best.time_ratio is None or best.time_ratio >= NOTABLE:
        return (f"None of {len(changes)} settings and rebuilds that were tried saves two per cent "
                "of the time.")
    told = f"{best.words}: {_percent(best.time_ratio)} time"
    if best.gain is not None:
        told += f" ({_percent(best.gain.low)} to {_percent(best.gain.high)})"
    if best.energy_ratio is not None:
        told += (f", {_percent(best.energy_ratio)} energy"
                 + ("" if best.row.idle_mw is None else " with the idle board's"))
    return f"{told}; a {best.effort}{f', {best.costs}' if best.costs else ''}."


def describe_changes(changes: Sequence[Change], prediction: Prediction) -> Section:
    """Return the changes that were tried, best first, with what each does."""
    rows = [Row(cells=(
        Cell(text=", ".join(f"{path}={value}" for path, value in one.settings)),
        Cell(text=one.effort),
        Cell(text=format_time(one.row.time_us), value=one.row.time_us),
        _ratio_cell(one.time_ratio), Cell(text=format_energy(one.row.energy_uj),
                                          value=one.row.energy_uj), _ratio_cell(one.energy_ratio),
        Cell(text=format_size(one.row.ram_bytes), value=one.row.ram_bytes),
        Cell(text=format_size(one.row.flash_bytes), value=one.row.flash_bytes),
        Cell(text=one.row.failure and "cannot be", tone="dim")), details=tuple(
            (name, text) for name, text in (("why not", one.row.reason), ("costs", one.costs),
                                            ("rests on", one.rests_on)) if text))
        for one in changes]
    idle_mw = prediction.deployment.board.power.idle_mw
    energy_uj = with_idle(prediction, prediction.energy_uj, prediction.time_us)
    before = [Cell(text="as it is"), Cell(text=""), Cell(text=format_time(prediction.time_us)),
              Cell(text=""), Cell(text=format_energy(energy_uj)), Cell(text=""),
              Cell(text=format_size(prediction.ram_bytes)),
              Cell(text=format_size(prediction.flash_bytes)), Cell(text="")]
    return Section(
        name="what-if", title="What if", lead="Each change alone, predicted anew; none has a "
        "factor of its own. Add --set PATH=VALUE to the command to keep one."
        + ("" if idle_mw is None or energy_uj is None else
           f" Energy in this table holds the {idle_mw:,.0f} mW the idle board draws meanwhile, "
           "as in advise and sweep; elsewhere on this page it is what is above them."),
        items=(Table(name="change-table", caption="Changes that were tried", rows=tuple(rows),
                     total=tuple(before), columns=(
                         Column(header="change"), Column(header="effort"),
                         Column(header="time", number=True, kind="predicted"),
                         Column(header="time by", number=True),
                         Column(header="energy" if idle_mw is None else "energy with idle",
                                number=True, kind="predicted"),
                         Column(header="energy by", number=True),
                         Column(header="RAM", number=True), Column(header="flash", number=True),
                         Column(header="note"))),))


def _ratio_cell(ratio: float | None) -> Cell:
    if ratio is None:
        return Cell(text="")
    tone = "good" if ratio < NOTABLE else "bad" if ratio > 1 / NOTABLE else ""
    return Cell(text=_percent(ratio), value=ratio, tone=tone)


def _percent(ratio: float) -> str:
    """Write a ratio as a change in percent, or as a factor where it is large."""
    return f"x{ratio:.2f}" if ratio > 2 else f"{100 * (ratio - 1):+.1f} %"
