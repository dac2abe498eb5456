"""The documentation: its links, the files and commands it names, and figures said twice."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import typer

from benchmarks.studies.talks import write_talks
from twin.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"),
                *(ROOT / "examples").rglob("*.md"), ROOT / "firmware" / "README.md"])
LINES = [(page, line[2:].strip()) for page in (*PAGES, ROOT / "twin" / "cli" / "examples.yaml")
         for line in page.read_text().splitlines() if line.startswith(("    twin ", "- twin "))]


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), (page, target)


def test_files_a_page_names_are_there() -> None:
    folders = "twin|calibration|hwmodels|tests|benchmarks|firmware|docs|examples"
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue  # History names what was.
        for name in re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), (page, name)


@cache
def find_command(name: str) -> Any:
    return typer.main.get_command(app).get_command(None, name)


def test_commands_and_their_options_exist() -> None:
    assert len(LINES) > 300
    unknown = {f"{page.name}: {line}": find_unknown(line) for page, line in LINES}
    assert not {line: found for line, found in unknown.items() if found}


def find_unknown(line: str) -> set[str]:
    """Return what a command line names that there is not: the command, or options."""
    words = shlex.split(line, comments=True)[1:]
    command = find_command(words[0])
    if command is None:
        return {words[0]}
    words, known = words[1:], {"--help", "-h"}
    inside = [command, *getattr(command, "commands", {}).values()]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
        # A group may hand what is no command of its own to one of them: `twin boards NAME`.
        inside = [command, *getattr(command, "commands", {}).values()]
    known |= {option for one in inside for parameter in one.params
              for option in (*parameter.opts, *parameter.secondary_opts)}
    return {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)} - known


def test_the_first_page_says_what_the_tables_say() -> None:
    tables = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    time, energy = (tables.split(f"**{name}, calibrated")[1].split("\n**")[0]
                    for name in ("Latency", "Energy"))
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (.+?) \| (.+?) \|$",
                      (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 7
    for name, count, median, covers in rows:
        table = energy if name.startswith("energy: ") else time
        row = next(line for line in table.splitlines()
                   if line.startswith(f"| {name.removeprefix('energy: ')} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert (cells[1], cells[2], cells[6]) == (count, median, covers), name


def test_slides_say_what_the_studies_found() -> None:
    assert (ROOT / "docs" / "talks.md").read_text(encoding="utf-8") == write_talks()
