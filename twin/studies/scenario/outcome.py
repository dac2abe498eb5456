"""What a scenario comes to: power, misses, heat, and how long a battery lasts."""

from __future__ import annotations

from hwmodels.board.file import load_board
from hwmodels.frozen import frozen
from hwmodels.quantities import Ends, Settings, format_time
from twin.studies.duty import life_days, spread_mean
from twin.studies.scenario.machine import Machine, build_machine
from twin.studies.scenario.moving import move_scenario
from twin.studies.scenario.scenario import Scenario, load_scenario
from twin.studies.scenario.simulation import ASLEEP, Run, simulate
from twin.studies.scenario.warming import find_warming


@frozen
class Outcome:
    """A scenario that was run, at the prediction and at both ends of its intervals.

    Parameters
    ----------
    run
        At the predicted time and energy.
    ends
        With both at the low ends of their 90 % intervals, and at the high ends; none without.
    """

    scenario: Scenario
    machine: Machine
    run: Run
    ends: tuple[Run, ...] = ()

    @property
    def mean_ends_mw(self) -> Ends | None:
        """Lowest and highest mean power of all runs and of sleep's current; None without ends.

        Of all, as hops lost at one end only make power no monotone of time.
        """
        if not self.ends:
            return None
        run, means = self.run, [one.mean_mw for one in (self.run, *self.ends)]
        asleep_mw = run.energy_uj.get(ASLEEP, 0.0) / run.duration_us * 1e3
        return spread_mean(run.mean_mw, (min(means), max(means)), asleep_mw, self.machine.spread[0])

    @property
    def missed_ends(self) -> tuple[int, int] | None:
        """Fewest and most hops of all runs that were late or lost; None without ends."""
        missed = [run.late + run.lost for run in (self.run, *self.ends)]
        return (min(missed), max(missed)) if self.ends else None

    @property
    def life_days(self) -> float | None:
        """Days the battery lasts; None without one."""
        return life_days(self.scenario.battery, self.run.mean_mw)

    @property
    def life_ends_days(self) -> Ends | None:
        """Days at the highest and the lowest mean power; None without battery or ends."""
        battery, ends = self.scenario.battery, self.mean_ends_mw
        if battery is None or ends is None:
            return None
        return life_days(battery, ends[1]) or 0.0, life_days(battery, ends[0]) or 0.0

    @property
    def loss(self) -> str:
        """Which share of hops is lost, and why; empty where none is."""
        run, sensor = self.run, self.scenario.sensor
        hops = run.lost + len(run.answers_us)
        if not run.lost:
            return ""
        slowest = (f", an answer takes up to {format_time(max(run.answers_us))}"
                   if run.answers_us else "")
        other = ("; at the interval's ends " + " and ".join(str(one.lost) for one in self.ends)
                 + " are lost" if self.ends else "")
        return (f"{run.lost / hops:.0%} of the hops: no buffer was free{slowest} and hops come "
                f"every {format_time(sensor.hop_us)}; their work is in no figure{other}")

    @property
    def warming(self) -> str:
        """Where the temperature goes after a run of few time constants; empty: nowhere else."""
        return find_warming(self.scenario, self.machine, self.run)

    @property
    def met(self) -> bool:
        """Whether every answer came in time and no hop was lost."""
        return not (self.run.late or self.run.lost)


def run_scenario(name_or_path: str, overrides: Settings | None = None, *,
                 calibration: str = "auto") -> Outcome:
    """Read a scenario, predict what its device costs, and run it.

    Parameters
    ----------
    name_or_path
        A shipped scenario or a .yaml file.
    overrides
        Dotted keys in place of the file's.
    calibration
        As for `predict`.
    """
    scenario, given = load_scenario(name_or_path, overrides), dict(overrides or {})
    if given.pop("board", None) not in (None, load_scenario(name_or_path).board):
        scenario = move_scenario(scenario, load_board(scenario.board), given)
    return play(scenario, build_machine(scenario, calibration))


def play(scenario: Scenario, machine: Machine) -> Outcome:
    """Run a scenario on a machine, and at the ends of its intervals."""
    return Outcome(scenario=scenario, machine=machine, run=simulate(scenario, machine),
                   ends=tuple(simulate(scenario, machine.scaled(time, energy))
                              for time, energy in machine.ends))
