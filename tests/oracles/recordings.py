"""Readings of a cycle counter, cut into layers."""

from __future__ import annotations

from calibration.errors import MeasurementError
from calibration.virtual_board.unicorn_board import Totals


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
    return [after.minus(before) for before, after in zip(inner[::2], inner[1::2], strict=True)]
