"""The request for all that is known of a deployment, on one page."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

from hwmodels.files import File
from twin.api.requests import Anyway, Priced, Request, option
from twin.api.requests.studies import Progress

Folder = File | None


class Beside(Request, kw_only=True):
    """What stands beside a prediction on its page."""

    measured: Folder = option(
        None, "--measured", "DIR", "Set it beside a measurement: a folder of `twin measure` or "
        "`twin import`.")
    published: bool = option(
        False, "--published", None, "Set it beside published measurements of this model and "
        "board.")
    power: Folder = option(
        None, "--power", "DIR", "Draw its power over time, with the layers' marks: a folder of "
        "`twin energy`.")
    changes: bool = option(
        True, "--changes/--no-changes", None, "Try settings and rebuilds, and say which helps "
        "most.")


class Report(Beside, Priced):
    """A deployment, several by what they are called, a study, or what a command returned."""

    subject: Any
    _: KW_ONLY
    limits: Mapping[str, Any] | None = None
    chain: bool = False
    anyway: Anyway = False
    command: str = ""
    on_progress: Progress | None = None
