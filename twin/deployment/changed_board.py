"""The board of a deployment, changed: its facts, clock and voltage scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board
from hwmodels.errors import UnknownPathError
from hwmodels.quantities import Settings
from twin.deployment.draft import Draft

_Draft = TypeVar("_Draft", bound=Draft)


def change_own_board(before: _Draft, settings: Settings) -> _Draft:
    """Change facts of the board; a changed clock takes the lowest scale if none is stated."""
    scale_stated = before.scale_stated or "supply.voltage_scale" in settings
    try:
        board = change_board(before.board, settings, follow_clock=not scale_stated)
    except UnknownPathError as error:
        from twin.deployment.changes import name_near_paths

        raise UnknownPathError(
            f"{before.board.name}: {error.path}: no such path; "
            f"{name_near_paths(error.path, before.board)}", error.path) from None
    own = before.own_scale or other_scale(before.board, board)
    return replace(
        before, board=board, scale_stated=scale_stated,
        own_scale=None if scale_stated or own == board.power.voltage_scale else own)


def boards_of(before: Draft, settings: Settings, ) -> Callable[[Settings], Board]:
    """Return what makes the board of a changed deployment, without placing anything.

    Parameters
    ----------
    settings
        As of `Deployment.replace`.

    Returns
    -------
    callable
        Takes further settings of the board file; raises what the board forbids.
    """
    from twin.deployment.changes import ChangeBoard, parse_changes

    own: dict[str, object] = {}
    for change in parse_changes(settings, before.graph, before.board, before.runtime):
        if isinstance(change, ChangeBoard):
            own |= change.settings

    def make(more: Settings) -> Board:
        return change_own_board(before, {**own, **more}).board

    return make


def other_scale(stated: Board, board: Board) -> str | None:
    """Return the voltage scale a board states, where another is in force."""
    own = stated.power.voltage_scale
    return None if own == board.power.voltage_scale else own
