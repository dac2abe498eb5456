"""What boards and parts cost, with date and source; what nobody listed is not known."""

from __future__ import annotations

from hwmodels.board.facts import Board


def price_of(board: Board) -> float | None:
    """Return the price of a board in US dollars; None is not known."""
    return board.price_usd
