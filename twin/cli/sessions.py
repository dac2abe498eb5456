"""`twin sessions`: runs kept by --keep, each in a folder of its own; `twin bundle`, `reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

import twin
from twin.api.requests import Option
from twin.cli.options import AsJson, command
from twin.cli.output import note_files, note_written, open_console, show, show_json
from twin.errors import UsageError

app = typer.Typer(help="List, compare and clean the runs that --keep kept in a folder.",
                  rich_markup_mode=None, no_args_is_help=True)

Root = Annotated[str, Option("", "DIR", "What was given to --keep.")]
Folders = Annotated[list[str], Option(
    "", "FOLDER...", "Of kept runs, what was given to --keep, or of finished studies.")]
BundleFile = Annotated[str, Option("", "FILE", "A .zip file of `twin bundle`.")]

DIFFERS = 1
"""Exit code where a report is not what it was."""


def run_kept(verb: str, asked: Mapping[str, Any], root: str | None, **aside: Any) -> Any:
    """Run a verb, and keep the run where a folder is given for it; what is aside is not kept."""
    if root is None:
        return getattr(twin, verb)(**asked, **aside)
    result, session = twin.keep(verb, asked, root, command=["twin", *sys.argv[1:]], aside=aside)
    note_written(session.folder)
    return result


@app.command("list")
@command
def list_all(root: Root, as_json: AsJson = False) -> None:
    """List kept runs, oldest first."""
    found = twin.list_sessions(root)
    if as_json:
        show_json(found, kind="sessions")
        return
    from twin.api.sessions.tables import sessions_table

    show(open_console(), sessions_table(found) if found else f"no kept runs in {root}")


@app.command("compare")
@command
def compare(before: Annotated[str, Option("", "BEFORE", "Folder of a run.")],
            after: Annotated[str, Option("", "AFTER", "Folder of another.")],
            as_json: AsJson = False) -> None:
    """Say what two runs were asked, by which versions, and where their results differ."""
    found = twin.compare_sessions(before, after)
    if as_json:
        show_json(found)
        return
    from twin.api.sessions.tables import comparison_report

    show(open_console(), comparison_report(found))


@app.command("clean")
@command
def clean(root: Root,
          newest: Annotated[int, Option("--keep", "N", "How many of the newest stay.")] = 0,
          really: Annotated[bool, Option(
              "--yes", None, "Delete them; without it they are only named.")] = False,
          as_json: AsJson = False) -> None:
    """Delete kept runs but the newest; nothing else in the folder is touched."""
    if newest < 0:
        raise UsageError(f"--keep {newest}: accepted: 0 and more")
    gone = twin.clean_sessions(root, keep_newest=newest, really=really)
    if as_json:
        from twin.reports.outcomes import Removed

        show_json(Removed(folders=gone, really=really))
        return
    for folder in gone:
        show(open_console(), f"{'removed' if really else 'would remove'} {folder}")
    if not gone:
        show(open_console(), f"no more than {newest} kept runs in {root}: nothing to remove")


@command
def bundle(folders: Folders,
           output: Annotated[str, Option("-o --output", "FILE", "The .zip file to write.")],
           as_json: AsJson = False) -> None:
    """Pack kept runs and studies with all they rest on into one file that travels."""
    if not output.lower().endswith(".zip"):
        raise UsageError(f"-o {output}: accepted: a name ending in .zip")
    from twin.cli.options import check_outputs

    check_outputs(output)
    note_files([twin.bundle(folders, output)], as_json)


@command
def reproduce(file: BundleFile,
              folder: Annotated[str | None, Option(
                  "--in", "DIR", "Unpack into this new folder, and leave it there.")
              ] = None,
              build: Annotated[bool, Option(
                  "--build", None, "Let runs of a compiled runtime call the compiler.")] = False,
              as_json: AsJson = False) -> None:
    """Ask everything in a bundle again; exit 1 where a report is not the same to nine digits."""
    from twin.api.sessions.tables import agreement_report

    found = twin.reproduce(file, keep_in=folder, build=build)
    if as_json:
        show_json(found)
    else:
        show(open_console(), agreement_report(found))
    if not all(one.is_same for one in found):
        raise typer.Exit(DIFFERS)
