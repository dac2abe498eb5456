"""The `twin` command: one module per verb; only this package may end the process.

Exit codes: 0 ok, 1 outside the asked limits, 2 usage, 3 a model, board or study refused, 4 link,
5 a tool is missing, 130 interrupted, 141 the reader of our output went away, 70 a bug of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from twin.cli.ending import Once, Verbs

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Predict": {"predict": "predict:predict", "whatif": "whatif:whatif",
                "transform": "whatif:transform", "cache": "whatif:cache",
                "port": "whatif:port"},
    "Decide": {"check": "decide:check", "sweep": "decide:sweep",
               "select": "decide:select", "advise": "decide:advise",
               "study": "study:app", "guidelines": "decide:guidelines",
               "accuracy": "decide:accuracy",
               "scenario": "scenario:app", "tune": "decide:tune"},
    "Measure": {"plan": "whatif:plan", "measure": "measure:measure",
                "import": "measure:import_log", "energy": "measure:energy",
                "firmware": "firmware:app", "doctor": "boards:doctor"},
    "Learn": {"compare": "learn:compare", "attribute": "learn:attribute",
              "diagnose": "learn:diagnose", "why": "learn:why",
              "diff": "learn:diff", "calibrate": "learn:calibrate"},
    "Share": {"report": "report:report", "serve": "share:serve", "boards": "boards:app",
              "runtimes": "runtimes:app", "models": "share:app",
              "sessions": "sessions:app", "bundle": "sessions:bundle",
              "reproduce": "sessions:reproduce",
              "explain": "share:explain"},
}
"""Where each verb is, "module:function" of this package, by what it is for; only the one that is
named is loaded."""

VERBS: Mapping[str, str] = {name: place for verbs in GROUPS.values()
                            for name, place in verbs.items()}

LONGEST_SUMMARY = 62
"""Characters of a summary that a terminal of 80 columns has room for, behind the name."""


def shorten(text: str | None) -> str:
    """Return the first sentence of a help text up to a semicolon, or fewer clauses if it is long.

    A summary ends at a mark of punctuation, never in "...".
    """
    said = " ".join((text or "").partition("\n\n")[0].split()).partition("; ")[0].rstrip(".")
    ends = [mark.start() for mark in re.finditer(r"[:,] | \(", said)]
    return said[:max((end for end in [*ends, len(said)] if end <= LONGEST_SUMMARY), default=None)]


@cache
def _read_examples() -> list[str]:
    return (Path(__file__).parent / "examples.yaml").read_text(encoding="utf-8").splitlines()


def show_examples(command: Any, name: str) -> Any:
    """Put the examples of a command under the first line of its help; return the command."""
    shown = [f"  {line[2:]}" for line in _read_examples() if f"{line} ".startswith(f"- {name} ")]
    command.short_help = shorten(command.help)
    if shown:
        head, _, rest = (command.help or "").partition("\n\n")
        command.help = "\n\n".join([head, "\n".join(["\b", "Examples:", *shown]), rest])
    return command


def load_verb(name: str) -> Any:
    """Return the function of a verb, or the group of commands it is."""
    module, _, verb = VERBS[name].partition(":")
    return getattr(import_module(f"twin.cli.{module}"), verb)


class LateVerbs(Verbs):
    """The verbs by name, each loaded when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(VERBS)  # For the help and for suggestions.

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load a verb; None where there is none of that name."""
        if cmd_name not in VERBS:
            return None
        verb = load_verb(cmd_name)
        if isinstance(verb, typer.Typer):
            group = typer.main.get_group(verb)
            group.name = cmd_name
            for name, command in group.commands.items():
                show_examples(command, f"twin {cmd_name} {name}")
            return show_examples(group, f"twin {cmd_name}")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None,
                            pretty_exceptions_enable=False)
        alone.command(cmd_name, cls=Once)(verb)
        return show_examples(typer.main.get_command(alone), f"twin {cmd_name}")

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the verbs in their groups."""
        from twin.cli.summaries import summarise

        for group, verbs in GROUPS.items():
            texts = {name: summarise(place) or self.get_command(ctx, name).help
                     for name, place in verbs.items()}
            with formatter.section(group):
                formatter.write_dl([(name, shorten(text)) for name, text in texts.items()],
                                   col_spacing=2 + max(map(len, VERBS)) - max(map(len, verbs)))


app = typer.Typer(
    name="twin", cls=LateVerbs, no_args_is_help=True, add_completion=False, rich_markup_mode=None,
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
def _begin(version: Annotated[bool, typer.Option("--version", is_eager=True,
        callback=_print_version, help="Show the version and exit.")] = False) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command line of this process and exit with its code."""
    app()
