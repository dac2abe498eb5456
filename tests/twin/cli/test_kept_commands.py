"""What commands print for people, whole: at 100 columns, with what they warn of."""

import re
from pathlib import Path

import pytest
from made_commands import COMMANDS
from made_outlines import compare_kept
from typer.testing import CliRunner

from twin.cli import app


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name) -> None:
    ended = CliRunner().invoke(app, COMMANDS[name].split(), env={"COLUMNS": "100"})
    text = f"exit {ended.exit_code}\n{ended.stdout}\n{ended.stderr}"
    compare_kept(Path(__file__).parent / "kept" / f"{name}.txt",
                 re.sub(r"[\d,.]+ (points|configurations) a second.*|in [\d.]+ s\b", "", text))
