"""What the functions behind commands return, whole, as the documents they are written as."""

import json
from pathlib import Path

import pytest
from made_commands import COMMANDS
from made_outlines import compare_kept, outline
from typer.testing import CliRunner

from twin.cli import app


@pytest.mark.parametrize("name", COMMANDS)
def test_documents(name) -> None:
    ended = CliRunner().invoke(app, [*COMMANDS[name].split(), "--json"])
    found = json.loads(ended.stdout) if ended.exit_code in (0, 1) else ended.stderr.splitlines()
    if isinstance(found, dict):
        found.pop("generator", None)
        found.pop("tool", None)
    compare_kept(Path(__file__).parent / "kept" / f"{name}.txt",
                 f"exit {ended.exit_code}\n" + outline(found, 6))
