"""The functions a program spends its time in, over all layers."""

from __future__ import annotations

from hwmodels.counts import Bill, merge_bills
from hwmodels.quantities import apportion, list_by_key
from twin.pricing.ledger import percentages
from twin.pricing.prediction import Prediction
from twin.reports.functions import list_costs
from twin.reports.tables.parts import Console, Table, natural_width, new_table

MOST_ROWS = 15
NARROW = 28
"""Characters of a name where the terminal is narrow."""


def functions_table(prediction: Prediction, console: Console) -> Table:
    """Return one row per function, most cycles first; of many the rest in one row.

    Parameters
    ----------
    console
        Its width decides how long names may be.
    """
    clock = prediction.board.core.clock
    costs = list_by_key((cost.run.name, cost) for cost in list_costs(prediction))
    merged = {name: merge_bills([cost.bill for cost in own]) for name, own in costs.items()}
    instructions = {name: sum(cost.run.traffic.instructions for cost in own)
                    for name, own in costs.items()}
    order = sorted(merged, key=lambda name: -merged[name].cycles(clock))
    cycles = dict(zip(order, apportion(merged[name].cycles(clock) for name in order), strict=True))
    shares = dict(zip(order, percentages([cycles[name] for name in order], decimals=1),
                      strict=True))
    rows: list[tuple[str, ...]] = [
            (name, f"{sum(cost.run.calls for cost in costs[name]):,}", f"{instructions[name]:,}",
             f"{cycles[name]:,}", f"{shares[name]:.1f}", _largest(merged[name], clock))
            for name in order[:MOST_ROWS]]
    rest = order[MOST_ROWS:]
    if rest:
        rows.append((f"{len(rest)} more", "", f"{sum(instructions[name] for name in rest):,}",
                     f"{sum(cycles[name] for name in rest):,}",
                     f"{sum(shares[name] for name in rest):.1f}", ""))
    longest = max((len(row[0]) for row in rows), default=NARROW)
    over = natural_width(_table(rows, longest)) - console.width
    return _table(rows, longest if over <= 0 else max(NARROW, longest - over))


def _largest(bill: Bill, clock: str) -> str:
    return max(bill.causes(), key=lambda cause: bill.cycles(clock, cause), default="")


def _table(rows: list[tuple[str, ...]], longest: int) -> Table:
    return new_table(("function", "calls", "instructions", "cycles", "%", "largest cause"),
                     ("calls", "instructions", "cycles", "%"), rows=(
                         (name if len(name) <= longest else f"{name[:longest - 3]}...", *others)
                         for name, *others in rows))
