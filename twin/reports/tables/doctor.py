"""What `twin doctor` found, and what to type."""

from __future__ import annotations

from twin.reports.outcomes import Checkup
from twin.reports.tables.parts import Content, new_pairs, spaced


def doctor_report(found: Checkup) -> Content:
    """Return what is there, what is missing with what to type, and the first steps."""
    there = [(check.name, check.found) for check in found.checks if check.found]
    missing = [(check.name, f"{check.advice}{' (needed)' if check.needed else ''}")
               for check in found.checks if not check.found]
    packages: dict[str, str] = {}
    for check in found.checks:
        by, _, package = check.advice.partition(" install ")
        if check.needed and not check.found and by in ("apt-get", "pip"):
            packages[by] = f"{packages.get(by, f'{by} install')} {package}"
    steps = [line for step, what in found.steps for line in (f"# {what}", step)]
    return spaced([new_pairs([("there", ""), *there]),
                   new_pairs([("missing", ""), *missing]) if missing else None,
                   "installs what is needed: " + " && ".join(packages.values())
                   if packages else None,
                   "\n".join(["type:" if found.is_ready else
                              "type; what is missing fails the steps that use it:", *steps])])
