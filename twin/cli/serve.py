"""`twin serve`: the live what-if in a browser."""

from __future__ import annotations

import sys

import typer

import twin
from twin.api.commands.serve import is_loopback
from twin.api.requests.serving import Serve
from twin.cli.ending import complain
from twin.cli.options import AsJson, command
from twin.cli.output import show_json


@command
def serve(asked: Serve, as_json: AsJson = False) -> None:
    """Open the live what-if: turn clock, caches, places, library, and see the bill at once."""
    def tell(address: str) -> None:
        if as_json:
            from twin.reports.outcomes import Serving

            show_json(Serving(address=address, open_wide=open_wide))
            sys.stdout.flush()
        else:
            typer.echo(f"serving at {address}")
        complain("Ctrl-C ends it")
        if open_wide:
            complain(f"warning: listening at {asked.host}: whoever reaches this machine may "
                     "predict here and upload models, without a password")

    open_wide = not is_loopback(asked.host)
    twin.serve(**asked.arguments, on_ready=tell)
    complain("ended")
