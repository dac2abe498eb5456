"""`twin tune`: tiles and levels of our own kernels, chosen by prediction and judged by counts."""

from __future__ import annotations

import twin
from twin.api.requests.tuning import Tune
from twin.cli.options import AsJson, command
from twin.cli.output import open_console, show, show_json
from twin.cli.progress import Steps


@command
def tune(asked: Tune, as_json: AsJson = False) -> None:
    """Choose the tile of the firmware's kernels by prediction; run the best few, keep the best."""
    with Steps("built and run") as steps:
        tuned = twin.tune(**asked.arguments, on_progress=steps.tell)
    if as_json:
        show_json(tuned)
        return
    from twin.reports.tables.tuning import tuning_report

    show(open_console(), tuning_report(tuned))
