"""Requests for kept runs: compared, cleaned, bundled, reproduced."""

from collections.abc import Sequence
from dataclasses import KW_ONLY

from hwmodels.files import File
from twin.api.requests import Request, option, required


class CompareSessions(Request):
    """Two kept runs."""

    before: File = required("", "BEFORE", "Folder of a run.")
    after: File = required("", "AFTER", "Folder of another.")


class CleanSessions(Request):
    """A folder of kept runs, and how many stay."""

    root: File = required("", "DIR", "Folder that was given to --keep.")
    _: KW_ONLY
    keep_newest: int = required("--keep", "N", "How many of the newest stay.", default=0)
    really: bool = option(False, "--yes", None, "Delete them; without it they are only named.")


class Bundle(Request):
    """What is packed, and the file it is packed into."""

    folders: Sequence[File] = required(
        "", "FOLDER...", "Folders that were given to --keep, or of finished studies.",
        text=list[str])
    path: File = required("-o --output", "FILE", "The .zip file to write.")


class Reproduce(Request):
    """A bundle, and what may be done with it."""

    path: File = required("", "FILE", "A .zip file of `twin bundle`.")
    _: KW_ONLY
    keep_in: File | None = option(
        None, "--in", "DIR", "Unpack into this new folder, and leave it there.")
    build: bool = option(
        False, "--build", None, "Let runs of a compiled runtime call the compiler.")
