"""What is mutated, which tests judge it, and which mutants nothing could tell from the original."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Module(NamedTuple):
    """Files under mutation and the tests that judge them; globs from the root."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


PACKAGES = ("hwmodels", "calibration", "twin")
NO_JUDGES = ("tests/hwmodels/test_compiled.py", "tests/hwmodels/test_core_file.py",
             "tests/twin/api/live", "tests/hwmodels/test_drafts.py",
             "tests/twin/cli/test_cli.py::test_what_a_library_makes_of_ctrl_c_is_an_interruption")
"""Tests of machine code, of the source's text, of what interrupts: they fail beside mutants."""

READ_BY_TESTS = ("benchmarks", "firmware", "docs", "examples", "README.md", "DESIGN.md")
JUDGES_TOO = {"twin/api": ("tests/twin/cli/test_*.py",)}
"""Tests outside the folder that mirrors one: commands are asked for as users ask."""

PER_FILE = 5
"""Mutants of each file drawn: what a file takes before its first mutant is paid once."""

NOT_MUTATED = (r"^\s*raise ",)
"""Lines left alone: how an error is worded. Whether it is raised is up to the line before."""

EQUIVALENT = Path(__file__).with_name("equivalent.txt").read_text("utf-8").splitlines()
"""Lines of mutants that nothing could tell, each below its reason."""

LITERAL = re.compile(r"""(?:"[^"]*"|'[^']*')""")


def explain(changed: str) -> str | None:
    """Say why no test is to tell a mutant from the original; None when one should.

    Parameters
    ----------
    changed : str
        Lines of its diff, with their signs.

    Returns
    -------
    str or None
        `strict=` of a zip only guards against a mistake elsewhere; the case of a sentence, or
        letters around it, is wording; others are listed in `equivalent.txt`.
    """
    gone, come = ("".join(line[1:] for line in changed.splitlines() if line[0] == sign)
                  for sign in "-+")
    if "strict=" in changed and re.sub(r",?\s*strict=\w+", "", gone) == re.sub(
            r",?\s*(strict=\w+|(?=\)))", "", come):
        return "strict= of a zip whose parts are of equal length"
    moved = [(one, other) for one, other in zip(LITERAL.findall(gone), LITERAL.findall(come),
                                                strict=False) if one != other]
    if LITERAL.sub("", gone) == LITERAL.sub("", come) and moved and all(
            " " in one and one.lower() == other.replace("XX", "").lower()
            for one, other in moved):
        return "wording of a sentence"
    return "listed by hand" if come.strip() in EQUIVALENT else None


def draw_rooms(sample: int, seed: int,
               rooms: Iterable[str] = PACKAGES) -> dict[str, tuple[Module, int]]:
    """Draw places to change from packages or folders, each line as likely as another.

    Parameters
    ----------
    sample : int
        Mutants, `PER_FILE` of each file drawn.
    seed : int
        Of the draw.
    rooms : iterable of str
        Folders to draw from.

    Returns
    -------
    dict of str to (Module, int)
        By folder, with the tests that mirror it and how many mutants to run there.
    """
    files = list_files(tuple(f"{room}/**/*.py" for room in rooms))
    lines = [(ROOT / file).read_bytes().count(b"\n") for file in files]
    drawn: dict[str, list[str]] = {}
    for file in random.Random(seed).choices(files, lines, k=-(-sample // PER_FILE)):
        drawn.setdefault("/".join(Path(file).parts[:2]).removesuffix(".py"), []).append(file)
    return {room: (Module(tuple(files), _find_tests(room)), PER_FILE * len(files))
            for room, files in sorted(drawn.items())}


def _find_tests(room: str) -> tuple[str, ...]:
    """Return the tests that mirror a folder; hardware models have theirs in one, and the laws."""
    if (ROOT / "tests" / room).is_dir():
        return (f"tests/{room}/**/test_*.py", *JUDGES_TOO.get(room, ()))
    return ("tests/laws/test_events.py", f"tests/{room.split('/')[0]}/test_*.py")


def list_files(patterns: tuple[str, ...]) -> list[str]:
    """Return the files some globs stand for, from the root, sorted."""
    return sorted(str(path.relative_to(ROOT)) for pattern in patterns
                  for path in ROOT.glob(pattern))
