"""Progress of many points, told in lines where there is no terminal."""

from __future__ import annotations

from typing import ClassVar

import pytest
from made_patience import MadeClock
from typer.testing import CliRunner

import twin
from twin.cli import app
from twin.cli.progress import Rate, Steps


def test_a_rate_is_told_before_the_first_point_is_there(monkeypatch, capsys) -> None:
    clock = MadeClock()
    monkeypatch.setattr("twin.cli.progress.time", clock)
    rate = Rate()
    clock.sleep(0.9)
    rate.tell(0, 10, 0)
    clock.sleep(30.1)
    rate.tell(0, 10, 0)  # The first task of a slow machine takes longer than a line is due.
    clock.sleep(31)
    rate.tell(5, 10, 1)
    assert capsys.readouterr().err.splitlines() == [
        "0 of 10 predicted", "5 of 10 predicted, 0.0806 a second, 1 infeasible, 62 s left"]


@pytest.mark.parametrize(("waits_s", "last"), [(2.0, ["3 of 4 predicted"]), (0.1, [])])
def test_the_last_count_follows_a_line_where_one_was_written(monkeypatch, capsys, waits_s, last):
    clock = MadeClock()
    monkeypatch.setattr("twin.cli.progress.time", clock)
    with Rate() as rate:  # of changes tried for advice, some are left out
        clock.sleep(waits_s)
        rate.tell(1, 4, 0)
        rate.tell(3, 4, 0)
    assert capsys.readouterr().err.splitlines() == ["1 of 4 predicted"] * len(last) + last


def test_advice_that_takes_long_says_what_it_is_and_how_to_leave_it(monkeypatch, capsys) -> None:
    """The answer of `check` stands before it: what runs on is the search for a change."""
    monkeypatch.setattr("twin.cli.progress.PATIENCE_S", 0.0)
    found = CliRunner().invoke(app, ["check", "ad", "-b", "nucleo_l4r5zi", "--max-ms", "1ms"])
    assert found.exit_code == 1 and "changes tried for advice (--no-advice ends here)" in (
        found.stderr + capsys.readouterr().err)


def test_an_interrupted_study_says_what_is_not_lost(monkeypatch, capsys) -> None:
    monkeypatch.setattr("twin.cli.progress.time", MadeClock())
    with pytest.raises(KeyboardInterrupt), Rate() as rate:
        rate.tell(5, 10, 1)
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), Rate() as rate:
        raise KeyboardInterrupt  # before anything was
    with pytest.raises(ValueError, match="other"), Rate() as rate:
        rate.tell(5, 10, 1)
        raise ValueError("other")
    assert capsys.readouterr().err.splitlines() == [
        "5 of 10 predicted; what was counted for them is kept"]


class MadeTimer:
    """A timer that goes off when it is told to, unless it was cancelled."""

    made: ClassVar[list[MadeTimer]]

    def __init__(self, _: float, function) -> None:
        self.function, self.started, self.cancelled = function, False, False
        self.made.append(self)

    def start(self) -> None:
        self.started = True

    def cancel(self) -> None:
        self.cancelled = True

    def go_off(self) -> None:
        if self.started and not self.cancelled:
            self.function()


@pytest.fixture
def timers(monkeypatch) -> list[MadeTimer]:
    """Timers as they are made, by a clock that stands still."""
    monkeypatch.setattr(MadeTimer, "made", [], raising=False)
    monkeypatch.setattr("twin.cli.progress.threading.Timer", MadeTimer)
    monkeypatch.setattr("twin.cli.progress.time", MadeClock())
    return MadeTimer.made


def test_a_step_longer_than_a_second_is_named_in_its_midst(timers, capsys) -> None:
    with Steps("drawn") as steps:
        timers[0].go_off()  # No step has started.
        steps.tell(0, 2, "one")
    timers[0].go_off()
    assert capsys.readouterr().err == ""
    with Steps("drawn") as steps:
        steps.tell(0, 2, "one")
        steps.tell(1, 2, "two")
        timers[1].go_off()
        timers[1].go_off()
    assert capsys.readouterr().err == "drawn: 2 of 2, two\n"


@pytest.mark.parametrize("verb, command, told", [
    ("what_if", "whatif kws -b nucleo_l4r5zi --set clocks.cpu.frequency_hz=40MHz",
     "predicting: before and after"),
    ("port", "port kws --from nucleo_u575zi_q --to nucleo_l4r5zi",
     "reading rows of: nucleo_u575zi_q"),
    ("plan", "plan kws -b nucleo_l4r5zi",
     "ranked: micro-benchmarks of nucleo_l4r5zi, and whole networks"),
    ("run_scenario", "scenario run keyword_spotting", "run: keyword_spotting"),
    ("cache", "cache kws -b nucleo_f746zg --sweep size,ways",
     "caches counted: kws on nucleo_f746zg, over size and ways")])
def test_commands_of_one_long_step_name_it(timers, monkeypatch, verb, command, told) -> None:
    def go_on(*_, **__):
        timers[-1].go_off()
        raise KeyboardInterrupt

    monkeypatch.setattr(twin, verb, go_on)
    result = CliRunner().invoke(app, command.split())
    assert told in result.stderr.splitlines()
    assert timers[-1].cancelled
