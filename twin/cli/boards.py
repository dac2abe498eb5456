"""`twin boards`: the boards there are, and one in full."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli.output import open_console, show
from twin.errors import UsageError

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A board to show in full.")]
Sources = Annotated[bool, typer.Option(
    "--sources", help="Every number of the board with its kind and source.")]


def boards(name: Name = None, sources: Sources = False) -> None:
    """List the boards, or show one with its parts."""
    if sources and name is None:
        raise UsageError("--sources needs the NAME of a board, such as "
                         "`twin boards nucleo_l4r5zi --sources`")
    from hwmodels.board_file import list_boards, load_board
    from twin.tables.catalogue import board_report, boards_table

    if name is None:
        show(open_console(), boards_table([load_board(board) for board in list_boards()]))
    else:
        show(open_console(), board_report(load_board(name), sources=sources))
