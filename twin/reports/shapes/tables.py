"""The shape of tables of many configurations, and of what was checked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from twin.reports.shapes.common import Count, Interval, Share


class Limits(TypedDict):
    """What rows are held to; null: to none."""

    max_time_us: float | None
    max_energy_uj: float | None
    max_ram_bytes: float | None
    max_flash_bytes: float | None
    max_price_usd: float | None


class TableRow(TypedDict):
    """A configuration; keys that begin with `in.` are what was asked for. null: not known.

    What could not be predicted has a reason and no figures.
    """

    model: str
    board: str
    runtime: str
    clock_hz: float | None
    voltage_scale: str
    weights: str
    arena: str
    time_us: float | None
    time_low_us: float | None
    time_high_us: float | None
    time_level: float | None
    energy_uj: float | None
    energy_low_uj: float | None
    energy_high_uj: float | None
    energy_level: float | None
    ram_bytes: Count | None
    flash_bytes: Count | None
    ram_room_bytes: Count | None
    flash_room_bytes: Count | None
    idle_mw: float | None
    price_usd: float | None
    basis: str
    calibration: str
    failure: str
    reason: str
    violations: Annotated[str, Field(description="limits that are not met, by blanks")]
    probability: Annotated[float | None, Field(description="that all limits are met")]
    front: str


class Study(TypedDict):
    """Of `twin sweep`, `predict` of several, `study show`: one row per configuration."""

    schema: Literal[1]
    kind: Literal["study"]
    limits: Limits
    objectives: list[str]
    axes: list[str]
    rows: list[TableRow]


class Requirement(TypedDict):
    """One limit, and how it is met."""

    name: str
    unit: str
    predicted: float | None
    limit: float | None
    met: bool
    surely_met: bool | None
    interval: Interval | None
    chance_above: Share | None
    verdict: str


class Check(TypedDict):
    """Of `twin check`."""

    schema: Literal[1]
    kind: Literal["check"]
    model: str
    board: str
    runtime: str
    met: bool
    sure: bool
    requirements: list[Requirement]
