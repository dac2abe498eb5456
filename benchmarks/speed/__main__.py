"""How fast everything is, beside its peers in the same run: `python -m benchmarks.speed`.

One row each: ours, the peer's, how many times theirs ours is, what is aimed at and whether that is
met; all medians of processor time, so that a busy machine says nearly the same. What was counted
stands beside it: `--json FILE` keeps a run, `--against FILE` compares with one and fails where a
count differs, for speed must never change a result. Rows are made by the modules named `*_rows`
of this folder; words after the options choose some of those: `python -m benchmarks.speed cache`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.speed.row import Row
from hwmodels.errors import TwinError
from hwmodels.files import DocumentError, read_json, write_whole

BUSY = 0.75
"""Processes a processor from which a machine is not quiet."""
WIDTH = 34
"""Of names of rows; a longer one has a line to itself."""
MET = {True: "yes", False: "no", None: ""}


def list_modules() -> tuple[str, ...]:
    """Return the modules that make rows, without `_rows`."""
    return tuple(sorted(path.stem.removesuffix("_rows")
                        for path in Path(__file__).parent.glob("*_rows.py")))


def measure_rows(modules: Sequence[str]) -> Iterator[Row]:
    """Yield every row of some modules as it is made."""
    for name in modules:
        yield from import_module(f"benchmarks.speed.{name}_rows").measure()


def read_rows(path: str) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a run kept before, by name."""
    document = read_json(path)
    try:
        return {row["name"]: {"figure": float(row["figure"]), "events": dict(row["events"])}
                for row in document["rows"]}
    except (KeyError, TypeError, ValueError):
        raise DocumentError("no run of this table; accepted: what --json wrote") from None


def to_text(figure: float) -> str:
    """Return a figure to three digits, without an exponent where a thousandth is enough."""
    if figure >= 1000:
        return f"{figure:.0f}"
    return f"{figure:.3g}" if figure >= 0.001 or figure == 0 else f"{figure:.1e}"


def show(row: Row, before: Mapping[str, Any] | None) -> str:
    """Return a row as some lines of text: figures, then its peer and what was counted."""
    theirs = f"{to_text(row.theirs)} {row.unit}" if row.theirs is not None else ""
    ratio = f"{to_text(row.ratio)} x" if row.ratio is not None else ""
    peer = [f"beside {row.peer}"] if row.peer else []
    below = peer + [f"{count:,} {name}" for name, count in row.events.items()]
    since = f"; {row.figure / before['figure']:.2f} x of before" if before else ""
    fits = len(row.name) <= WIDTH
    lines = [] if fits else [row.name]
    lines.append(f"{row.name if fits else '':{WIDTH}}{to_text(row.figure):>8} {row.unit:4}"
                 f"{theirs:>13}  {ratio:>9}  {row.target:23}{MET[row.met]}".rstrip())
    if below or since:
        lines.append("    " + ", ".join(below) + since)
    return "\n".join(lines)


def find_changes(rows: Sequence[Row], before: Mapping[str, Any]) -> list[str]:
    """Return the rows whose counts are not those of an earlier run."""
    return [f"{row.name}: {dict(before[row.name]['events'])} before, {dict(row.events)} now"
            for row in rows
            if row.name in before and dict(before[row.name]["events"]) != dict(row.events)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a target is missed or a count differs from an earlier run's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="ROWS",
                        help=f"which of {', '.join(list_modules())}; all by default")
    parser.add_argument("--json", metavar="FILE", help="keep this run")
    parser.add_argument("--against", metavar="FILE", help="compare with a run kept before")
    options = parser.parse_args(arguments)
    for name in options.modules:
        if name not in list_modules():
            parser.error(f"{name}: no such rows; accepted: {', '.join(list_modules())}")
    before: dict[str, Mapping[str, Any]] = {}
    try:
        before = read_rows(options.against) if options.against else before
    except TwinError as error:
        parser.error(f"--against {options.against}: {error}")
    if options.json and (Path(options.json).is_dir() or not Path(options.json).parent.is_dir()):
        parser.error(f"--json {options.json}: accepted: a file in a folder that exists")
    print(f"{'':{WIDTH}}{'this':>13}{'peer':>13}  {'this/peer':>9}  {'target':23}met")
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY * (os.cpu_count() or 1):
        print(f"(a busy machine: {os.getloadavg()[0]:.1f} processes for {os.cpu_count()} "
              "processors; seconds may be twice those of a quiet one, ratios say more)")
    rows = []
    for row in measure_rows(tuple(dict.fromkeys(options.modules)) or list_modules()):
        rows.append(row)
        print(show(row, before.get(row.name)), flush=True)
    if options.json:
        document = {"schema": 1, "rows": [
            dataclasses.asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows]}
        write_whole(options.json, (json.dumps(document, indent=1) + "\n").encode())
    changes = find_changes(rows, before)
    for change in changes:
        print(f"counts differ: {change}", file=sys.stderr)
    missed = [row.name for row in rows if row.met is False]
    print(f"{sum(row.met is True for row in rows)} targets met, {len(missed)} missed"
          + (": " + "; ".join(missed) if missed else ""))
    return int(bool(changes or missed))


if __name__ == "__main__":
    sys.exit(main())
