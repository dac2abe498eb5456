"""`twin scenario`: a device over time: duty cycle, sleep, deadlines, heat and a battery."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.api.requests import AUTO, Calibration, Option
from twin.cli.options import AsJson, Json, Pictured, command
from twin.cli.output import show_view
from twin.cli.progress import Steps
from twin.errors import UsageError

app = typer.Typer(help="Run a device over time: duty cycle, sleep, deadlines, heat, a battery.",
                  rich_markup_mode=None, no_args_is_help=True)

ScenarioFile = Annotated[str, Option(
    "", "SCENARIO", "A scenario of `twin scenario list`, or a .yaml file.")]
Keys = Annotated[list[str] | None, Option(
    "--set", "KEY=VALUE", "A key of the file: board=nucleo_u575zi_q, sensor.hop=20ms, "
    "loads.0.busy=5ms, a what-if path below set.; may be given several times.")]
BoardChoice = Annotated[str | None, Option("--board -b", "BOARD", "In place of the file's board.")]


@app.command("list")
@command
def list_all(as_json: AsJson = False) -> None:
    """List the scenarios that are shipped."""
    show_view(twin.list_scenarios(), "scenario:scenarios_table", as_json=as_json)


class Timeline(Pictured):
    """What a device draws over time as a picture."""

    draw = "power_states:draw_scenario"


@app.command("run")
@command(view="scenario:scenario_report",
         remarks=lambda outcome: dict.fromkeys(outcome.machine.notes))
def run(scenario: ScenarioFile, board: BoardChoice = None, settings: Keys = None, *,
        plot: Timeline, json: Json, calibration: Calibration = AUTO) -> object:
    """Run a scenario: mean power, missed deadlines, heat, battery life."""
    overrides = _parse(settings) | ({} if board is None else {"board": board})
    with Steps("run") as steps:
        steps.tell(0, 1, scenario)
        return twin.run_scenario(scenario, overrides, calibration=calibration)


def _parse(settings: list[str] | None) -> dict[str, object]:
    overrides: dict[str, object] = {}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not (key.strip() and equals and value.strip()):
            raise UsageError(f"--set {setting!r}: KEY=VALUE is expected, such as sensor.hop=20ms")
        if key.strip() in overrides:
            raise UsageError(f"--set {key.strip()}: is set twice")
        overrides[key.strip()] = _value(value.strip())
    return overrides


def _value(text: str) -> object:
    """Return a list of clocks as a list; other values are text a reader of the file understands."""
    if text.startswith("[") and text.endswith("]"):
        return [part.strip() for part in text[1:-1].split(",") if part.strip()]
    return text
