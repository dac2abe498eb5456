"""Requests for kept runs: compared, cleaned, bundled, reproduced."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from hwmodels.files import File
from twin.api.requests import Option, Request, option


@dataclass(frozen=True)
class CompareSessions(Request):
    """Two kept runs."""

    before: Annotated[File, Option("", "BEFORE", "Folder of a run.")]
    after: Annotated[File, Option("", "AFTER", "Folder of another.")]


@dataclass(frozen=True)
class CleanSessions(Request):
    """A folder of kept runs, and how many stay."""

    root: Annotated[File, Option("", "DIR", "Folder that was given to --keep.")]
    _: KW_ONLY
    keep_newest: Annotated[int, Option("--keep", "N", "How many of the newest stay.", default=0)]
    really: bool = option(False, "--yes", None, "Delete them; without it they are only named.")


@dataclass(frozen=True)
class Bundle(Request):
    """What is packed, and the file it is packed into."""

    folders: Annotated[Sequence[File], Option(
        "", "FOLDER...", "Folders that were given to --keep, or of finished studies.",
        text=list[str])]
    path: Annotated[File, Option("-o --output", "FILE", "The .zip file to write.")]


@dataclass(frozen=True)
class Reproduce(Request):
    """A bundle, and what may be done with it."""

    path: Annotated[File, Option("", "FILE", "A .zip file of `twin bundle`.")]
    _: KW_ONLY
    keep_in: File | None = option(
        None, "--in", "DIR", "Unpack into this new folder, and leave it there.")
    build: bool = option(
        False, "--build", None, "Let runs of a compiled runtime call the compiler.")
