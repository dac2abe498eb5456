"""Tiled loops as tasks: bring a tile, compute it, take its result away, with one or two buffers.

With two buffers the next tile is brought, and the last result taken away, while one is computed:

    first in | max(compute 1, in 2) | max(compute 2, in 3, out 1) | ... | last out
    prologue | steady state ...                                        | epilogue

With one, the three follow one another for each tile.

References
----------
.. [1] Burrello et al., "DORY: Automatic End-to-End Deployment of Real-World DNNs on Low-Cost IoT
   MCUs", IEEE Transactions on Computers 70(8), 2021.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hwmodels.board.npu import Npu
from hwmodels.frozen import frozen
from hwmodels.schedule.run import run_tasks
from hwmodels.schedule.task import Task, Transfer, UnitWork

_Step = tuple[tuple[UnitWork, ...], tuple[Transfer, ...], int]
"""Work and transfers beside it, and cycles to start them."""


@frozen
class Tile:
    """One tile.

    Parameters
    ----------
    units
        What is computed of it.
    reads, writes
        What is brought to the local memory before, and taken away after; channels are given here.
    start_cycles
        To program units and transfers of it.
    """

    units: tuple[UnitWork, ...]
    reads: tuple[Transfer, ...] = ()
    writes: tuple[Transfer, ...] = ()
    start_cycles: int = 0


def pipeline_tiles(task: Task, tiles: Sequence[Tile], buffers: int) -> tuple[Task, ...]:
    """Return the tasks of a tiled loop.

    Parameters
    ----------
    task
        Its name, kind, layers and operations; its host cycles go before the first and after the
        last, its start is that of the first.
    tiles
        In order; at least one.
    buffers
        Of each operand in the local memory: 1 or 2.
    """
    kept = _list_steps(tiles, buffers)
    made = [replace(
        _make_task(step), name=task.name if len(kept) == 1 else f"{task.name}.{number}",
        kind=task.kind, layers=task.layers, operations=task.operations)
        for number, step in enumerate(kept)]
    made[0] = replace(made[0], host_before_cycles=task.host_before_cycles,
                      start_cycles=made[0].start_cycles + task.start_cycles)
    made[-1] = replace(made[-1], host_after_cycles=task.host_after_cycles)
    return tuple(made)


def bill_tiles(ways: Sequence[tuple[Sequence[Tile], int]], npu: Npu) -> list[int]:
    """Return the cycles of tiled loops, each of tiles and buffers: those its tasks are billed."""
    counted = [Counter(_list_steps(tiles, buffers)) for tiles, buffers in ways]
    steps = list(dict.fromkeys(itertools.chain.from_iterable(counted)))
    cycles = {step: run.core_npu_cycles for step, run in zip(
        steps, run_tasks(map(_make_task, steps), npu), strict=True)}
    return [sum(cycles[step] * often for step, often in one.items()) for one in counted]


def _list_steps(tiles: Sequence[Tile], buffers: int) -> list[_Step]:
    nothing = Tile(units=())
    if buffers == 1:
        steps: list[_Step] = [step for tile in tiles for step in (
            ((), tile.reads, tile.start_cycles), (tile.units, (), 0), ((), tile.writes, 0))]
    else:
        steps = [(tile.units, (*before.writes, *after.reads), tile.start_cycles)
                 for before, tile, after in _threes([nothing, *tiles, nothing])]
    return [step for step in steps if step[0] or step[1]]


def _make_task(step: _Step) -> Task:
    units, moved, start = step
    return Task(name="", units=units, start_cycles=start, transfers=tuple(
        replace(one, channel=channel, overlaps="task") for channel, one in enumerate(moved)))


def _threes(tiles: Sequence[Tile]) -> Iterator[tuple[Tile, Tile, Tile]]:
    """Yield each tile with those around it; nothing is before the first and behind the last."""
    ends = Tile(units=())
    yield from zip((ends, *tiles[:-1]), tiles, (*tiles[1:], ends), strict=True)


def count_tiles(extent: int, step: int) -> list[int]:
    """Return the sizes an extent is cut into: all of one step but the last."""
    return [min(step, extent - start) for start in range(0, extent, step)]


def cut_rows(rows: int, step: int, kernel: int, stride: int, before: int,
             inputs: int) -> list[tuple[int, int]]:
    """Return rows of outputs and of inputs of each tile; what a window reaches over comes twice.

    Parameters
    ----------
    rows, step
        Outputs in all, and of a tile.
    kernel, stride, before
        Of the window, and rows of padding above it.
    """
    ends = list(itertools.accumulate(count_tiles(rows, step), initial=0))
    return [(last - first, max(0, min(inputs, (last - 1) * stride - before + kernel)
                               - max(0, first * stride - before)))
            for first, last in itertools.pairwise(ends)]
