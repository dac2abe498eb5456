"""A scenario that was run, and those that are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hwmodels.quantities import format_energy, format_frequency, format_time
from twin.reports.tables.parts import Content, Table, add_row, new_pairs, new_table, spaced

if TYPE_CHECKING:
    from twin.studies.scenario.outcome import Outcome
    from twin.studies.scenario.scenario import Scenario


def scenarios_table(scenarios: Mapping[str, Scenario]) -> Table:
    """Return one row per scenario."""
    table = new_table(("scenario", "model", "board", "every", "what it is"))
    for name, one in scenarios.items():
        add_row(table, (name, one.model, one.board, format_time(one.sensor.hop_us),
                        one.description))
    return table


def scenario_report(outcome: Outcome) -> Content:
    """Return what happened, the time and energy of every state, and the clocks it had."""
    parts: list[Content] = [new_pairs(_summary(outcome)), _states(outcome)]
    if len(outcome.machine.speeds) > 1 or outcome.scenario.loads:
        parts.append(_speeds(outcome))
    return spaced(parts)


def _summary(outcome: Outcome) -> list[tuple[str, str]]:
    scenario, run, machine = outcome.scenario, outcome.run, outcome.machine
    deployment = machine.prediction.deployment
    answers = sorted(run.answers_us)
    pairs = [
        ("scenario", f"{scenario.name}: {scenario.description}"),
        ("device", f"{deployment.graph.name} on {deployment.board.name}, "
                   f"{deployment.runtime.identity}"),
        ("simulated", f"{format_time(run.duration_us)}, {len(answers) + run.lost} hops of "
                      f"{format_time(scenario.sensor.hop_us)}, {run.inferences} inferences"),
        ("deadlines", f"{run.late} late and {run.lost} lost of {len(answers) + run.lost} "
                      f"(answer within {format_time(scenario.allowed_us)}){_missed(outcome)}")]
    if outcome.loss:
        pairs.append(("lost", outcome.loss))
    if answers:
        pairs.append(("answer after", f"median {format_time(answers[len(answers) // 2])}, at most "
                                      f"{format_time(answers[-1])}"))
    pairs += [("duty", f"{run.duty:.1%} of the time awake"),
              ("mean power", f"{run.mean_mw:.3g} mW{_interval(outcome)}")]
    if run.hottest_c is not None:
        held = f", clock held down for {format_time(run.throttled_us)}" if run.throttled_us else ""
        pairs.append(("hottest", f"{run.hottest_c:.1f} degC{held}"))
    if outcome.life_days is not None:
        ends = outcome.life_ends_days
        between = f", {ends[0]:.3g} to {ends[1]:.3g} at the ends of the 90 % intervals" if (
            ends is not None) else ""
        pairs.append(("battery", f"{outcome.life_days:.3g} days{between}"))
    return pairs


def _missed(outcome: Outcome) -> str:
    missed, ends = outcome.run.late + outcome.run.lost, outcome.missed_ends
    if ends is None or ends[1] <= missed:
        return ""
    return f"; {ends[1]} missed at the slow end of the interval"


def _interval(outcome: Outcome) -> str:
    ends = outcome.mean_ends_mw
    return f", {ends[0]:.3g} to {ends[1]:.3g} by the 90 % interval" if ends else ""


def _states(outcome: Outcome) -> Table:
    from twin.studies.scenario.simulation import STATES

    run = outcome.run
    whole = sum(run.energy_uj.values())
    table = new_table(("state", "time", "share", "energy", "of all", "power"),
                      ("time", "share", "energy", "of all", "power"))
    for state in (*STATES, "sensor", "other masters"):
        time, energy = run.time_us.get(state), run.energy_uj.get(state, 0.0)
        if time is None and not energy:
            continue
        add_row(table, (state, format_time(time) if time is not None else "",
                        f"{time / run.duration_us:.1%}" if time is not None else "",
                        format_energy(energy), f"{energy / whole:.1%}" if whole else "",
                        f"{energy / time * 1e3:.3g} mW" if time else ""))
    return table


def _speeds(outcome: Outcome) -> Table:
    table = new_table(("clock", "inference", "energy", "running", "idle", "beside loads"),
                      ("clock", "inference", "energy", "running", "idle", "beside loads"))
    for speed in outcome.machine.speeds:
        add_row(table, (format_frequency(speed.clock_hz), format_time(speed.inference_us),
                        format_energy(speed.energy_uj), f"{speed.run_mw:.3g} mW",
                        f"{speed.idle_mw:.3g} mW",
                        ", ".join(f"x{one:.3f}" for one in speed.slowdowns)))
    return table
