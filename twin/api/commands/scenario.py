"""`twin scenario`: a device over time: duty cycle, sleep, deadlines, heat and a battery."""

from __future__ import annotations

from os import fspath

from twin.api.requests import takes
from twin.api.requests.scenarios import RunScenario
from twin.studies.scenario import outcome
from twin.studies.scenario import scenario as scenarios
from twin.studies.scenario.outcome import Outcome
from twin.studies.scenario.scenario import Scenario


@takes(RunScenario)
def run_scenario(asked: RunScenario) -> Outcome:
    """Run a device over time: what it draws, what it misses, how long its battery lasts.

    At the prediction, and at both ends of its intervals. `overrides` are dotted keys in place of
    the file's: {"board": "nucleo_u575zi_q", "sensor.hop": "20ms"}.

    Raises
    ------
    TwinError
        Naming file and key, or a fact of the board that is not known.
    """
    return outcome.run_scenario(fspath(asked.scenario), asked.overrides,
                                calibration=fspath(asked.calibration))


def list_scenarios() -> dict[str, Scenario]:
    """Return the shipped scenarios by name."""
    return {name: scenarios.load_scenario(name) for name in scenarios.list_scenarios()}
