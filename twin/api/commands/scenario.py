"""`twin scenario`: a device over time: duty cycle, sleep, deadlines, heat and a battery."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from twin.studies.scenario import outcome
from twin.studies.scenario import scenario as scenarios
from twin.studies.scenario.outcome import Outcome
from twin.studies.scenario.scenario import Scenario

__all__ = ["list_scenarios", "run_scenario"]


def run_scenario(scenario: str | PathLike[str], overrides: Mapping[str, object] | None = None, *,
                 calibration: str | PathLike[str] = "auto") -> Outcome:
    """Run a device over time: what it draws, what it misses, how long its battery lasts.

    Parameters
    ----------
    scenario : str or path
        One of `list_scenarios`, or a .yaml file.
    overrides : mapping of str to object, optional
        Dotted keys in place of the file's: {"board": "nucleo_u575zi_q", "sensor.hop": "20ms"}.
    calibration : str or path
        As for `predict`.

    Returns
    -------
    Outcome
        At the prediction, and at both ends of its intervals.

    Raises
    ------
    TwinError
        Naming file and key, or a fact of the board that is not known.
    """
    return outcome.run_scenario(fspath(scenario), overrides, calibration=fspath(calibration))


def list_scenarios() -> dict[str, Scenario]:
    """Return the shipped scenarios by name."""
    return {name: scenarios.load_scenario(name) for name in scenarios.list_scenarios()}
