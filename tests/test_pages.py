"""The documentation: its links, the files and commands it names, and figures said twice."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.studies.talks import write_talks
from twin.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"),
                *(ROOT / "examples").rglob("*.md"), ROOT / "firmware" / "README.md"])
LINES = [(page, line[2:].strip()) for page in (*PAGES, ROOT / "twin" / "cli" / "examples.yaml")
         for line in page.read_text().splitlines() if line.startswith(("    twin ", "- twin "))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_a_page_names_are_there(page: Path) -> None:
    folders = "twin|calibration|hwmodels|tests|benchmarks|firmware|docs|examples"
    text = page.read_text(encoding="utf-8")
    if page.name == "CHANGELOG.md":
        return  # History names what was.
    for name in re.findall(rf"`((?:{folders})/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name


@cache
def find_command(name: str) -> Any:
    return typer.main.get_command(app).get_command(None, name)


@pytest.mark.parametrize(("page", "line"), LINES, ids=lambda one: str(one)[-60:])
def test_commands_and_their_options_exist(page: Path, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = find_command(words[0])
    assert command is not None, f"{page.name}: {line}"
    words, known = words[1:], {"--help", "-h"}
    inside = [command, *getattr(command, "commands", {}).values()]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
        # A group may hand what is no command of its own to one of them: `twin boards NAME`.
        inside = [command, *getattr(command, "commands", {}).values()]
    known |= {option for one in inside for parameter in one.params
              for option in (*parameter.opts, *parameter.secondary_opts)}
    asked = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    assert set(asked) <= known, f"{page.name}: {line}"


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
