"""The bill by operand as a table: causes down, operands across."""

from __future__ import annotations

from twin.pricing.ledger import ROLES, make_operand_ledger
from twin.pricing.prediction import Prediction
from twin.reports.tables.parts import Table, new_table


def operand_table(prediction: Prediction) -> Table:
    """Return cycles by cause and operand, for the causes some operand costs cycles of.

    Returns
    -------
    Table
        Rows sum to the bill's lines; the last row is all that the core does by itself.
    """
    total = make_operand_ledger(prediction).total
    owned = {(clock, cause) for (clock, cause, operand), cycles in total.items()
             if operand and cycles}
    present = {operand for (clock, cause, operand), cycles in total.items()
               if (clock, cause) in owned and cycles}
    roles = [role for role in (*ROLES, *sorted(present - set(ROLES))) if role in present]
    clocks = {clock for clock, _ in owned}
    headers = ("bill by operand", *(["clock"] if len(clocks) > 1 else []),
               *(role or "core" for role in roles), "cycles")
    table = new_table(headers, headers[1:])
    for clock, cause in dict.fromkeys((clock, cause) for clock, cause, _ in total):
        if (clock, cause) in owned:
            cells = [total.get((clock, cause, role), 0) for role in roles]
            table.add_row((cause, *([clock] if len(clocks) > 1 else []),
                           *(f"{cell:,}" if cell else "-" for cell in cells), f"{sum(cells):,}"))
    rest = sum(cycles for (clock, cause, _), cycles in total.items()
               if (clock, cause) not in owned and clock == prediction.clock)
    blanks = len(roles) + (len(clocks) > 1)
    table.add_row(("all other", *[""] * blanks, f"{rest:,}"), style="dim")
    return table
