"""`twin guidelines`: a document learnt from results of studies."""

from __future__ import annotations

from typing import Annotated

from twin.api.requests import Option
from twin.cli.options import AsJson, command
from twin.cli.output import note_files

Folders = Annotated[list[str], Option(
    "", "FOLDER...", "Of finished studies: `twin study run hardware -o FOLDER` first.")]
GuideFile = Annotated[str, Option("-o --output", "FILE", "The document, Markdown.")]


@command
def guidelines(folders: Folders, output: GuideFile = "guide.md",
               as_json: AsJson = False) -> None:
    """Learn a decision tree, classes of hardware and a checklist from finished studies."""
    from twin.api.commands.guidelines import write_guidelines

    note_files([write_guidelines(folders, output)], as_json)
