"""What documents share: counts, intervals, limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from hwmodels.counts import CAUSES

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Amount = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Cause = Annotated[str, Field(json_schema_extra={"enum": list(CAUSES)})]
Bursts = Annotated[list[Count], Field(min_length=4, max_length=4,
                                      description="of 1, 2, 4 and 8 beats")]
Clocks = Annotated[dict[str, Count], Field(
    description="cycles by clock; those of two clocks are never added")]


class Interval(TypedDict):
    """Where a quantity is believed to be, in the unit of its key."""

    low: float
    high: float
    level: Annotated[float, Field(gt=0, lt=1)]
