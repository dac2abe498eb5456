"""What an emulated board did between readings of its cycle counter, written down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from calibration.errors import MeasurementError
from calibration.virtual_board.costs import Costs
from calibration.virtual_board.kernels import hooks
from calibration.virtual_board.unicorn_board import CYCCNT, Totals, UnicornBoard

MOST_TRACED = 1 << 26
"""Accesses of a trace."""

Blocks = dict[tuple[int, int], tuple[int, int, int]]
"""How often each block (address, bytes) ran, followed itself, was left by a branch."""


class RecordedBoard(UnicornBoard):
    """Keeps what was counted at every reading of the cycle counter, and the accesses between.

    Stalls of data and of code are in 1/64 cycle.
    """

    def __init__(self, name: str, image: str | Path, costs: Costs, room: int) -> None:
        self.recording = False
        self.room = min(room, MOST_TRACED)
        super().__init__(name, image, costs, trace_limit=self.room)

    def start_recording(self) -> None:
        """From now on keep the totals at each reading of CYCCNT, and the accesses between."""
        self.readings: list[Totals] = []
        self.blocks: list[Blocks] = []
        self.stalls: list[tuple[int, int]] = []
        self.state.words[[hooks.TRACE_COUNT, hooks.TRACE_LIMIT]] = 0, self.room
        self.recording = True

    def stop_recording(self) -> tuple[list[Totals], np.ndarray]:
        """Return the totals kept, and the trace: rows of (address, bytes, 1 for a store)."""
        self.recording = False
        at = int(self.state.words[hooks.TRACE_AT])
        packed = self.state.words[at:at + self.state.traced]
        return self.readings, np.column_stack((packed >> 8, packed >> 1 & 0x7F, packed & 1))

    def _read_private(self, _: Any, offset: int, size: int, data: Any) -> int:
        if offset == CYCCNT and self.recording:
            self.readings.append(self.totals())
            self.blocks.append(self._list_blocks())
            self.stalls.append((self.state.stall, self.state.fetch_stall))
        return super()._read_private(_, offset, size, data)

    def _list_blocks(self) -> Blocks:
        base = int(self.state.words[hooks.CODE_BASE])
        slots = self.state.seen[:self.state.seen_count]
        return {(base + 2 * int(slot), int(row[hooks.BYTES])):
                (int(row[hooks.COUNT]), int(row[hooks.AGAIN]), int(row[hooks.TAKEN]))
                for slot, row in zip(slots, self.state.blocks[slots], strict=True)}


@contextlib.contextmanager
def run_recorded(name: str, image: str | Path, *, costs: Costs | None = None, room: int,
                 recording: bool = False) -> Iterator[RecordedBoard]:
    """Run an image as `run_unicorn` does, with room for a trace of accesses.

    Parameters
    ----------
    recording
        Record from the first instruction on.
    """
    board = RecordedBoard(name, image, costs or Costs(), room)
    if recording:
        board.start_recording()
    board.start()
    try:
        yield board
    finally:
        board.stop()


def minus(after: Totals, before: Totals) -> Totals:
    """Return what was done from one time to another."""
    return Totals(**{name: value - getattr(before, name) for name, value in asdict(after).items()})


def layer_spans(readings: list[Totals]) -> list[Totals]:
    """Return what each layer did, from the readings of one recorded run with layers.

    Notes
    -----
    The firmware reads its cycle counter at the start of the run, before and after each layer, and
    at the end.
    """
    inner = readings[1:-1]
    if len(inner) % 2:
        raise MeasurementError(f"{len(readings)} readings of CYCCNT are not those of one run "
                               "that samples its layers")
    return [minus(after, before) for before, after in zip(inner[::2], inner[1::2], strict=True)]
