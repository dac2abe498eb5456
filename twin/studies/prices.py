"""What boards cost, with kind and source; what nobody listed is not known, and never guessed."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.errors import BoardError
from twin.errors import UsageError
from twin.studies.limits import read_limits


def price_of(board: Board, told: Mapping[str, float] | None = None) -> float | None:
    """Return the price of a board in US dollars; None is not known.

    Parameters
    ----------
    board : Board
        Its file's `price_usd`, where nobody was told another.
    told : mapping of str to float, optional
        The user's own prices, by name of board or chip.
    """
    for name in (board.name, board.soc):
        if told and name in told:
            return told[name]
    return board.price_usd


def read_prices(texts: tuple[str, ...] | list[str]) -> dict[str, float]:
    """Read NAME=USD words: the user's prices of boards or chips.

    Raises
    ------
    UsageError
        For a word that is none.
    """
    prices = {}
    for text in texts:
        name, equals, usd = text.partition("=")
        if not (name.strip() and equals):
            raise UsageError(f"--price {text!r}: accepted: BOARD=USD or CHIP=USD, such as "
                             "nucleo_f401re=13.5")
        price = read_limits(max_usd=usd).max_price_usd
        try:
            known = load_board(name.strip()).name
        except BoardError:  # the name of a chip
            known = name.strip()
        prices[known] = float(price or 0.0)
    return prices


def describe_price(board: Board) -> str:
    """Say what a board costs, how well that is known, and after whom."""
    if board.price_usd is None:
        return "not known: no public list of it was found"
    fact = next((one for one in board.facts if one.path == "board.price_usd"), None)
    told = "" if fact is None else f" ({fact.kind}: {fact.source})"
    return f"{board.price_usd:g} USD{told}"
