"""One inference written down: instructions, loads, stores, blocks and every access, per layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.collecting.link import Link
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.session import Session
from calibration.virtual_board.costs import Costs
from calibration.virtual_board.unicorn_board import Totals
from hwmodels.frozen import entity
from tests.oracles.recordings import Blocks as Rows
from tests.oracles.recordings import layer_spans, run_recorded

RUN_S = 600.0
"""Longest wait for a traced run: a few thousand times the run itself."""

Blocks = dict[tuple[int, int], int]
"""How often each block ran, by its address and size in bytes."""


@entity
class LayerRecord:
    """What one layer of a real binary did on an emulated core.

    Parameters
    ----------
    index : int
        In the model file.
    totals : Totals
        Counted from the reading of the cycle counter before the layer to the one after it: some
        instructions of reading and calling are in it, the same for every layer.
    accesses : ndarray of int64, shape (accesses, 3)
        (address, bytes, 1 for a store), in order. A conditional access whose condition fails is
        none.
    blocks : dict
        Times each block ran.
    taken : dict
        Times each block followed itself or was left by a branch: its last branch was taken.
    stalls : tuple of int
        Waits for data and for code, in 1/64 cycle of the planted costs.
    """

    index: int
    totals: Totals
    accesses: np.ndarray
    blocks: Blocks
    taken: Blocks
    stalls: tuple[int, int]


def record_inference(name: str, image: str | Path, data: bytes, *, costs: Costs | None = None,
                     warmup: int = 0, room: int = 1 << 24) -> tuple[LayerRecord, ...]:
    """Run one inference on an emulated core and return what each layer did.

    Parameters
    ----------
    name : str
        Port of the image: "unicorn-m4", "unicorn-m7" or "unicorn-m33".
    image : path
        ELF file.
    data : bytes
        The network's input.
    costs : Costs, optional
        Planted; caches among them count misses.
    warmup : int
        Runs before, so that caches are warm.
    room : int
        Accesses there is room for; what comes after is counted and not kept.

    Returns
    -------
    tuple of LayerRecord
        In the order of the calls.
    """
    with run_recorded(name, image, costs=costs, room=room) as board, \
            Link(board.port) as link:
        session = Session(link, return_s=0.0)
        session.open(10.0)
        layers = [session.layer(i).model_layer for i in range(session.identify().layers)]
        session.load(data)
        session.configure(warmup=warmup, flags=wire.CONFIG_FLAGS["LAYERS"])
        if warmup:
            session.run(0, 1, timeout_s=RUN_S, expected_s=RUN_S)
        board.start_recording()
        session.run(1, 1, timeout_s=RUN_S, expected_s=RUN_S)
        readings, trace = board.stop_recording()
        kept, waits = board.blocks, board.stalls
        session.stop()
    records = []
    for place, (index, totals) in enumerate(zip(layers, layer_spans(readings), strict=True)):
        first, last = 1 + 2 * place, 2 + 2 * place
        records.append(LayerRecord(
            index=index, totals=totals,
            blocks=_difference(_runs(kept[first]), _runs(kept[last])),
            taken=_difference(_branches(kept[first]), _branches(kept[last])),
            stalls=(waits[last][0] - waits[first][0], waits[last][1] - waits[first][1]),
            accesses=trace[readings[first].accesses:readings[last].accesses]))
    return tuple(records)


def _runs(rows: Rows) -> Blocks:
    return {key: row[0] for key, row in rows.items()}


def _branches(rows: Rows) -> Blocks:
    return {key: row[1] + row[2] for key, row in rows.items()}


def _difference(before: Blocks, after: Blocks) -> Blocks:
    return {key: count - before.get(key, 0) for key, count in after.items()
            if count > before.get(key, 0)}
