"""`twin diagnose`: which fault of a set-up explains a measurement."""

from __future__ import annotations

from twin.api.requests.attribution import Diagnose
from twin.cli.options import AsJson, Keep, command
from twin.cli.output import open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.sessions import run_kept


@command
def diagnose(asked: Diagnose, page: PageFile = None, as_json: AsJson = False,
             keep: Keep = None) -> None:
    """Rank misconfigurations by how well they explain the whole pattern over layers."""
    check_page(page)
    from twin.cli.progress import Steps

    with Steps("faults predicted") as steps:
        found = run_kept("diagnose", asked.arguments, keep, on_progress=steps.tell)
    if as_json:
        show_json(found)
    else:
        from twin.reports.tables.diagnosis import diagnosis_report

        show(open_console(), diagnosis_report(found))
    warn(found.remarks)
    write_result(found, page)
