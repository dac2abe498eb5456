"""`twin tune`: tiles and levels of our own kernels, chosen by prediction and judged by counts."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from hwmodels.board.file import load_board
from hwmodels.core.file import list_cores, load_core
from twin.errors import UsageError
from twin.studies import tune as tuning
from twin.studies.tune import Told, Tuning


def tune(model: str | PathLike[str], board: str, *, virtual: str | None = None,
         tiles: Sequence[int] = (), levels: Sequence[str] = ("O2",), best: int = 3,
         on_progress: Told | None = None) -> Tuning:
    """Choose tile and level of the firmware's kernels for a network.

    Parameters
    ----------
    model, board
        As for `deploy`.
    virtual : str, optional
        Where the best few run; by default the Unicorn board of its core.
    tiles, levels, best
        What is tried, and how many are run.
    on_progress : callable, optional
        Told (builds done, builds, the next one's name).

    Returns
    -------
    Tuning
        The best measured is `kept`; how often prediction was right is in `layers` and `pairs`.
    """
    where = virtual or dict(load_board(board).virtual).get("unicorn")
    if where is None:
        raise UsageError(f"tune: no virtual board has the core of {board}; give --virtual")
    if where in list_cores():
        where = load_core(where).traits.emulators.get("board", where)
    return tuning.tune(fspath(model), board, virtual=where, tiles=tiles, levels=levels, best=best,
                       on_progress=on_progress)
