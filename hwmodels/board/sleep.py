"""States a part sleeps in between its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hwmodels.board.declaration import CURRENT, SWITCH, Key, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepState:
    """A state with clocks stopped; None is not known."""

    name: str
    current_ma: Annotated[float | None, Key(
        CURRENT, "Supply current, memory kept where the state keeps it.")] = None
    wake_up_ns: Annotated[float | None, Key(
        Quantity(dimension="ns", low=0, high=1e12, null=True),
        "From the event to the first instruction, clocks not yet raised.")] = None
    keeps_ram: Annotated[bool, Key(
        SWITCH, "Whether RAM and registers are kept.")] = True
