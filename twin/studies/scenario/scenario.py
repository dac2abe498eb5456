"""What a scenario file says: the device, what it senses and does with it, when it sleeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GOVERNORS = ("fixed", "race_to_idle", "slowest", "ondemand")
"""fixed: the clock as deployed; race_to_idle: the fastest, then sleep; slowest: the slowest that
meets the deadline by prediction; ondemand: a step up when a hop was busy, a step down when not."""

IDLE = "idle"
"""Sleeping with clocks on: every board can, and wakes at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """What fills the buffers, by DMA, without end.

    Parameters
    ----------
    hop_us : float
        A buffer is full every so often.
    hop_bytes : int
        Written to memory in that time.
    buffers : int
        1: nothing is sensed while a buffer is worked on; 2: one is filled meanwhile; more queue.
    power_mw : float
        Of the sensor itself, always.
    dma : str or None
        Controller that writes them; None: its traffic is not counted.
    """

    hop_us: float
    hop_bytes: int = 0
    buffers: int = 2
    power_mw: float = 0.0
    dma: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """What the core does between hops.

    Parameters
    ----------
    state : str
        `IDLE`, a state of the board's file, or a name of one's own with figures.
    current_ma, wake_up_us : float or None
        In place of the board's; None: the board's.
    clock_ramp_us : float
        Until the clock is up again after sleep, and at every change of the clock.
    """

    state: str = IDLE
    current_ma: float | None = None
    wake_up_us: float | None = None
    clock_ramp_us: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A second core or master that is busy from time to time.

    Parameters
    ----------
    master : str
        A DMA controller of the board that stands for it on the bus.
    memory : str
        Which it reads or writes.
    bytes_per_second : float
        While it is busy.
    period_us, busy_us : float
        Busy for so long at the start of each period.
    power_mw : float
        While it is busy.
    """

    master: str
    memory: str
    bytes_per_second: float
    period_us: float
    busy_us: float
    power_mw: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Thermal:
    """One thermal resistance and capacity between the die and what is around it.

    Parameters
    ----------
    ambient_c : float
        Around it.
    resistance_c_per_w, capacity_j_per_c : float
        Their product is the time constant in seconds.
    limit_c, resume_c : float
        At the one the clock is throttled, below the other it is let up again.
    throttled_hz : float or None
        Highest clock meanwhile; None: the slowest of the governor's.
    """

    ambient_c: float
    resistance_c_per_w: float
    capacity_j_per_c: float
    limit_c: float
    resume_c: float
    throttled_hz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Battery:
    """What feeds it.

    Parameters
    ----------
    capacity_mah, voltage_v : float
        Nominal.
    usable : float
        Share of the capacity that can be had.
    regulator_efficiency : float
        Between battery and rail, 0 to 1.
    self_discharge_per_year : float
        Share of the capacity lost in a year by itself.
    """

    capacity_mah: float
    voltage_v: float
    usable: float = 1.0
    regulator_efficiency: float = 1.0
    self_discharge_per_year: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A device over time.

    Parameters
    ----------
    name, description : str
        Of the scenario.
    model, board : str
        As `twin.deploy` takes them.
    runtime : str or None
        None: the best known on the board.
    changes : mapping of str to object
        What-if paths.
    duration_us : float
        How long is simulated.
    sensor : Sensor
        What comes in.
    every : int
        Hops to an inference.
    front_end_cycles : float
        CPU cycles of making features of a hop, in every hop.
    deadline_us : float or None
        From a full buffer to its answer; None: until the sensor needs the buffer again.
    sleep : Sleep
        Between hops.
    governor : str
        One of `GOVERNORS`.
    clocks_hz : tuple of float
        It may choose of; empty: the clock as deployed only.
    loads, thermal, battery
        Where there are any.
    notes : tuple of str
        What the file says that it assumes.
    file : str
        Name of the file it was read from; empty: of none.
    """

    name: str
    model: str
    board: str
    sensor: Sensor
    duration_us: float
    description: str = ""
    runtime: str | None = None
    changes: Mapping[str, object] = field(default_factory=dict)
    every: int = 1
    front_end_cycles: float = 0.0
    deadline_us: float | None = None
    sleep: Sleep = Sleep()
    governor: str = "fixed"
    clocks_hz: tuple[float, ...] = ()
    loads: tuple[Load, ...] = ()
    thermal: Thermal | None = None
    battery: Battery | None = None
    notes: tuple[str, ...] = ()
    file: str = ""

    @property
    def origin(self) -> str:
        """What an error names: the file, or the scenario where there is none."""
        return self.file or self.name

    @property
    def allowed_us(self) -> float:
        """Time from a full buffer to its answer."""
        return self.deadline_us if self.deadline_us is not None else (
            self.sensor.hop_us * max(1, self.sensor.buffers - 1))
