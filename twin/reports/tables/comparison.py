"""Tables that set two things beside each other: a what-if, limits, published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hwmodels.quantities import NOT_KNOWN, format_number, significant
from twin.attribution.difference import CauseMove, list_moves, odds_of_faster, subtract
from twin.prediction.explanation import explain_time
from twin.prediction.ledger import cycles_by_clock, make_ledger
from twin.prediction.limits import Requirement
from twin.prediction.prediction import Prediction
from twin.reports.tables.layout import add_row, new_pairs, new_table, spaced

if TYPE_CHECKING:
    from calibration.datasets import PublishedRow
    from calibration.fitting.intervals import Interval
    from twin.learning.published import Comparison

_SIDES = ("before", "after", "difference", "%")


def requirement_table(requirements: Sequence[Requirement]) -> Table:
    """Return what was asked, what is predicted, and the verdict, one row per requirement."""
    level = next((item.interval.level for item in requirements if item.interval is not None), None)
    doubt = () if level is None else (f"{100 * level:.0f} % interval", "exceeds")
    table = new_table(("check", "predicted", *doubt[:1], "limit", "unit", "used", *doubt[1:],
                       "verdict"), ("predicted", *doubt, "limit", "used"))
    for item in requirements:
        used = "" if item.predicted is None or item.limit <= 0 else \
            f"{significant(100 * item.predicted / item.limit)} %"
        chance = format_chance(item.chance_above)
        style = "bold red" if not item.met else "green" if item.surely_met else "yellow"
        add_row(table, (item.name, format_number(item.predicted, item.decimals),
                        *(format_interval(item.interval, item.decimals) for _ in doubt[:1]),
                        format_number(item.limit, item.decimals), item.unit, used,
                        *(chance for _ in doubt[1:]), item.verdict), style=style)
    return table


def format_interval(interval: Interval | None, decimals: int, scale: float = 1.0) -> str:
    """Return the ends of an interval, times `scale`; "" for none."""
    if interval is None:
        return ""
    return (f"{format_number(interval.low * scale, decimals)} to "
            f"{format_number(interval.high * scale, decimals)}")


def format_chance(chance: float | None) -> str:
    """Return a probability; "" for none. None is ever certain."""
    return "" if chance is None else f"{min(max(chance, 0.001), 0.999):.1%}"


def what_if_report(before: Prediction, after: Prediction,
                   changes: Mapping[str, object]) -> RenderableType:
    """Return a what-if: what was set, totals before and after, and the causes that moved."""
    deployment = before.deployment
    pairs = [("model", deployment.graph.name), ("board", deployment.board.name),
             ("runtime", deployment.runtime.identity)]
    pairs += [("set", f"{path} = {value}") for path, value in changes.items()]
    moves = list_moves(before, after)
    parts: list[RenderableType] = [new_pairs(pairs), _totals_table(before, after)]
    parts.append(_moves_table(moves) if moves else Text("no cause moved"))
    odds = odds_of_faster(before, after)
    if odds is not None and before.time_us != after.time_us:
        parts.append(Text(f"faster with a probability of {format_chance(odds)}: what "
                          "is not known of prices is shared by both"))
    parts.append(Group(Text("before: " + explain_time(before)),
                       Text("after:  " + explain_time(after), style="bold")))
    return spaced(parts)


def _totals_table(before: Prediction, after: Prediction) -> Table:
    table = new_table(("total", *_SIDES), _SIDES)
    _add_change(table, "time, ms", before.time_us / 1e3, after.time_us / 1e3, 3)
    _add_bounds(table, before, after, "time_us", 1e-3)
    _add_change(table, "energy, uJ", before.energy_uj, after.energy_uj, 3)
    _add_bounds(table, before, after, "energy_uj", 1.0)
    cycles_before = cycles_by_clock(make_ledger(before).total)
    cycles_after = cycles_by_clock(make_ledger(after).total)
    for clock in dict.fromkeys((*cycles_before, *cycles_after)):
        _add_change(table, f"{clock} cycles", cycles_before.get(clock, 0),
                    cycles_after.get(clock, 0), 0)
    _add_change(table, "RAM, bytes", before.ram_bytes, after.ram_bytes, 0)
    _add_change(table, "flash, bytes", before.flash_bytes, after.flash_bytes, 0)
    return table


def _moves_table(moves: Sequence[CauseMove]) -> Table:
    headers = ("cause that moved", "before, ms", "after, ms", "difference, ms", "difference, uJ")
    table = new_table(headers, headers[1:])
    for move in moves:
        before_ms, after_ms = round(move.before_us / 1e3, 3), round(move.after_us / 1e3, 3)
        add_row(table, (move.cause, f"{before_ms:,.3f}", f"{after_ms:,.3f}",
                        _signed(after_ms - before_ms, 3), _signed(move.energy_uj, 3)),
                style="green" if move.time_us < 0 else "red" if move.time_us > 0 else "")
    return table


def _add_change(table: Table, label: str, before: float | None, after: float | None,
                decimals: int) -> None:
    # The difference is taken of the figures as shown, so that a reader can add them up.
    shown = [None if value is None else round(value, decimals) for value in (before, after)]
    change = subtract(shown[1], shown[0])
    percent = "" if change is None or not shown[0] else _signed(100 * change / shown[0], 1)
    add_row(table, (label, format_number(shown[0], decimals), format_number(shown[1], decimals),
                    _signed(change, decimals), percent))


def _add_bounds(table: Table, before: Prediction, after: Prediction, quantity: str,
                scale: float) -> None:
    """Add the intervals of a total below it, where there is one."""
    bounds = [None if side.certainty is None else getattr(side.certainty, quantity)
              for side in (before, after)]
    known = [bound for bound in bounds if bound is not None]
    if known:
        add_row(table, (f"  {100 * known[0].level:.0f} % interval",
                        *(format_interval(bound, 3, scale) or NOT_KNOWN for bound in bounds), "",
                        ""))


def _signed(value: float | None, decimals: int) -> str:
    if value is None:
        return NOT_KNOWN
    text = f"{value:+,.{decimals}f}"
    return text.replace("+", "").replace("-", "") if not float(text.replace(",", "")) else text


def published_report(model: str, board: str,
                     comparisons: Sequence[Comparison]) -> RenderableType:
    """Return predicted beside every published row, and how the ratios lie."""
    if not comparisons:
        return Text(f"no published result of {model} on {board} is known")
    headers = ("published by", "runtime", "MHz", "published, ms", "predicted, ms", "ratio",
               "published, uJ", "predicted, uJ", "ratio of uJ", "use", "note")
    table = new_table(headers, headers[2:9])
    for item in comparisons:
        row = item.row
        add_row(table, (
            f"{row.submitter} {row.edition}", row.runtime or row.software,
            "" if row.clock_hz is None else f"{row.clock_hz / 1e6:g}",
            format_number(row.latency_ms, 2), "" if item.reason else
            format_number(item.predicted_ms, 2), _ratio(item.latency_ratio),
            format_number(row.energy_uj), "" if item.reason else format_number(item.predicted_uj),
            _ratio(item.energy_ratio), row.use, _note(item)))
    parts: list[RenderableType] = [table]
    for what, ratios in (("latency", [item.latency_ratio for item in comparisons]),
                         ("energy", [item.energy_ratio for item in comparisons])):
        known = sorted(ratio for ratio in ratios if ratio is not None)
        if known:
            parts.append(Text(f"{what}: predicted/published {known[0]:.2f} to {known[-1]:.2f}, "
                              f"median {median(known):.2f}, n = {len(known)}"))
    return Group(*parts[:1], Text(""), *parts[1:])


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _note(item: Comparison) -> str:
    if item.reason:
        return f"not predicted: {item.reason}"
    other = [f"predicted as {item.runtime}"] if item.stood_in else []
    return ", ".join((*other, *_settings(item.row),
                      *(flag.replace("_", " ") for flag in item.row.flags)))


def _settings(row: PublishedRow) -> list[str]:
    """What the row states of its board, and it is therefore deployed with."""
    from calibration.datasets import board_settings

    told = []
    for path, value in board_settings(row).items():
        if path == "supply.voltage_v":
            told.append(f"at {value:g} V")
        elif path.endswith(".read_bytes"):
            told.append(f"{path.split('.')[1]} read by {8 * int(str(value))} bits "
                        f"({row.flash_banks} bank)")
        else:
            told.append(f"{path} {value}")
    return told + ([f"arena in {row.arena}"] if row.arena else [])
