"""`twin energy`: a recording of a power meter becomes energy per layer and inference."""

from __future__ import annotations

import twin
from twin.api.requests.measurement import Energy
from twin.cli.options import AsJson, command
from twin.cli.output import note_written, open_console, show, show_json, warn


@command
def energy(asked: Energy, as_json: AsJson = False) -> None:
    """Integrate a recording over the marks of the board; intervals say what the meter can tell."""
    from twin.reports.tables.measured import energy_table

    found = twin.energy(**asked.arguments)
    console = open_console()
    if as_json:
        show_json(found)
    else:
        show(console, energy_table(found.measurement))
        accuracy = dict(found.measurement.header.environment)["accuracy"]
        show(console, f"intervals rest on the meter: {accuracy}")
    warn([*([found.doubt] if found.doubt else []), *found.remarks])
    if found.steps is not None and not as_json:
        from twin.reports.tables.microbench import power_table

        show(console, power_table(found.steps, found.idle_mw))
    note_written(found.folder)
