"""Two slides a study for talks, from what the studies found: `python -m benchmarks.studies.talks`.

Writes docs/talks.md: Markdown whose slides are parted by `---`, as Marp and reveal.js read it.
Figures are those of benchmarks/studies/results/findings.md, none is computed here.
"""

from __future__ import annotations

from pathlib import Path

import twin
from twin.studies.study.definition import Study

ROOT = Path(__file__).parents[2]
FINDINGS = Path(__file__).parent / "results" / "findings.md"
TALKS = ROOT / "docs" / "talks.md"

MOST_LINES = 6
"""Of a slide."""


def read_findings() -> dict[str, list[str]]:
    """Return what each study found, line by line, by its name."""
    found: dict[str, list[str]] = {}
    for part in FINDINGS.read_text(encoding="utf-8").split("\n## ")[1:]:
        name, _, text = part.partition("\n")
        found[name.strip()] = [line[2:] for line in text.splitlines() if line.startswith("- ")]
    return found


def write_talks() -> str:
    """Return the slides of every study."""
    slides = ["# Slides\n\nTwo a study, from `python -m benchmarks.studies`; "
              "all figures are predicted."]
    findings = read_findings()
    for name, study in twin.list_studies().items():
        if name in findings:
            slides += _slides(study, findings[name])
    return "\n\n---\n\n".join(slides) + "\n"


def _slides(study: Study, lines: list[str]) -> tuple[str, str]:
    axes = [f"- {axis.name}: {', '.join(map(str, axis.values[:7]))}"
            + (", ..." if len(axis.values) > 7 else "") for axis in study.space.axes if axis.values]
    if study.cases:
        axes.append(f"- compared: {'; '.join(study.cases)}")
    counted = lines[0] if lines else ""
    asked = "\n".join([*axes[:MOST_LINES], f"- {counted}"])
    told = "\n".join(f"- {line}" for line in lines[1:MOST_LINES + 1])
    notes = "".join(f"\n\n*{note}*" for note in study.notes[:1])
    return (f"## {study.question}\n\n{asked}\n\n`twin study run {study.name} -o out/{study.name}`",
            f"## Found: {study.question[0].lower()}{study.question[1:]}\n\n{told}{notes}")


if __name__ == "__main__":
    TALKS.write_text(write_talks(), encoding="utf-8")
    print(f"wrote {TALKS.relative_to(ROOT)}")
