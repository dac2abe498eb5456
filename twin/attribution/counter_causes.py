"""Counters of boards as causes of the bill, from one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from calibration.measurement.counters import ALIASES
from hwmodels.counts import CAUSES
from hwmodels.files import read_yaml
from twin.attribution.side import Part

SOFTWARE = "SW"
"""What logs call an epoch that runs on the host alone; they count no accelerator cycles of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterGroup:
    """Causes that counters give the cycles of, together.

    Parameters
    ----------
    name : str
        What is counted, in words.
    terms : mapping of str to int
        Counter -> sign; "cycles" is the cycle counter.
    causes : tuple of str
        Of the bill; of an accelerator with the clock, as "mac@npu".
    events : tuple of str
        Empty when the sum is cycles; else what is counted, priced as predicted.
    bits : int
        Width of the narrowest register; a sum that may have wrapped tells nothing.
    clock : str
        Clock of the cycles; "" is the core's.
    source : str
        Full text.
    optional : mapping of str to int
        As `terms`; nothing where they are not there.
    """

    name: str
    terms: Mapping[str, int]
    causes: tuple[str, ...]
    events: tuple[str, ...]
    bits: int
    clock: str
    source: str
    optional: Mapping[str, int]

    def read(self, counts: Mapping[str, float], cycles: float | None) -> float | None:
        """Return the sum of the counters; None when one is missing or may have wrapped."""
        total = 0.0
        for name, sign in self.terms.items():
            value = _find(name, counts)
            if value is None:
                return None
            narrow = self.bits < 32 and name != "cycles"
            if narrow and value < 2**self.bits and (cycles is None or cycles >= 2**self.bits):
                return None
            total += sign * value
        return total + sum(sign * counts.get(name, 0.0) for name, sign in self.optional.items())

    def price(self, counted: float, predicted_events: Mapping[str, float],
              predicted_cycles: int) -> float | None:
        """Return cycles of a count: itself, or at the prediction's cycles per event."""
        if not self.events:
            return counted
        expected = sum(predicted_events.get(event, 0.0) for event in self.events)
        if expected > 0:
            return counted * predicted_cycles / expected
        return 0.0 if counted == 0 and predicted_cycles == 0 else None


def read_part(group: CounterGroup, part: Part) -> float | None:
    """Return what a group's counters say of a part; None where they do not tell.

    An epoch whose log calls it one of software uses no accelerator: its cycles there are none.
    """
    if part.op == SOFTWARE and group.clock == "npu":
        return group.read(dict.fromkeys(group.terms, 0.0) | dict(part.counts), None)
    return group.read(part.counts, part.amounts.get("cycles"))


def _find(name: str, counts: Mapping[str, float]) -> float | None:
    return next((counts[alias] for alias in (name, *ALIASES.get(name, ())) if alias in counts),
                None)


@lru_cache(maxsize=1)
def load_groups() -> tuple[CounterGroup, ...]:
    """Return the table, in its order."""
    document = read_yaml(Path(__file__).with_name("counters.yaml"))
    return tuple(CounterGroup(
        name=entry["name"], terms=dict(entry["sum"]), causes=_causes(entry),
        events=tuple(entry.get("events", ())), bits=entry.get("bits", 64),
        optional=dict(entry.get("optional", {})), clock=entry.get("clock", ""),
        source=document["sources"][entry["source"]])
        for entry in document["entries"])


def _causes(entry: Mapping[str, Any]) -> tuple[str, ...]:
    if "clock" in entry:
        return tuple(f"{cause}@{entry['clock']}" for cause in CAUSES)
    return tuple(entry["causes"])
