"""Requests for the bill of a network on a board, and for what a change does to it."""

from dataclasses import dataclass

from twin.requests.options import BoardName, Deployed, Model, Priced


@dataclass(frozen=True)
class Predict(Deployed, Priced):
    """A network on a board, and its bill."""

    model: Model
    board: BoardName
