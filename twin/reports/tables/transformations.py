"""What could be changed of a deployment, and why the rest does not apply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from twin.reports.tables.parts import Content, Group, Text, new_pairs, new_table, spaced

_SHOWN = 6
"""Values of a row at most."""


def transformations_table(found: Sequence[Any]) -> Content:
    """Return one row per transformation that applies, and the reasons of the others below."""
    table = new_table(("--set", "effort", "values worth trying"))
    for one in found:
        if one.values:
            more = len(one.values) - _SHOWN
            table.add_row((one.path, one.effort, ", ".join(one.values[:_SHOWN])
                           + (f" and {more} more" if more > 0 else "")))
    parts: list[Content] = [table]
    others = [(one.path, re.sub(rf"^{re.escape(one.path)}(=\S+)?: ", "", one.reason))
              for one in found if not one.values]
    if others:
        parts.append(Group(Text("does not apply here", style="bold"), new_pairs(others)))
    return spaced(parts)
