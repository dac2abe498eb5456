"""`twin whatif`: what a changed board, runtime or placement would do."""

from __future__ import annotations

import twin
from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    AssumeUnsupported,
    BoardName,
    CalibrationChoice,
    ClockText,
    Cold,
    Model,
    RuntimeName,
    SetPaths,
    WeightsRole,
    deploy,
    parse_settings,
)
from twin.cli.output import open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result


def whatif(model: Model, board: BoardName, settings: SetPaths = None, runtime: RuntimeName = None,
           clock: ClockText = None, weights: WeightsRole = None, arena: ArenaRole = None,
           cold: Cold = False, page: PageFile = None, as_json: AsJson = False,
           assume_unsupported: AssumeUnsupported = None,
           calibration: CalibrationChoice = AUTO) -> None:
    """Predict before and after a change, and say which causes moved."""
    check_page(page)
    changes = parse_settings(settings or [])
    deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        calibration=calibration, assume_unsupported=assume_unsupported)
    changed = twin.what_if(deployment, changes, temperature="cold" if cold else "warm",
                           calibration=calibration)
    if as_json:
        show_json(changed)
    else:
        from twin.reports.tables.difference import what_if_report

        show(open_console(), what_if_report(changed))
    warn(changed.remarks)
    write_result(changed, page)
