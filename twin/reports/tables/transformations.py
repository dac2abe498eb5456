"""What could be changed of a deployment, and why the rest does not apply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hwmodels.quantities import list_first
from twin.reports.columns import Column
from twin.reports.tables.parts import Content, Group, Text, new_pairs, spaced, tabulate

_SHOWN = 6
"""Values of a row at most."""


def transformations_table(found: Sequence[Any]) -> Content:
    """Return one row per transformation that applies, and the reasons of the others below."""
    parts: list[Content] = [tabulate((
        Column("--set", "path"), Column("effort"),
        Column("values worth trying", lambda one: list_first(one.values, _SHOWN))),
        [one for one in found if one.values])]
    others = [(one.path, re.sub(rf"^{re.escape(one.path)}(=\S+)?: ", "", one.reason))
              for one in found if not one.values]
    if others:
        parts.append(Group(Text("does not apply here", "bold"), new_pairs(others)))
    return spaced(parts)
