"""Scenario files: YAML by the guarded loader, each key checked, errors naming file and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hwmodels.errors import did_you_mean
from hwmodels.files import DocumentError, read_yaml
from hwmodels.quantities import UNITS, read_quantity, suggest_unit
from twin.errors import ScenarioError
from twin.studies.scenario.scenario import (
    GOVERNORS,
    Battery,
    Load,
    Scenario,
    Sensor,
    Sleep,
    Thermal,
)

SHIPPED = Path(__file__).parent / "files"

LONGEST_HOPS = 1_000_000
"""Hops a scenario may have."""


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
Positive = Annotated[float, Field(ge=1e-9, le=1e9)]
Power = Annotated[float, Field(ge=0, le=1e6)]
Share = Annotated[float, Field(gt=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class _Sensor(_Part):
    hop: Period
    hop_bytes: int = Field(0, ge=0, le=2**30)
    buffers: int = Field(2, ge=1, le=64)
    power_mw: Power = 0.0
    dma: str | None = None


class _Sleep(_Part):
    state: str = "idle"
    current: Current | None = None
    wake_up: Time | None = None
    clock_ramp: Time = 0.0


class _Load(_Part):
    master: str
    memory: str
    bytes_per_second: Positive
    period: Period
    busy: Period
    power_mw: Power = 0.0


class _Thermal(_Part):
    ambient_c: float = Field(25.0, ge=-60, le=200)
    resistance_c_per_w: Positive
    capacity_j_per_c: Positive
    limit_c: float = Field(ge=-60, le=300)
    resume_c: float = Field(ge=-60, le=300)
    throttled_clock: Frequency | None = None


class _Battery(_Part):
    capacity_mah: Positive
    voltage_v: Positive
    usable: Share = 1.0
    regulator_efficiency: Share = 1.0
    self_discharge_per_year: float = Field(0.0, ge=0, lt=1)


class _File(_Part):
    schema_: int = Field(alias="schema", ge=1, le=1)
    name: str
    description: str = ""
    model: str
    board: str
    runtime: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    duration: Period
    sensor: _Sensor
    inference_every: int = Field(1, ge=1, le=100_000)
    front_end_cycles: float = Field(0.0, ge=0, le=1e12)
    deadline: Period | None = None
    sleep: _Sleep = _Sleep()
    governor: str = "fixed"
    clocks: list[Frequency] = Field(default_factory=list, max_length=32)
    loads: list[_Load] = Field(default_factory=list, max_length=8)
    thermal: _Thermal | None = None
    battery: _Battery | None = None
    notes: list[str] = Field(default_factory=list)


def list_scenarios() -> tuple[str, ...]:
    """Return the names of the shipped scenarios."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def load_scenario(name_or_path: str, overrides: Mapping[str, object] | None = None) -> Scenario:
    """Read a scenario file, or a shipped scenario by name.

    Parameters
    ----------
    name_or_path : str
        "keyword_spotting", or a .yaml file.
    overrides : mapping of str to object, optional
        Dotted keys of the file in place of what it says: {"sensor.hop": "10ms"}; entries of a
        list by number (`loads.0.busy`); all below `set.` is one what-if path.

    Raises
    ------
    ScenarioError
        `file:key: reason; accepted ...`.
    """
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = SHIPPED / f"{name_or_path}.yaml"
        if not path.is_file() or path.parent != SHIPPED:
            raise ScenarioError(f"{name_or_path}: no such scenario; "
                                + did_you_mean(name_or_path, list_scenarios()) + " or a .yaml file")
    try:
        document = read_yaml(path)
    except (DocumentError, OSError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: a mapping is expected")
    for key, value in (overrides or {}).items():
        _override(document, key, value, path)
    try:
        section = _File.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(_tell(path, error)) from error
    return _check(path, _build(section, path.name))


def _override(document: dict[str, Any], key: str, value: object, path: Path) -> None:
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


def _tell(path: Path, error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    reason = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        part: Any = _File
        for name in first["loc"][:-1]:
            found = part.model_fields.get(str(name)) if hasattr(part, "model_fields") else None
            part = _PARTS.get(str(name), part) if found is not None else part
        names = [field.alias or name for name, field in part.model_fields.items()]
        reason = "unknown key; " + did_you_mean(str(first["loc"][-1]), names)
    return f"{path.name}:{key}: {reason}"


_PARTS: Mapping[str, type[_Part]] = {"sensor": _Sensor, "sleep": _Sleep, "loads": _Load,
                                     "thermal": _Thermal, "battery": _Battery}


def _build(section: _File, file: str) -> Scenario:
    thermal = section.thermal
    return Scenario(
        name=section.name, description=section.description, model=section.model,
        board=section.board, runtime=section.runtime, changes=section.set,
        duration_us=section.duration, every=section.inference_every,
        front_end_cycles=section.front_end_cycles, deadline_us=section.deadline,
        governor=section.governor, clocks_hz=tuple(sorted(section.clocks)),
        sensor=Sensor(hop_us=section.sensor.hop, hop_bytes=section.sensor.hop_bytes,
                      buffers=section.sensor.buffers, power_mw=section.sensor.power_mw,
                      dma=section.sensor.dma),
        sleep=Sleep(state=section.sleep.state, current_ma=section.sleep.current,
                    wake_up_us=section.sleep.wake_up, clock_ramp_us=section.sleep.clock_ramp),
        loads=tuple(Load(master=load.master, memory=load.memory, period_us=load.period,
                         bytes_per_second=load.bytes_per_second, busy_us=load.busy,
                         power_mw=load.power_mw) for load in section.loads),
        thermal=None if thermal is None else Thermal(
            ambient_c=thermal.ambient_c, resistance_c_per_w=thermal.resistance_c_per_w,
            capacity_j_per_c=thermal.capacity_j_per_c, limit_c=thermal.limit_c,
            resume_c=thermal.resume_c, throttled_hz=thermal.throttled_clock),
        battery=None if section.battery is None else Battery(**section.battery.model_dump()),
        notes=tuple(section.notes), file=file)


def _check(path: Path, scenario: Scenario) -> Scenario:
    """Refuse what no key alone shows."""
    if scenario.governor not in GOVERNORS:
        raise ScenarioError(f"{path.name}:governor: {scenario.governor!r}; "
                            + did_you_mean(scenario.governor, GOVERNORS))
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
