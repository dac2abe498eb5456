"""How often a network is right, before and after changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.reports.tables.parts import Table, add_row, new_table

if TYPE_CHECKING:
    from twin.network.accuracy import Accuracy


def accuracy_table(before: Accuracy, after: Accuracy | None) -> Table:
    """Return one row for the network as it is, one for the changed one."""
    table = new_table(("network", "right", "of", "accuracy", "90 % interval", "run by"),
                      ("right", "of", "accuracy"))
    for name, one in (("as it is", before), ("changed", after)):
        if one is not None:
            add_row(table, (name, str(one.right), str(one.samples), f"{one.share:.2%}",
                            f"{one.low:.2%} to {one.high:.2%}", one.by))
    return table
