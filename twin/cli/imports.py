"""`twin import`: a log of a public tool becomes a measurement folder."""

from __future__ import annotations

import twin
from twin.api.requests.measurement import Import
from twin.cli.options import AsJson, command
from twin.cli.output import note_written, open_console, show, show_json, warn


@command
def import_log(asked: Import, as_json: AsJson = False) -> None:
    """Read a log of a public tool into a measurement folder."""
    found = twin.import_log(**asked.arguments)
    measurement = found.measurement
    if as_json:
        show_json(found)
    else:
        show(open_console(), f"{measurement.header.kind}: {count(len(measurement.runs), 'run')}, "
                             f"{count(len(measurement.layers), 'layer')}, "
                             f"{count(len(measurement.counters), 'counter')}, "
                             f"{count(len(measurement.samples), 'value')}")
    warn(found.remarks)
    note_written(found.folder)


def count(number: int, what: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
