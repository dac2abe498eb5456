"""`twin scenario`: a device over time: duty cycle, sleep, deadlines, heat and a battery."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from hwmodels.quantities import Settings
from twin.api.requests import AUTO, Calibration, Option
from twin.api.requests.scenarios import RunScenario
from twin.cli.options import AsJson, Json, Pictured, command
from twin.cli.output import show_view
from twin.cli.progress import Steps

app = typer.Typer(help="Simulate a device over time: duty cycle, heat, battery.",
                  rich_markup_mode=None, no_args_is_help=True)

ScenarioFile = Annotated[str, RunScenario.option("scenario")]
Keys = Annotated[Settings | None, RunScenario.option("overrides")]
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
@command(view="scenario:scenario_report", warnings=lambda outcome: dict.fromkeys(
    filter(None, [outcome.warming, *outcome.machine.notes])))
def run(scenario: ScenarioFile, board: BoardChoice = None, settings: Keys = None, *,
        plot: Timeline, json: Json, calibration: Calibration = AUTO) -> object:
    """Run a scenario: mean power, missed deadlines, heat, battery life."""
    overrides = {**(settings or {}), **({} if board is None else {"board": board})}
    with Steps("run") as steps:
        steps.tell(0, 1, scenario)
        return twin.run_scenario(scenario, overrides, calibration=calibration)
