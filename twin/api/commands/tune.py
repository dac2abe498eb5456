"""`twin tune`: tiles and levels of our own kernels, chosen by prediction and judged by counts."""

from __future__ import annotations

from functools import partial
from os import fspath

from hwmodels.board.file import load_board
from hwmodels.core.file import list_cores, load_core
from twin.api.requests import takes
from twin.api.requests.tuning import Tune
from twin.errors import UsageError
from twin.pricing.calibrated import predict_calibrated
from twin.program.image import tuning
from twin.program.image.tuning import Tuning


@takes(Tune)
def tune(asked: Tune) -> Tuning:
    """Choose tile and level of the firmware's kernels for a network.

    The best measured is `kept`; how often prediction was right is in `layers` and `pairs`.
    """
    board = asked.board
    where = asked.virtual or dict(load_board(board).virtual).get("unicorn")
    if where is None:
        raise UsageError(f"tune: no virtual board has the core of {board}; give --virtual")
    if where in list_cores():
        where = load_core(where).traits.emulators.get("board", where)
    predict = partial(predict_calibrated, calibration="none")
    return tuning.tune(fspath(asked.model), board, predict, virtual=where, tiles=asked.tiles,
                       levels=asked.levels, best=asked.best, on_progress=asked.on_progress)
