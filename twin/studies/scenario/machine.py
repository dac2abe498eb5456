"""What a device draws and how fast it works in each of its states, by prediction."""

from __future__ import annotations

from dataclasses import replace

from hwmodels.board.facts import Board
from hwmodels.errors import TwinError, did_you_mean
from hwmodels.frozen import frozen
from hwmodels.prices import leakage_pj
from hwmodels.quantities import Ends, Settings
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.memories import choose_memory
from twin.errors import ScenarioError
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.prediction import Prediction
from twin.studies.duty import STATED, find_spread, idle_mw, idle_power_mw
from twin.studies.scenario.scenario import IDLE, Scenario


@frozen
class Speed:
    """The device at one clock.

    Parameters
    ----------
    inference_us
        One inference alone on the bus.
    idle_mw
        With clocks on and nothing to do.
    front_end_us
        Making features of a hop.
    slowdowns
        Time of an inference beside each load, over that alone.
    leakage_mw
        Static power at 25 degC, part of the other powers; 0: none follows the temperature.
    """

    clock_hz: float
    inference_us: float
    energy_uj: float
    idle_mw: float
    front_end_us: float
    slowdowns: tuple[float, ...] = ()
    leakage_mw: float = 0.0

    @property
    def run_mw(self) -> float:
        """Power while it computes; the front end is taken to draw what the network does."""
        return self.energy_uj / self.inference_us * 1e3


@frozen
class Machine:
    """The device: what it does at each clock, and what sleeping costs.

    Parameters
    ----------
    speeds
        By rising clock.
    sleep_mw
        None: sleeping is idling at the clock in force.
    wake_up_us
        From the event to the first instruction.
    ends : tuple of (float, float)
        Factors on (time, energy) at the low and the high end of the prediction's intervals.
    spread : tuple of (float, str)
        Relative deviation of the sleep current, and what it rests on.
    notes
        What a reader must know.
    """

    speeds: tuple[Speed, ...]
    sleep_mw: float | None
    wake_up_us: float
    prediction: Prediction
    ends: tuple[Ends, ...] = ()
    notes: tuple[str, ...] = ()
    spread: tuple[float, str] = (0.0, STATED)

    def scaled(self, time: float, energy: float) -> Machine:
        """Return the machine whose inferences take other times and energies by factors."""
        return replace(self, speeds=tuple(
            replace(speed, inference_us=speed.inference_us * time,
                    energy_uj=speed.energy_uj * energy) for speed in self.speeds))


def build_machine(scenario: Scenario, calibration: str) -> Machine:
    """Predict a scenario's network at each of its clocks, alone and beside its loads.

    Parameters
    ----------
    calibration
        As for `predict`.

    Raises
    ------
    ScenarioError
        When the board's energy or its sleep state is not known.
    """
    placed = deploy(scenario.model, scenario.board, runtime=scenario.runtime)
    clock = placed.board.core.clock
    if scenario.clocks_hz and f"clocks.{clock}.frequency_hz" in scenario.changes:
        raise ScenarioError(f"{scenario.origin}:set: clocks.{clock}.frequency_hz is chosen of "
                            "clocks; accepted: one of the two keys")
    placed = _change(scenario, "set", placed, scenario.changes)
    _check_masters(scenario, placed.board)
    sensed = _sensor_load(scenario, placed)
    clocks = scenario.clocks_hz or (placed.board.clock(clock).frequency_hz,)
    speeds = []
    for clock_hz in clocks:
        at = _change(scenario, "clocks", placed, {f"clocks.{clock}.frequency_hz": clock_hz})
        at = _change(scenario, "sensor", at, sensed)
        alone = predict_calibrated(at, temperature="warm", calibration=calibration)
        speeds.append(_speed(scenario, at, alone, clock_hz, calibration))
    sleep_mw, wake_up_us, notes = _sleep(scenario, placed.board)
    if scenario.front_end_cycles:
        notes += (f"the front end takes {scenario.front_end_cycles:,.0f} cycles a hop as the "
                  "scenario says, at the power of the network",)
    return Machine(speeds=tuple(speeds), sleep_mw=sleep_mw, wake_up_us=wake_up_us,
                   prediction=alone, ends=_ends(alone), notes=(*scenario.notes, *notes),
                   spread=(0.0, STATED) if scenario.sleep.current_ma is not None else
                   find_spread(placed.board, scenario.sleep.state))


def _speed(scenario: Scenario, at: Deployment, alone: Prediction, clock_hz: float,
           calibration: str) -> Speed:
    energy, idle = alone.energy_uj, idle_power_mw(at.board, clock_hz)
    if energy is None or idle is None:
        raise ScenarioError(
            f"{scenario.origin}:board: the energy of {at.board.name} is not known: its file states "
            "no currents; accepted: a board whose energy is predicted, such as nucleo_l4r5zi")
    added = idle_mw(at.board, clock_hz)
    slow = tuple(predict_calibrated(
        _change(scenario, f"loads.{number}", at, {} if not load.master else {
            f"load.{load.master}.memory": load.memory,
            f"load.{load.master}.bytes_per_second": load.bytes_per_second}), temperature="warm",
        calibration=calibration).time_us / alone.time_us
        for number, load in enumerate(scenario.loads))
    return Speed(clock_hz=clock_hz, inference_us=alone.time_us,
                 energy_uj=energy + added * alone.time_us * 1e-3, idle_mw=idle,
                 front_end_us=scenario.front_end_cycles / clock_hz * 1e6, slowdowns=slow,
                 leakage_mw=leakage_pj(at.board.power) or 0.0)


def _change(scenario: Scenario, key: str, placed: Deployment, changes: Settings) -> Deployment:
    """Return a deployment with what-if paths changed; a refusal names file and key."""
    try:
        return placed.replace(changes)
    except TwinError as error:
        raise ScenarioError(f"{scenario.origin}:{key}: {error}") from error


def _check_masters(scenario: Scenario, board: Board) -> None:
    """Refuse a DMA controller the board has not, by the key that names it."""
    known = [one.name for one in board.dma]
    loads = [(f"loads.{number}.master", load.master) for number, load in enumerate(scenario.loads)]
    for key, master in (*loads, ("sensor.dma", scenario.sensor.dma)):
        if master and master not in known:
            raise ScenarioError(
                f"{scenario.origin}:{key}: {board.name} has no DMA controller {master!r}; "
                + (did_you_mean(master, known) if known else "accepted: none, it states no DMA"))


def _sensor_load(scenario: Scenario, placed: Deployment) -> Settings:
    """Return the sensor's DMA as another master on the bus, where it is named."""
    sensor = scenario.sensor
    if sensor.dma is None or not sensor.hop_bytes:
        return {}
    board = placed.board
    memory = placed.arena if board.memory(placed.arena).bus else choose_memory(board, "sram").name
    return {f"load.{sensor.dma}.memory": memory, f"load.{sensor.dma}.write": "true",
            f"load.{sensor.dma}.bytes_per_second": sensor.hop_bytes / sensor.hop_us * 1e6}


def _sleep(scenario: Scenario, board: Board) -> tuple[float | None, float, tuple[str, ...]]:
    asked = scenario.sleep
    if asked.state == IDLE and asked.current_ma is None:
        return None, asked.wake_up_us or 0.0, ()
    known = {state.name: state for state in board.sleep}
    state, volts = known.get(asked.state), board.power.counted_v
    if state is None and asked.current_ma is None:
        raise ScenarioError(f"{scenario.origin}:sleep.state: {board.name} states no "
                            f"{asked.state!r}; "
                            + (did_you_mean(asked.state, (*known, IDLE)) if known else
                               "accepted: idle, or a name with current and wake_up of your own"))
    current_ma, wake_up_us = asked.current_ma, asked.wake_up_us
    if state is not None and current_ma is None:
        current_ma, volts = state.current_ma, state.voltage_v or volts
    if state is not None and wake_up_us is None and state.wake_up_ns is not None:
        wake_up_us = state.wake_up_ns / 1e3
    if current_ma is None or wake_up_us is None:
        missing = "current" if current_ma is None else "wake_up"
        raise ScenarioError(f"{scenario.origin}:sleep.{missing}: not known of {asked.state} of "
                            f"{board.name}; accepted: sleep.{missing} of your own, with its unit")
    notes: tuple[str, ...] = ()
    if state is not None and not state.keeps_ram:
        notes = (f"{asked.state} of {board.name} keeps no RAM: starting again is in no figure",)
    return current_ma * volts, wake_up_us, notes


def _ends(prediction: Prediction) -> tuple[Ends, ...]:
    """Return factors on time and energy at both ends of the intervals."""
    certainty = prediction.certainty
    if certainty is None or certainty.energy_uj is None or prediction.energy_uj is None:
        return ()
    time, energy = certainty.time_us, certainty.energy_uj
    return ((time.low / prediction.time_us, energy.low / prediction.energy_uj),
            (time.high / prediction.time_us, energy.high / prediction.energy_uj))
