"""What `twin doctor` found, and what to type."""

from __future__ import annotations

from twin.reports.outcomes import Checkup
from twin.reports.tables.parts import Content, new_pairs, spaced


def doctor_report(found: Checkup) -> Content:
    """Return what is there, what is missing with what to type, and the first steps."""
    there = [(check.name, check.found) for check in found.checks if check.found]
    missing = [(check.name, f"{check.advice}{' (needed)' if check.needed else ''}")
               for check in found.checks if not check.found]
    steps = [line for step, what in found.steps for line in (f"# {what}", step)]
    return spaced([new_pairs([("there", ""), *there]),
                   *([new_pairs([("missing", ""), *missing])] if missing else []),
                   "\n".join(["type:", *steps])])
