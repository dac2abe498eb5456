"""A scenario on another board than its file's: names of masters, memories and states differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hwmodels.board.facts import Board
from twin.studies.duty import find_rest
from twin.studies.scenario.scenario import IDLE, Load, Scenario


def move_scenario(scenario: Scenario, board: Board, stated: Iterable[str]) -> Scenario:
    """Return a scenario with what only its file's board has replaced, and notes that say so.

    Parameters
    ----------
    scenario
        As read, on `board`.
    board
        Another than its file's.
    stated
        Keys the user states for this board, which stay.

    Notes
    -----
    A DMA controller becomes the board's first, or none; a memory that of its arena; a sleep state
    that of least current whose wake-up is known; clocks the same shares of the board's own.
    """
    stated, notes = tuple(stated), list[str]()
    masters = [one.name for one in board.dma]
    first = masters[0] if masters else None

    def moves(key: str, value: str | None, known: Iterable[str]) -> bool:
        return value is not None and value not in known and not any(
            key == one or one.startswith(f"{key}.") for one in stated)

    def say(key: str, value: object, now: object) -> None:
        notes.append(f"{key}: {value} of the file's board is taken to be {now} on {board.name}")

    sensor = scenario.sensor
    if moves("sensor.dma", sensor.dma, masters):
        say("sensor.dma", sensor.dma, first or "no bus master, as its file states no DMA")
        sensor = replace(sensor, dma=first)
    loads = list[Load]()
    for number, load in enumerate(scenario.loads):
        key = f"loads.{number}"
        if moves(f"{key}.master", load.master, masters):
            say(f"{key}.master", load.master, first or "off the bus, as its file states no DMA")
            load = replace(load, master=first or "")
        if moves(f"{key}.memory", load.memory, (one.name for one in board.memories)):
            say(f"{key}.memory", load.memory, dict(board.placement)["arena"])
            load = replace(load, memory=dict(board.placement)["arena"])
        loads.append(load)
    sleep = scenario.sleep
    own = moves("sleep", sleep.state, ()) and sleep.state != IDLE
    if own and (sleep.current_ma is not None
                or sleep.state not in (one.name for one in board.sleep)):
        rest = find_rest(board, {})
        say("sleep.state", sleep.state, "idle" if rest is None else rest.state)
        sleep = replace(sleep, state=IDLE if rest is None else rest.state, current_ma=None,
                        wake_up_us=None)
    clocks, own_hz = scenario.clocks_hz, board.core_clock.frequency_hz
    if clocks and not any(one.startswith("clocks") for one in stated):
        clocks = tuple(own_hz * one / max(clocks) for one in clocks)
        say("clocks", "shares", f"the same of its own {own_hz / 1e6:g} MHz")
    return replace(scenario, sensor=sensor, loads=tuple(loads), sleep=sleep, clocks_hz=clocks,
                   notes=(*scenario.notes, *notes))
