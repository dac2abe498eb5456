"""Commands that open and explain: the live page, the networks there are, the words of reports."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import twin
from twin.api.requests import Option
from twin.api.requests.serving import Serve
from twin.cli.ending import complain
from twin.cli.options import AsJson, command
from twin.cli.output import note_files, show_json, show_view
from twin.errors import UsageError

Words = Annotated[list[str] | None, Option(
    "", "[TERM]", "A cause, event or metric, such as flash_wait or IPC; `paths BOARD`: what --set "
    "takes.")]

app = typer.Typer(help="List the networks of the zoo, or export one.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
@command
def models(context: typer.Context, as_json: AsJson = False) -> None:
    """List the networks of the zoo, or export one."""
    if context.invoked_subcommand is None:
        show_view(twin.list_models(), "catalogue:models_table", as_json=as_json)


@app.command("export")
@command
def export(
    name: Annotated[str, Option("", "NAME", "A network of `twin models`, or a file that holds a "
                                "model.")],
    file: Annotated[str, Option("", "FILE", "Where to: .tflite or .onnx.")],
    as_json: AsJson = False,
) -> None:
    """Write a network of the zoo, or the model inside a file, as a .tflite or .onnx file."""
    note_files([twin.export_model(name, file)], as_json)


@command
def explain(words: Words = None, as_json: AsJson = False) -> None:
    """Explain a term of the reports; without one, list them."""
    words = words or []
    if words[:1] == ["paths"]:
        if len(words) > 2:
            raise UsageError(f"{' '.join(words)}: accepted: one board")
        show_view(twin.list_paths(*words[1:]), "catalogue:paths_table", as_json=as_json)
    elif words == ["features"]:
        show_view(twin.list_features(), "catalogue:features_table", as_json=as_json)
    elif words:
        show_view(twin.explain(" ".join(words)), "catalogue:entry_report", as_json=as_json)
    else:
        show_view(twin.list_terms(), "catalogue:terms_table", as_json=as_json)


@command
def serve(asked: Serve, as_json: AsJson = False) -> None:
    """Open the live what-if page: change settings, see the bill."""
    from twin.api.live.serve import is_loopback

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
