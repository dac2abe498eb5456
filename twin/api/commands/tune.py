"""`twin tune`: tiles and levels of our own kernels, chosen by prediction and judged by counts."""

from __future__ import annotations

from functools import partial
from os import fspath
from pathlib import Path

from hwmodels.board.file import load_board
from hwmodels.core.file import list_cores, load_core
from hwmodels.files import File, write_whole
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


def write_tuned(tuned: Tuning, model: File, path: str) -> None:
    """Write what was kept as a study: the network on its board, tuned beside untuned."""
    import yaml

    file, kept = Path(model), tuned.kept
    runtime = {"runtime": f"firmware@{kept.level}"}
    write_whole(path, yaml.safe_dump({
        "schema": 1, "name": f"tuned_{tuned.deployment.graph.name}",
        "question": f"What does the tile kept by twin tune on {tuned.virtual} change?",
        "models": [str(file.resolve()) if file.is_file() else str(model)],
        "boards": [tuned.deployment.board.name],
        "cases": {"untuned": runtime, "tuned": {**runtime, "kernels.tile": str(kept.tile)}},
        "finding": {"vary": "case", "baseline": "untuned", "cells": True,
                    "figures": ["time", "energy", "ram", "flash"]}}, sort_keys=False).encode())
