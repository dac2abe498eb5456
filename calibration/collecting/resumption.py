"""An interrupted measurement, and how much of it is there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibration.collecting.board_samples import counter_name
from calibration.collecting.plan import Pass
from calibration.collecting.wire import payloads as wire
from calibration.errors import MeasurementError
from calibration.measurement.lines import cut_unended
from calibration.measurement.measurement import (
    HEADER_FILE,
    RUNS_ASKED,
    SAMPLES_FILE,
    Measurement,
    flatten_header,
    read_header,
    read_measurement,
)
from calibration.measurement.sample import Header

SAME = ("firmware_sha256", "port", "compiler", "unique_id", "interrupts", "warmup", RUNS_ASKED)
"""What of the environment must be as it was; the line, the host and its load may have changed."""


def read_interrupted(folder: Path, header: Header) -> Measurement | None:
    """Return what a folder has of a measurement; None where it has not started.

    Parameters
    ----------
    header
        What the runs to come would be written under.

    Raises
    ------
    MeasurementError
        When they would not be of the same kind, naming what differs.

    Notes
    -----
    Settings and surroundings are written before the runs they are of, so a run that did not end
    leaves some. What stands behind the last whole run is cut: it would count as a run of its own.
    """
    if not (folder / HEADER_FILE).exists():
        return None
    then, now = _essence(read_header(folder)), _essence(header)
    for name in then | now:
        old, new = then.get(name), now.get(name)
        if old != new:
            raise MeasurementError(f"{folder}: cannot be resumed: {name} was {_say(old)}, now "
                                   f"{_say(new)}; ask for what it was started with, or give "
                                   "another folder")
    cut_unended(folder / SAMPLES_FILE)
    return read_measurement(folder, growing=True)


def next_run(there: Measurement | None) -> int:
    """Return the number of the run after the last; the first inference after set-up is none."""
    return max((sample.run for sample in there.samples if sample.counter == "output_checksum"),
               default=-1) + 1 if there else 0


def _essence(header: Header) -> dict[str, object]:
    """Return what must be the same by its name, most decisive first."""
    header_values = flatten_header(replace(header, environment=(), source=""))
    environment = header.facts
    return {name.replace("_", " "): value for name, value in
            (*header_values.items(), *((name, environment.get(name)) for name in SAME))}


def _say(value: object) -> str:
    """Say a value shortly: of a hash its beginning."""
    return "not known" if value is None else str(value)[
        :12 if isinstance(value, str) and len(value) == 64 else 60]


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
