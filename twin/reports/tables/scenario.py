"""A scenario that was run, and those that are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

from hwmodels.quantities import Ends, format_energy, format_frequency, format_time
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, Pairs, Table, new_pairs, spaced, tabulate

if TYPE_CHECKING:
    from twin.studies.scenario.outcome import Outcome
    from twin.studies.scenario.scenario import Scenario


def scenarios_table(scenarios: Mapping[str, Scenario]) -> Table:
    """Return one row per scenario."""
    return tabulate((
        Column("scenario", itemgetter(0)), Column("model", lambda row: row[1].model),
        Column("board", lambda row: row[1].board),
        Column("every", lambda row: format_time(row[1].sensor.hop_us)),
        Column("what it is", lambda row: row[1].description)), scenarios.items())


def scenario_report(outcome: Outcome) -> Content:
    """Return what happened, the time and energy of every state, and the clocks it had."""
    several = len(outcome.machine.speeds) > 1 or outcome.scenario.loads
    return spaced([new_pairs(_summary(outcome)), _states(outcome),
                   tabulate(SPEEDS, outcome.machine.speeds) if several else None])


def _summary(outcome: Outcome) -> Pairs:
    scenario, run, machine = outcome.scenario, outcome.run, outcome.machine
    deployment = machine.prediction.deployment
    answers = sorted(run.answers_us)
    hops = len(answers) + run.lost
    pairs = [
        ("scenario", ": ".join(filter(None, (scenario.name, scenario.description)))),
        ("device", f"{deployment.graph.name} on {deployment.board.name}, "
                   f"{deployment.runtime.identity}"),
        ("simulated", f"{format_time(run.duration_us)}, {hops} hop{'s' * (hops > 1)} of "
                      f"{format_time(scenario.sensor.hop_us)}, "
                      f"{run.inferences} inference{'s' * (run.inferences != 1)}"),
        ("deadlines", f"{run.late} late and {run.lost} lost of {hops} "
                      f"(answer within {format_time(scenario.allowed_us)}){_missed(outcome)}")]
    if outcome.loss:
        pairs.append(("lost", outcome.loss))
    if answers:
        pairs.append(("answer after", f"median {format_time(answers[len(answers) // 2])}, at most "
                                      f"{format_time(answers[-1])}"))
    pairs += [("duty", f"{run.duty:.1%} of the time awake"),
              ("mean power", f"{run.mean_mw:.3g} mW{_between(outcome.mean_ends_mw)}"
                             + f"; {machine.spread[1]}" * (machine.sleep_mw is not None))]
    if run.hottest_c is not None:
        held = f", clock held down for {format_time(run.throttled_us)}" if run.throttled_us else ""
        pairs.append(("hottest", f"{run.hottest_c:.1f} degC within "
                                 f"{format_time(run.duration_us)}{held}"))
    if outcome.life_days is not None:
        pairs.append(("battery", f"{outcome.life_days:.3g} days{_between(outcome.life_ends_days)}"))
    return pairs


def _missed(outcome: Outcome) -> str:
    missed, ends = outcome.run.late + outcome.run.lost, outcome.missed_ends
    if ends is None or ends[1] <= missed:
        return ""
    return f"; {ends[1]} missed at the slow end of the interval"


def _between(ends: Ends | None) -> str:
    return "" if ends is None else f", {ends[0]:.3g} to {ends[1]:.3g} by the 90 % interval"


def _states(outcome: Outcome) -> Table:
    from twin.studies.scenario.simulation import STATES

    run = outcome.run
    whole = sum(run.energy_uj.values())
    times, energies = run.time_us, {
        state: run.energy_uj.get(state, 0.0) for state in (*STATES, "sensor", "other masters")}
    return tabulate((
        Column("state", str), number("time", times.get, lambda time_us: "" if time_us is None else
                                     format_time(time_us)),
        number("share", lambda state: times[state] / run.duration_us if state in times else None,
               "{:.1%}"),
        number("energy", energies.get, format_energy),
        number("of all", lambda state: energies[state] / whole if whole else None, "{:.1%}"),
        number("power", lambda state: energies[state] / times[state] * 1e3 if times.get(state)
               else None, "{:.3g} mW")),
        [state for state, energy in energies.items() if state in times or energy])


SPEEDS = (
    number("clock", "clock_hz", format_frequency), number("inference", "inference_us", format_time),
    number("energy", "energy_uj", format_energy), number("running, 25 degC", "run_mw", "{:.3g} mW"),
    number("idle, 25 degC", "idle_mw", "{:.3g} mW"),
    number("beside loads", lambda speed: ", ".join(f"x{one:.3f}" for one in speed.slowdowns), "{}"))
