"""`twin guidelines`: a document learnt from results of studies."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli.options import AsJson
from twin.cli.output import note_files

Folders = Annotated[list[str], typer.Argument(
    metavar="FOLDER...", help="Of finished studies: `twin study run hardware -o FOLDER` first.")]
GuideFile = Annotated[str, typer.Option("-o", "--output", metavar="FILE",
                                        help="The document, Markdown.")]


def guidelines(folders: Folders, output: GuideFile = "guide.md",
               as_json: AsJson = False) -> None:
    """Learn a decision tree, classes of hardware and a checklist from finished studies."""
    from twin.verbs.guidelines import write_guidelines

    note_files([write_guidelines(folders, output)], as_json)
