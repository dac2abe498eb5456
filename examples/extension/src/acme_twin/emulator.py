"""An emulator for `twin measure --virtual acme-m4`: here the project's own, started by a package.

`PORT` is the port of the firmware whose images it runs, `run` a context manager that starts one and
yields where its serial line is. Counters that only grow may be given as `gauges`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibration.virtual_board import Launched
from calibration.virtual_board.costs import costs_of
from calibration.virtual_board.unicorn_board import run_unicorn
from hwmodels.board.facts import Board

PORT = "unicorn-m4"


@contextmanager
def run(image: Path, board: Board | None) -> Iterator[Launched]:
    """Run an image for as long as the context lasts, with the costs of a board."""
    with run_unicorn(PORT, image, costs=None if board is None else costs_of(board)) as emulated:
        yield Launched(port=emulated.port, failure=lambda: emulated.failure,
                       gauges=emulated.gauges)
