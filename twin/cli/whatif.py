"""`twin whatif`: what a changed board, runtime or placement would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import twin
from twin.api.requests import BoardName, Deployed, Model, Option, Priced, parse_settings
from twin.cli.options import AsJson, command, place
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.progress import Steps

PlotTarget = Annotated[str | None, Option(
    "--plot", "FILE", "Write causes before and after as a picture (.png, .svg, .pdf); into a "
    "folder (DIR/): also every step of several --set, each on top of those before.")]


@command
def whatif(model: Model, board: BoardName, placed: Deployed, priced: Priced,
           page: PageFile = None, as_json: AsJson = False, plot: PlotTarget = None) -> None:
    """Predict before and after a change, and say which causes moved."""
    check_page(page)
    if plot is not None:
        from twin.reports.figures.sheet import check_target

        check_target(plot)
    changes = placed.changes or parse_settings([])
    deployment = place(model, board, replace(placed, changes=None), priced.calibration)
    with Steps("predicted") as steps:
        steps.tell(0, 1, "before and after")
        changed = twin.what_if(deployment, changes, **priced.arguments)
    if as_json:
        show_json(changed)
    else:
        from twin.reports.tables.difference import what_if_report

        show(open_console(), what_if_report(changed))
    warn(changed.remarks)
    write_result(changed, page)
    if plot is not None:
        from twin.reports.figures.changes import write_change_pictures
        from twin.reports.figures.sheet import is_folder

        items = list(changes.items())
        names = [f"{path}={value}" for path, value in items]
        stages = []
        with Steps("drawn") as steps:
            for done in range(1, len(names) if is_folder(plot) else 1):
                steps.tell(done - 1, len(names), names[done - 1])
                stages.append((names[done - 1], twin.predict(
                    deployment.replace(dict(items[:done])), **priced.arguments)))
            stages.append((names[-1] if stages else ", ".join(names), changed.after))
            steps.tell(len(stages) - 1, len(stages), plot)
            paths = write_change_pictures(changed.before, stages, plot)
        for path in paths:
            note_written(path)
