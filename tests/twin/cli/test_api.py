"""Every command is one function of `twin`, and a module of the command line only calls it."""

from __future__ import annotations

import ast
import inspect
import json
import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import click
import pytest
import typer
from typer.testing import CliRunner

import twin
from twin.api.requests import Option, Priced
from twin.cli import VERBS, app, load_verb
from twin.cli.options import Output, command
from twin.documents import dump_document

CLI = Path(__file__).parents[3] / "twin" / "cli"
NAMES = {
    "import": ["import_log"], "whatif": ["what_if"], "runtimes show": [
        "list_runtimes", "show_runtime"], "runtimes learn": ["learn_runtime"],
    "boards show": ["list_boards", "show_board", "list_virtual_boards"],
    "boards new": ["new_board"], "models": ["list_models"], "models export": ["export_model"],
    "firmware build": ["build_firmware"], "firmware flash": ["flash_firmware"],
    "firmware export": ["export_firmware"], "firmware run": ["run_firmware"],
    "firmware compare": ["compare_firmware"],
    "scenario list": ["list_scenarios"], "scenario run": ["run_scenario"],
    "study list": ["list_studies"], "study run": ["run_study"], "study show": ["open_study"],
    "study pareto": ["study_front"], "study report": ["report_study"],
    "study diff": ["diff_studies"],
    "study sensitivity": ["study_sensitivity"], "sessions list": ["list_sessions"],
    "sessions compare": ["compare_sessions"], "sessions clean": ["clean_sessions"]}
"""Functions of a command where they are not called as it is."""
MAY_IMPORT = ("twin", "twin.cli", "twin.api", "twin.reports", "twin.errors", "twin.interruption",
              "hwmodels.quantities", "hwmodels.errors")
DEPLOYED = ("kws", "-b", "nucleo_l4r5zi")


def list_commands() -> list[str]:
    """Every command of the command line, those of groups as "group command"."""
    found = []
    for name in VERBS:
        verb = load_verb(name)
        if not isinstance(verb, typer.Typer):
            found.append(name)
            continue
        if verb.registered_callback is not None:
            found.append(name)
        found += [f"{name} {one.name or one.callback.__name__}"
                  for one in verb.registered_commands]
    return found


def find_command(name: str) -> click.Command:
    """A command of the command line, by "verb" or "group command"."""
    verb, _, inner = name.partition(" ")
    command = typer.main.get_command(app).get_command(None, verb)
    return command if not inner else command.commands[inner]


@pytest.mark.parametrize("command", list_commands())
def test_every_command_is_a_documented_typed_function(command) -> None:
    for name in NAMES.get(command, [command]):
        function = getattr(twin, name)
        assert name in twin.__all__ and inspect.isfunction(function)
        assert function.__doc__ and function.__module__.startswith(
            ("twin.api.", "twin.runtimes.catalogue"))  # it only reads what there is
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(one.annotation is not inspect.Parameter.empty
                   for one in signature.parameters.values())


def test_every_command_writes_json_where_it_is_asked_to() -> None:
    without = [command for command in list_commands() if not any(
        "--json" in option.opts for option in find_command(command).params)]
    assert not without


@pytest.mark.parametrize(("words", "call"), [
    (("predict", *DEPLOYED), lambda kws: twin.predict(kws)),
    (("whatif", *DEPLOYED, "--set", "placement.arena=sram"),
     lambda kws: twin.what_if(kws, {"placement.arena": "sram"})),
    (("cache", *DEPLOYED), lambda kws: twin.cache(kws)),
    (("plan", *DEPLOYED), lambda kws: twin.plan(kws)),
    (("compare", *DEPLOYED, "--published"),
     lambda kws: twin.compare_published("kws", "nucleo_l4r5zi")),
], ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_function_gives_what_the_command_writes(words, call) -> None:
    ended = CliRunner().invoke(app, [*words, "--json"])
    assert ended.exit_code == 0, ended.stderr
    found = call(twin.deploy("kws", "nucleo_l4r5zi"))
    assert json.loads(dump_document(twin.to_document(found))) == json.loads(ended.stdout)


NAMED = [(path.name, place) for path in sorted(CLI.glob("*.py")) if path.name != "__init__.py"
         for place in re.findall(r'"((?:\w+\.)*\w+:[a-z]\w+)"', path.read_text(encoding="utf-8"))
         if place not in ("module:function", "module:name")]  # As docstrings have it.


@pytest.mark.parametrize(("file", "place"), NAMED, ids=lambda part: part)
def test_what_a_command_shows_results_with_is_there(file, place) -> None:
    module, _, name = place.partition(":")
    found = []
    for home in ("twin.reports.tables.", "twin.reports.figures.", "twin.reports.", ""):
        with suppress(ModuleNotFoundError):
            found.append(getattr(import_module(home + module), name, None))
    assert any(map(callable, found)), file


class Noted(Output):
    note: Annotated[str | None, Option("--note")] = None

    def write(self, found):
        yield self.note, found


def test_an_output_may_be_called_as_its_option() -> None:
    @command
    def answer(note: Noted, asked: Priced) -> object:
        return [*note.write(asked.temperature)]

    assert answer(note="n", temperature=None, calibration=None) == [("n", "warm")]
    assert [*inspect.signature(answer).parameters] == ["note", "temperature", "calibration"]


def modules_imported(tree: ast.Module) -> list[str]:
    """Modules of ours a file imports when it runs; those for types are omitted."""
    for_types = {id(node) for block in ast.walk(tree)
                 if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
                 for node in ast.walk(block)}
    found = []
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return [name for name in found
            if name.partition(".")[0] in ("twin", "calibration", "hwmodels")]


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.stem)
def test_the_command_line_parses_calls_and_prints(path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name in modules_imported(tree):
        assert name == "twin" or any(
            name == one or name.startswith(f"{one}.") for one in MAY_IMPORT[1:]), name
    over = [ast.unparse(node.iter) for node in ast.walk(tree)
            if isinstance(node, ast.For | ast.comprehension)]
    assert not [text for text in over if "layers" in text or "epochs" in text]


def test_what_has_no_document_is_refused() -> None:
    with pytest.raises(twin.TwinError, match="no JSON document of 'int'; accepted: Prediction"):
        twin.to_document(3)
