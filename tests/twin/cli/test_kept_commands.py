"""What commands print for people, whole: at 100 columns."""

from pathlib import Path

import pytest
from made_commands import COMMANDS
from made_outlines import compare_kept
from typer.testing import CliRunner

from twin.cli import app


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name) -> None:
    ended = CliRunner().invoke(app, COMMANDS[name].split(), env={"COLUMNS": "100"})
    text = ended.stderr if ended.exit_code > 1 else ended.stdout  # progress is by the clock
    compare_kept(Path(__file__).parent / "kept" / f"{name}.txt", f"exit {ended.exit_code}\n{text}")
