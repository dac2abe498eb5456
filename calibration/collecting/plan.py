"""What a measurement does: runs, warm-up, passes of counters, cold and warm."""

from __future__ import annotations

from collections.abc import Sequence

from calibration.collecting.board_samples import counter_name
from calibration.collecting.wire import payloads as wire
from calibration.errors import MeasurementError
from calibration.measurement.measurement import MOST_RUNS_ASKED
from hwmodels.errors import did_you_mean
from hwmodels.frozen import frozen

BLOCK_S = 1.0
"""Runs are asked for in blocks of about this long, so that progress and trouble show."""
EVENT_RUNS = 10
"""Runs of a pass that only adds event counters; the first pass gives the statistics."""
MOST_RUNS = 10
"""A spread that asks for more runs gets at most this many times those asked for."""
ALWAYS = ("CYCLES", "TIMER", "CHECKSUM", "INTERRUPTS")
"""Counters every run leaves; all others come in passes."""


@frozen
class Pass:
    """Runs that count the same events, by id."""

    events: tuple[int, ...]
    runs: int


@frozen
class Plan:
    """A measurement of one temperature.

    Parameters
    ----------
    temperature
        "cold" (caches emptied before every run) or "warm".
    warmup
        Runs before each pass that leave no sample.
    passes
        In order.
    most_runs
        Limit of the first pass when the spread asks for more; equal to its runs: never more.
    mask
        Mask interrupts around each layer instead of counting them.
    """

    temperature: str
    warmup: int
    passes: tuple[Pass, ...]
    most_runs: int
    mask: bool = False

    @property
    def runs(self) -> int:
        """Runs planned, before more are asked for."""
        return sum(one.runs for one in self.passes)

    @property
    def flags(self) -> int:
        """Flags of CONFIG."""
        flags = wire.CONFIG_FLAGS["LAYERS"]
        if self.temperature == "cold":
            flags |= wire.CONFIG_FLAGS["COLD"]
        return flags | (wire.CONFIG_FLAGS["MASK"] if self.mask else 0)


def choose_events(counters: Sequence[wire.Counter], wanted: Sequence[str] | None) -> list[int]:
    """Return ids of the event counters wanted, by the board's name or ours; None: all it lists.

    Raises
    ------
    MeasurementError
        For a name the board does not list.
    """
    always = {wire.COUNTER_IDS[name] for name in ALWAYS}
    listed = {name: counter.id for counter in counters if counter.id not in always
              for name in (counter.name, counter_name(counter))}
    if wanted is None:
        return list(dict.fromkeys(listed.values()))
    for name in wanted:
        if name not in listed:
            raise MeasurementError(f"the board counts no {name!r}; " + (
                did_you_mean(name, listed) if listed else "it lists no event counters"))
    return [listed[name] for name in wanted]


def make_plans(identity: wire.Identity, counters: Sequence[wire.Counter], *, runs: int = 100,
               warmup: int = 10, events: Sequence[str] | None = None, adaptive: bool = True,
               mask: bool = False) -> tuple[Plan, ...]:
    """Return the measurements a board can make: warm, and cold where it can empty its caches.

    Parameters
    ----------
    events
        Names of event counters; by default all.
    adaptive
        Make more runs where the spread asks for it.

    Raises
    ------
    MeasurementError
        When the numbers are impossible or the board cannot mask.
    """
    if not 1 <= runs <= MOST_RUNS_ASKED or not 0 <= warmup <= MOST_RUNS_ASKED:
        raise MeasurementError(f"{runs} runs after {warmup} warm-up runs; accepted: from 1, from 0"
                               f", to {MOST_RUNS_ASKED:,}")
    if mask and not identity.has("MASK"):
        raise MeasurementError(f"port {identity.port} cannot mask interrupts")
    ids = choose_events(counters, events)
    at_once = identity.counters_at_once
    groups = [tuple(ids[i:i + at_once]) for i in range(0, len(ids), at_once)] if at_once else []
    first, *rest = groups or [()]
    extra = tuple(Pass(events=group, runs=min(runs, EVENT_RUNS)) for group in rest)
    passes = (Pass(events=first, runs=runs), *extra)
    most = MOST_RUNS * runs if adaptive else runs
    warm = Plan(temperature="warm", warmup=warmup, passes=passes, most_runs=most, mask=mask)
    if not identity.has("COLD"):
        return (warm,)
    cold = Plan(temperature="cold", warmup=0, passes=passes, most_runs=runs, mask=mask)
    return (cold, warm)
