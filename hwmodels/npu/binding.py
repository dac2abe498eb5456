"""Which interface each stream engine of an epoch is bound to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwmodels.board.npu import Npu
from hwmodels.npu.epoch import StreamEngine


def bind_engines(engines: Sequence[StreamEngine], npu: Npu) -> tuple[StreamEngine, ...]:
    """Give engines numbers and spread them over the interfaces, the largest first, by beats.

    Parameters
    ----------
    engines : sequence of StreamEngine
        Not yet bound.
    npu : Npu
        Its interfaces; reads and writes are channels of their own.

    Returns
    -------
    tuple of StreamEngine
        Inputs before outputs, numbered from 0.
    """
    ordered = [e for e in engines if e.direction == "in"]
    ordered += [e for e in engines if e.direction == "out"]
    load = {(interface.name, direction): 0
            for interface in npu.interfaces for direction in ("in", "out")}
    bound: dict[int, StreamEngine] = {}
    beats = [_count_beats(engine, npu) for engine in ordered]
    for place in sorted(range(len(ordered)), key=lambda i: (-beats[i], i)):
        engine = ordered[place]
        # Engines that write go where fewer bytes are read too: the two meet at the pools.
        name = min((interface.name for interface in npu.interfaces),
                   key=lambda name: (load[name, engine.direction], load[name, "in"]))
        load[name, engine.direction] += beats[place]
        bound[place] = engine.bound(place, name)
    return tuple(bound[place] for place in range(len(ordered)))


def _count_beats(engine: StreamEngine, npu: Npu) -> int:
    width = npu.interfaces[0].width_bytes
    run = engine.run_bytes if engine.pattern != "contiguous" else engine.bytes
    runs = math.ceil(engine.bytes / max(1, run))
    return engine.repeats * runs * math.ceil(max(1, run) / width)
