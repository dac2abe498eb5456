"""What a scenario file says: the device, what it senses and does with it, when it sleeps.

Read from YAML by the guarded loader, each key checked, errors naming file and key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from hwmodels.quantities import UNITS, Settings, read_quantity, suggest_unit
from twin.errors import ScenarioError
from twin.studies.duty import Battery, Positive
from twin.studies.files import CHECKED, find_file, list_shipped, make_noun, one_of, read_mapping

GOVERNORS = ("fixed", "race_to_idle", "slowest", "ondemand")
"""fixed: the clock as deployed; race_to_idle: the fastest, then sleep; slowest: the slowest that
meets the deadline by prediction; ondemand: a step up when a hop was busy, a step down when not."""

IDLE = "idle"
"""Sleeping with clocks on: every board can, and wakes at once."""


def _quantity(dimension: str, factor: float = 1.0) -> Any:
    def read(value: object) -> float:
        found = read_quantity(str(value), dimension)
        if found is None or not found[1]:
            raise ValueError(f"{value!r}; accepted: a number with one of "
                             f"{', '.join(UNITS[dimension])}"
                             + suggest_unit(str(value), dimension))
        return found[0] * factor
    return BeforeValidator(read)


Time = Annotated[float, _quantity("ns", 1e-3), Field(ge=0, le=1e14)]
Period = Annotated[float, _quantity("ns", 1e-3), Field(gt=0, le=1e14)]
Frequency = Annotated[float, _quantity("hz"), Field(gt=0)]
Current = Annotated[float, _quantity("ma"), Field(ge=0, le=1e6)]
Celsius = Annotated[float, Field(ge=-60, le=300)]
Power = Annotated[float, Field(ge=0, le=1e6)]


@frozen
class Sensor:
    """What fills the buffers, by DMA, without end.

    Parameters
    ----------
    hop_us
        A buffer is full every so often.
    hop_bytes
        Written to memory in that time.
    buffers
        1: nothing is sensed while a buffer is worked on; 2: one is filled meanwhile; more queue.
    power_mw
        Of the sensor itself, always.
    dma
        Controller that writes them; None: its traffic is not counted.
    """

    __pydantic_config__ = CHECKED

    hop_us: Annotated[Period, Field(alias="hop")]
    hop_bytes: Annotated[int, Field(ge=0, le=2**30)] = 0
    buffers: Annotated[int, Field(ge=1, le=64)] = 2
    power_mw: Power = 0.0
    dma: str | None = None


@frozen
class Sleep:
    """What the core does between hops.

    Parameters
    ----------
    state
        `IDLE`, a state of the board's file, or a name of one's own with figures.
    current_ma, wake_up_us
        In place of the board's; None: the board's.
    clock_ramp_us
        Until the clock is up again after sleep, and at every change of the clock.
    """

    __pydantic_config__ = CHECKED

    state: str = IDLE
    current_ma: Annotated[Current | None, Field(alias="current")] = None
    wake_up_us: Annotated[Time | None, Field(alias="wake_up")] = None
    clock_ramp_us: Annotated[Time, Field(alias="clock_ramp")] = 0.0


@frozen
class Load:
    """A second core or master that is busy from time to time.

    Parameters
    ----------
    master
        A DMA controller of the board that stands for it on the bus.
    period_us, busy_us
        Busy for so long at the start of each period.
    """

    __pydantic_config__ = CHECKED

    master: str
    memory: str
    bytes_per_second: Positive
    period_us: Annotated[Period, Field(alias="period")]
    busy_us: Annotated[Period, Field(alias="busy")]
    power_mw: Power = 0.0


@frozen
class Thermal:
    """One thermal resistance and capacity between the die and what is around it.

    Parameters
    ----------
    resistance_c_per_w, capacity_j_per_c
        Their product is the time constant in seconds.
    limit_c, resume_c
        At the one the clock is throttled, below the other it is let up again.
    throttled_hz
        Highest clock meanwhile; None: the slowest of the governor's.
    leakage_doubles_c
        Degrees in which leakage, and what sleep draws, doubles, from 25 degC on (assumed: bulk CMOS
        does in 10 to 25); None: it does not follow the temperature.
    """

    __pydantic_config__ = CHECKED

    ambient_c: Annotated[float, Field(ge=-60, le=200)] = 25.0
    resistance_c_per_w: Positive
    capacity_j_per_c: Positive
    limit_c: Celsius
    resume_c: Celsius
    throttled_hz: Annotated[Frequency | None, Field(alias="throttled_clock")] = None
    leakage_doubles_c: Positive | None = 20.0

    @property
    def constant_us(self) -> float:
        """Time constant; microseconds."""
        return self.resistance_c_per_w * self.capacity_j_per_c * 1e6


@frozen
class Scenario:
    """A device over time.

    Parameters
    ----------
    model, board
        As `twin.deploy` takes them.
    runtime
        None: the best known on the board.
    changes
        What-if paths.
    duration_us
        How long is simulated.
    every
        Hops to an inference.
    front_end_cycles
        CPU cycles of making features of a hop, in every hop.
    deadline_us
        From a full buffer to its answer; None: until the sensor needs the buffer again.
    sleep
        Between hops.
    governor
        One of `GOVERNORS`.
    clocks_hz
        It may choose of; empty: the clock as deployed only.
    notes
        What the file says that it assumes.
    file
        Name of the file it was read from; empty: of none.
    """

    __pydantic_config__ = CHECKED

    name: str
    model: str
    board: str
    sensor: Sensor
    duration_us: Annotated[Period, Field(alias="duration")]
    description: str = ""
    runtime: str | None = None
    changes: Annotated[Mapping[str, Any], Field(alias="set")] = field(default_factory=dict)
    every: Annotated[int, Field(alias="inference_every", ge=1, le=100_000)] = 1
    front_end_cycles: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    deadline_us: Annotated[Period | None, Field(alias="deadline")] = None
    sleep: Sleep = Sleep()
    governor: Annotated[str, one_of(GOVERNORS)] = "fixed"
    clocks_hz: Annotated[tuple[Frequency, ...], AfterValidator(lambda found: tuple(sorted(found))),
                         Field(alias="clocks", max_length=32)] = ()
    loads: Annotated[tuple[Load, ...], Field(max_length=8)] = ()
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


SHIPPED = Path(__file__).parent / "files"

LONGEST_HOPS = 1_000_000
"""Hops a scenario may have."""


def list_scenarios() -> tuple[str, ...]:
    """Return the names of the shipped scenarios."""
    return list_shipped(SHIPPED)


def load_scenario(name_or_path: str, overrides: Settings | None = None) -> Scenario:
    """Read a scenario file, or a shipped scenario by name.

    Parameters
    ----------
    name_or_path
        "keyword_spotting", or a .yaml file.
    overrides
        Dotted keys of the file in place of what it says: {"sensor.hop": "10ms"}; entries of a
        list by number (`loads.0.busy`); all below `set.` is one what-if path.

    Raises
    ------
    ScenarioError
        `file:key: reason; accepted ...`.
    """
    path = find_file(name_or_path, SHIPPED, "scenario", ScenarioError)
    document = read_mapping(path, ScenarioError)
    for key, value in (overrides or {}).items():
        _override(document, key, value, path)
    return _check(path, make_noun(Scenario, document, path, ScenarioError, file=path.name))


def _override(document: JsonObject, key: str, value: object, path: Path) -> None:
    """Put a value in place of the file's."""
    section, dot, rest = key.partition(".")
    # A what-if path is one key of `set`, dots and all.
    *parents, last = [section, rest] if section == "set" and dot else key.split(".")
    node: Any = document
    for part in parents:
        node = node.setdefault(part, {}) if isinstance(node, dict) else node[
            _entry(node, part, key, path)]
        if not isinstance(node, (dict, list)):
            raise ScenarioError(f"{path.name}:{key}: {part} holds no keys")
    node[_entry(node, last, key, path) if isinstance(node, list) else last] = value


def _entry(entries: list[Any], part: str, key: str, path: Path) -> int:
    """Return which entry of a list a part of a key names."""
    numbers = [str(number) for number in range(len(entries))]
    if part not in numbers:
        raise ScenarioError(f"{path.name}:{key}: {part!r} is no entry of a list; accepted: "
                            + (", ".join(numbers) or "none, the list is empty"))
    return int(part)


def _check(path: Path, scenario: Scenario) -> Scenario:
    """Refuse what no key alone shows."""
    if scenario.governor in ("slowest", "ondemand") and len(scenario.clocks_hz) < 2:
        raise ScenarioError(f"{path.name}:clocks: governor {scenario.governor} chooses of several; "
                            "accepted: two or more frequencies")
    if scenario.duration_us / scenario.sensor.hop_us > LONGEST_HOPS:
        raise ScenarioError(f"{path.name}:duration: more than {LONGEST_HOPS:,} hops; accepted: a "
                            "shorter time, figures are means over it")
    if scenario.duration_us < scenario.sensor.hop_us:
        raise ScenarioError(f"{path.name}:duration: shorter than a hop")
    for load in scenario.loads:
        if load.busy_us > load.period_us:
            raise ScenarioError(f"{path.name}:loads: busy for longer than its period")
    thermal = scenario.thermal
    if thermal is not None and not thermal.ambient_c < thermal.resume_c < thermal.limit_c:
        raise ScenarioError(f"{path.name}:thermal: accepted: ambient_c below resume_c below "
                            "limit_c")
    return scenario
