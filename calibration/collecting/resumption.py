"""An interrupted measurement, and how much of it is there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from calibration.collecting.board_samples import counter_name
from calibration.collecting.plan import Pass
from calibration.collecting.wire import payloads as wire
from calibration.errors import MeasurementError
from calibration.measurement.measurement import (
    HEADER_FILE,
    RUNS_ASKED,
    Measurement,
    read_measurement,
)
from calibration.measurement.sample import Header

SAME = ("firmware_sha256", "port", "compiler", "unique_id", "interrupts", "warmup", RUNS_ASKED)
"""What of the environment must be as it was; the line, the host and its load may have changed."""


def read_interrupted(folder: Path, header: Header) -> Measurement | None:
    """Return what a folder has of a measurement; None where it has not begun.

    Parameters
    ----------
    folder : Path
        Of one temperature.
    header : Header
        What the runs to come would be written under.

    Raises
    ------
    MeasurementError
        When they would not be of the same kind, naming what differs.
    """
    if not (folder / HEADER_FILE).exists():
        return None
    found = read_measurement(folder, growing=True)
    differing = [f"{name} ({old} then, {new} now)"
                 for (name, old), (_, new) in zip(_essence(found.header), _essence(header),
                                                  strict=True) if old != new]
    if differing:
        raise MeasurementError(f"{folder}: cannot be gone on with, other runs would be mixed in; "
                               f"differing: {', '.join(differing)}. Give another folder")
    return found


def _essence(header: Header) -> list[tuple[str, object]]:
    told = dict(header.environment)
    return [*((one.name, getattr(header, one.name)) for one in fields(header)
              if one.name not in ("environment", "source")),
            *((name, told.get(name)) for name in SAME)]


def count_runs(there: Measurement | None, one: Pass, counters: Sequence[wire.Counter]) -> int:
    """Return how many runs of a pass are there: those with its first event, or all.

    Notes
    -----
    No two passes count the same event; only a plan of one pass counts none.
    """
    if there is None:
        return 0
    name = next((counter_name(counter) for counter in counters
                 if one.events and counter.id == one.events[0]), "output_checksum")
    return there.count(name)
