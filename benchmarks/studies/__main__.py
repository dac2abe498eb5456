"""Run every shipped study and write what each found: `python -m benchmarks.studies [NAME...]`.

Folders go to out/studies (one that is there goes on, of another version begins anew); findings of
all, in words computed from their rows, to benchmarks/studies/results/findings.md.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import twin
from twin.errors import StudyError

OUT = Path("out/studies")
FINDINGS = Path(__file__).parent / "results" / "findings.md"


def run(name: str) -> str:
    """Return the finding of a study, with how long it took."""
    began = time.perf_counter()
    try:
        done = twin.run_study(name, OUT / name)
    except StudyError:
        shutil.rmtree(OUT / name)
        done = twin.run_study(name, OUT / name)
    took = time.perf_counter() - began
    print(f"{name}: {len(done.load_results().rows)} configurations, {took:.1f} s", flush=True)
    text = (done.folder / "finding.md").read_text(encoding="utf-8")
    return text.replace("# ", "## ", 1)


def main(names: list[str]) -> None:
    """Run the named studies, or all of them."""
    found = [run(name) for name in names or twin.list_studies()]
    if not names:
        FINDINGS.parent.mkdir(exist_ok=True)
        FINDINGS.write_text("# What the shipped studies find\n\n"
                            "Made by `python -m benchmarks.studies`."
                            "\n\n" + "\n".join(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
