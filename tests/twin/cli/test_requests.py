"""Arguments are declared once: options, functions and kept runs derive from requests."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Annotated

import pytest
from typer.testing import CliRunner

import twin
from twin.api.requests import (
    Deployed,
    Option,
    Placed,
    Predict,
    Priced,
    attribution,
    firmware,
    keeping,
    prediction,
)
from twin.api.requests.advice import Advise
from twin.api.requests.boards import Doctor
from twin.api.requests.measurement import Energy, Import
from twin.api.requests.programs import DeployElf, LearnRuntime
from twin.api.requests.reporting import Report
from twin.api.requests.scenarios import RunScenario
from twin.api.requests.serving import Serve
from twin.api.requests.studies import (
    DiffStudies,
    Front,
    ReportStudy,
    RunStudy,
    Select,
    Sensitivity,
    Sweep,
)
from twin.api.requests.tuning import Tune
from twin.api.requests.values import Frequency, parse_clock
from twin.api.sessions.request import FORMS, make_request
from twin.cli import app
from twin.cli.options import command, derive
from twin.errors import SessionError, UsageError

FUNCTIONS = {
    "accuracy": prediction.Accuracy, "advise": Advise, "attribute": attribution.Attribute,
    "build_firmware": firmware.Build, "bundle": keeping.Bundle, "cache": prediction.Cache,
    "calibrate": attribution.Calibrate, "calibrate_published": attribution.CalibratePublished,
    "check": prediction.Check, "clean_sessions": keeping.CleanSessions,
    "compare": attribution.Compare,
    "compare_firmware": firmware.Compare, "compare_published": attribution.Published,
    "compare_sessions": keeping.CompareSessions,
    "deploy_elf": DeployElf, "diagnose": attribution.Diagnose, "diff": attribution.Diff,
    "doctor": Doctor,
    "diff_studies": DiffStudies, "reproduce": keeping.Reproduce, "run_scenario": RunScenario,
    "study_front": Front, "report_study": ReportStudy,
    "energy": Energy, "export_firmware": firmware.Export, "flash_firmware": firmware.Flash,
    "import_log": Import, "learn_runtime": LearnRuntime, "plan": prediction.Plan,
    "port": prediction.Port, "report": Report, "run_firmware": firmware.Run,
    "run_study": RunStudy, "select": Select, "serve": Serve, "study_sensitivity": Sensitivity,
    "why": attribution.Why,
    "sweep": Sweep, "tune": Tune, "what_if": prediction.WhatIf}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_fields_of_its_request(name: str) -> None:
    function, request = getattr(twin, name), FUNCTIONS[name]
    parameters = inspect.signature(function).parameters
    assert {one: each.default for one, each in parameters.items()} == {
        each.name: inspect.Parameter.empty if each.default is MISSING else each.default
        for each in fields(request)}
    assert not [each for each in parameters.values() if "Option(" in str(each.annotation)]
    for field, (option, _) in request.list_options().items():
        assert f"{field} : " in function.__doc__ and (option.help or "") in function.__doc__


@pytest.mark.parametrize("request_of", [
    one for one in (*FUNCTIONS.values(), Predict) if one is not keeping.CleanSessions])
def test_what_is_not_typed_is_the_default_of_the_field(request_of: type) -> None:
    options = request_of.list_options()
    defaults = {each.name: each.default for each in fields(request_of)}
    for each in derive(request_of):
        if each.default not in (inspect.Parameter.empty, None) and each.name != "tiles":
            made = options[each.name][0].read(each.default)
            assert (tuple(made) if isinstance(made, list) else made) == defaults[each.name]
        assert (each.default is inspect.Parameter.empty) == (defaults[each.name] is MISSING)


def test_requests_of_one_command_share_their_options() -> None:
    @command
    def both(first: Deployed, second: Priced, third: Placed, own: Annotated[
            float | None, Option("--own", text=str, parse=parse_clock)] = None) -> object:
        return first, second, third, own

    names = [*inspect.signature(both).parameters]
    assert len(names) == len(set(names)) == 9
    given = dict.fromkeys(names) | {"clock_hz": "80MHz", "temperature": True, "own": "1kHz"}
    first, second, third, own = both(**given)
    assert first.clock_hz == third.clock_hz == 80e6 and own == 1000
    assert second == Priced(temperature="cold") and first.changes is None


def test_a_clock_is_hertz_and_keeps_how_it_was_written() -> None:
    clock = parse_clock("0.08GHz")
    assert clock == 80e6 and isinstance(clock, Frequency) and clock.text == "0.08GHz"
    with pytest.raises(UsageError, match="--cpu-clock '80'"):
        parse_clock("80", "--cpu-clock")


@pytest.mark.parametrize(("verb", "arguments", "told"), [
    ("predict", {"model": "kws"}, "predict.board: missing"),
    ("predict", {"model": "kws", "board": "x", "clock": 1}, "predict.clock: unknown"),
    ("predict", {"model": "kws", "board": "x", "clock_hz": -1}, "not a number above zero"),
    ("predict", {"model": "kws", "board": "x", "changes": {"a": [1]}}, "a mapping of paths"),
    ("attribute", {"predicted": "kws", "measured": 3}, "not a text"),
    ("attribute", {"predicted": "kws", "measured": "m", "shapley": 1}, "not true or false"),
    ("diagnose", {"folder": "m", "on_progress": "print"}, "diagnose.on_progress: unknown"),
])
def test_a_kept_run_takes_the_fields_of_its_request(verb, arguments, told) -> None:
    assert set(FORMS) == {"predict", "attribute", "diagnose", "why", "sweep", "select",
                          "build_firmware", "measure", "study"}
    with pytest.raises(SessionError, match=told):
        make_request(verb, arguments)


def test_a_table_shows_the_clock_as_it_was_typed() -> None:
    words = ["predict", "kws", "ad", "-b", "nucleo_l4r5zi", "--clock", "0.04GHz"]
    assert "clock 0.04GHz" in CliRunner().invoke(app, words).stdout
