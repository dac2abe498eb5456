"""`twin boards`: the boards there are, and one in full."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli.output import open_console, show, warn
from twin.errors import UsageError

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A board to show in full.")]
Sources = Annotated[bool, typer.Option(
    "--sources", help="Every number of the board with its kind and source.")]
Virtual = Annotated[bool, typer.Option(
    "--virtual", help="Boards one can run today: emulators, for `twin measure --virtual`.")]


def boards(name: Name = None, sources: Sources = False, virtual: Virtual = False) -> None:
    """List the boards, or show one with its parts."""
    if virtual:
        if name is not None or sources:
            raise UsageError("--virtual lists emulated boards and goes with nothing else")
        from calibration.virtual_board import list_virtual_boards
        from twin.tables.measured import virtual_boards_table

        show(open_console(), virtual_boards_table(list_virtual_boards()))
        return
    if sources and name is None:
        raise UsageError("--sources needs the NAME of a board, such as "
                         "`twin boards nucleo_l4r5zi --sources`")
    from hwmodels.board.file import list_boards, load_board
    from hwmodels.errors import BoardError
    from twin.tables.catalogue import board_report, boards_table

    if name is None:
        found, broken = [], []
        for board in list_boards():
            try:
                found.append(load_board(board))
            except BoardError as error:
                broken.append((board, str(error)))
        show(open_console(), boards_table(found, broken=[board for board, _ in broken]))
        warn(f"broken: {why}" for _, why in broken)
    else:
        show(open_console(), board_report(load_board(name), sources=sources))
