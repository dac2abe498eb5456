"""Progress of many points, told in lines where there is no terminal."""

from __future__ import annotations

from made_patience import MadeClock

from twin.cli.progress import Rate


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
        "0 of 10, 0 points/s", "5 of 10, 0.0806 points/s, 1 cannot be, 62 s left"]
