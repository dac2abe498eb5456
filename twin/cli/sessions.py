"""`twin sessions`: runs kept by --keep, each in a folder of its own; `twin bundle`, `reproduce`."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.api.requests.keeping import Bundle, CleanSessions, CompareSessions, Reproduce
from twin.cli.options import AsJson, Json, check_outputs, command
from twin.cli.output import note_files, open_console, show, show_json, show_view
from twin.errors import UsageError

app = typer.Typer(help="List, compare and clean the runs that --keep kept in a folder.",
                  rich_markup_mode=None, no_args_is_help=True)

Root = Annotated[str, CleanSessions.option("root")]
TABLES = "twin.api.sessions.tables"


@app.command("list")
@command
def list_all(root: Root, as_json: AsJson = False) -> None:
    """List kept runs, oldest first."""
    found = twin.list_sessions(root)
    if as_json:
        show_json(found, kind="sessions")
    elif found:
        show_view(found, f"{TABLES}:sessions_table")
    else:
        show(open_console(), f"no kept runs in {root}")


@app.command("compare")
@command(view=f"{TABLES}:comparison_report")
def compare(asked: CompareSessions, json: Json) -> object:
    """Say what two runs were asked, by which versions, and where their results differ."""
    return twin.compare_sessions(**asked.arguments)


@app.command("clean")
@command
def clean(asked: CleanSessions, as_json: AsJson = False) -> None:
    """Delete kept runs but the newest; nothing else in the folder is touched."""
    newest, really = asked.keep_newest, asked.really
    if newest < 0:
        raise UsageError(f"--keep {newest}: accepted: 0 and more")
    gone = twin.clean_sessions(**asked.arguments)
    if as_json:
        from twin.reports.outcomes import Removed

        show_json(Removed(folders=gone, really=really))
        return
    for folder in gone:
        show(open_console(), f"{'removed' if really else 'would remove'} {folder}")
    if not gone:
        show(open_console(), f"no more than {newest} kept runs in {asked.root}: nothing to remove")


@command
def bundle(asked: Bundle, as_json: AsJson = False) -> None:
    """Pack kept runs and studies, with their inputs, into one file."""
    if not str(asked.path).lower().endswith(".zip"):
        raise UsageError(f"-o {asked.path}: accepted: a name ending in .zip")
    check_outputs(asked.path)
    note_files([twin.bundle(**asked.arguments)], as_json)


@command(view=f"{TABLES}:agreement_report",
         ends=lambda found: any(one.is_same is False for one in found))
def reproduce(asked: Reproduce, json: Json) -> object:
    """Run everything in a bundle again; exit 1 where nine digits of a figure differ."""
    return twin.reproduce(**asked.arguments)
