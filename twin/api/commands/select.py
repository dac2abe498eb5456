"""`twin select`: boards and libraries ranked for networks under limits."""

from __future__ import annotations

from hwmodels.board.file import list_boards
from twin.api.commands.sweep import check_named, limits_of, list_values, make_deployer
from twin.api.requests import split_words, takes
from twin.api.requests.studies import Select
from twin.studies.axes import make_space
from twin.studies.results import read_objectives
from twin.studies.selection import Selection, select_hardware

HOST = "host"
"""The board that is this machine: no microcontroller to choose."""


@takes(Select)
def select(asked: Select) -> Selection:
    """Rank boards, libraries and accelerators for networks, with a score and what would help.

    A choice for every network and board, best first; the whole table beside it.
    """
    limits = limits_of(asked)
    over = read_objectives(split_words(asked.objectives))
    boards = list_values([name for name in list_boards() if name != HOST]
                         if asked.boards is None else asked.boards)
    space = make_space(list_values(asked.models), boards, runtimes=split_words(asked.runtimes),
                       clocks=split_words(asked.clocks), settings=asked.settings)
    deployer = make_deployer(asked)
    check_named(space, boards, split_words(asked.clocks), deployer)
    return select_hardware(space, limits, deployer, objectives=over, advise=asked.advise,
                           on_progress=asked.on_progress)
