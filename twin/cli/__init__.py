"""The `twin` command: one module per verb; only this package may end the process.

Exit codes: 0 ok, 1 outside the asked limits, 2 usage, 3 a model, board or study refused, 4 link,
5 a tool is missing, 130 interrupted, 141 the reader of our output went away, 70 a bug of ours.
"""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli import (
    attribute,
    boards,
    cache,
    calibrate,
    check,
    compare,
    diagnose,
    diff,
    energy,
    explain,
    firmware,
    imports,
    measure,
    models,
    plan,
    port,
    predict,
    runtimes,
    whatif,
)
from twin.cli.ending import Verbs

app = typer.Typer(
    name="twin", cls=Verbs, no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
    help="Predict what a neural network costs on a microcontroller: cycles, time and energy per "
         "layer, as an itemised bill.",
    epilog="Start with: twin predict kws -b nucleo_l4r5zi")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"twin {version('embedded-twin')}")
        raise typer.Exit()


@app.callback()
def _begin(version: Annotated[bool, typer.Option(
        "--version", is_eager=True, callback=_print_version,
        help="Show the version and exit.")] = False) -> None:
    """Options of the command itself."""


app.command("predict")(predict.predict)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("attribute")(attribute.attribute)
app.command("diagnose")(diagnose.diagnose)
app.command("diff")(diff.diff)
app.command("import")(imports.import_log)
app.command("measure")(measure.measure)
app.command("energy")(energy.energy)
app.command("whatif")(whatif.whatif)
app.command("cache")(cache.cache)
app.command("calibrate")(calibrate.calibrate)
app.command("port")(port.port)
app.command("plan")(plan.plan)
app.add_typer(boards.app, name="boards")
app.command("runtimes")(runtimes.runtimes)
app.add_typer(models.app, name="models")
app.add_typer(firmware.app, name="firmware")
app.command("explain")(explain.explain)


def main() -> None:
    """Run the command line of this process and exit with its code."""
    app()
