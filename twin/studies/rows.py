"""A row of a study: what was asked, what is predicted, and the limits it meets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from operator import attrgetter

from calibration.fitting.intervals import LEVEL, Interval
from hwmodels.frozen import NamedNumbers, NamedTexts, frozen
from hwmodels.quantities import NOT_KNOWN, drop_none
from twin.network.model_file import name_model
from twin.studies.duty import SECONDS_A_DAY
from twin.studies.limits import Limits, probability_of_all, probability_within

WORDS = {"time_us": "time", "energy_uj": "energy", "ram_bytes": "RAM", "flash_bytes": "flash",
         "price_usd": "price", "mean_mw": "mean power", "error": "error rate",
         "parameter_bytes": "parameters"}

QUANTITIES = tuple(WORDS)
"""What limits and objectives are of."""

UNCERTAIN = ("time_us", "energy_uj", "mean_mw", "error")
"""Those that have intervals."""

NAMED = ("model", "board", "runtime", "clock", "clocks.cpu.frequency_hz", "clocks.fc.frequency_hz")
"""Inputs a row has a column of its own for; the core's clock is `fc` on GreenWaves' boards."""

VERDICTS = ("yes", "may", "no")
"""Whether a row meets every limit; "may": only figures that are not known decide."""

SURE = 0.9
"""Probability of meeting the limits from which a row surely meets them."""

CELLS = {"built": "machine code read from a program", "counted": "instructions counted of the "
         "library's own code", "lowered": "loops lowered from the library's sources",
         "measured": "loops assumed, prices learnt from runs of this library on this board",
         "assumed": "loops assumed, no run of this library on this board"}
"""How well the code behind a row is known, best first."""

OBJECTIVE_OF = {"time": "time_us", "latency": "time_us", "energy": "energy_uj", "ram": "ram_bytes",
                "flash": "flash_bytes", "price": "price_usd", "usd": "price_usd",
                "power": "mean_mw", "days": "mean_mw", "parameters": "parameter_bytes",
                "accuracy": "error", "error": "error"}
"""Names of objectives as people give them."""


@frozen
class Row:
    """One point of a study, predicted or failed.

    Parameters
    ----------
    inputs : tuple of (str, str)
        Label by axis, as asked.
    model, board, runtime
        As deployed; of a failed row as asked.
    time_us, energy_uj
        Predicted; None is not known.
    overhead_us
        Of the time, what calls of kernels and launches take; set-up is in no figure.
    idle_mw
        Draw of the idle board that was added to an energy predicted above it; None: none was.
    basis
        What the intervals rest on: a key of `calibration.fitting.intervals.BASES`, "" for none.
    calibration
        Which learnt prices; "" for stated ones.
    grade
        As of `grade.grade_prices`; "" where it failed.
    accuracy
        Share of right answers, 0 to 1, where data or a function of the user's were given.
    accuracy_by
        What ran the network, or why its accuracy is not known.
    cell
        Key of `CELLS`; "" where it failed.
    precision
        Type of the network's weights: "int8", "mixed", "none"; "" where it cannot be read.
    parameter_bytes
        Of its constants, as stored; None where it cannot be read.
    ram_room_bytes, flash_room_bytes
        What the memories in use have.
    price_usd
        Of the chip, or as the user states it; None is not known.
    price_of
        What that is: "chip" and the kind of source, "as stated", "" where it is not known.
    kit_usd
        Of the whole board, which is compared with nothing; None is not known.
    boundary
        Where its energy is counted: "chip" at its rail, or "board" at its input.
    currents
        "as stated": its run current is drawn in every cycle as it is typed; "" for its file's.
    code
        Memory of the code, where it is not the one the board's file puts it in; else "".
    sleep
        State between inferences, "not known", or "" where no duty was asked.
    wake_up_us
        From that state, before an inference.
    mean_mw, wake_mw, asleep_mw, life_days
        Mean power of the duty, the parts of wake-ups and of sleep in it, and the days its cell
        lasts. If the sleep current is not known, the mean power is that of inferences alone, and is
        given only above its limit.
    life_basis
        What the battery life takes as exact: a cell's assumed voltage, a sleep current; "" for
        nothing.
    variables : tuple of (str, float)
        What caches and memories were asked, time by cause, set-up: named by
        `twin.pricing.variables`, by name; what is not known is absent.
    failure, reason
        Kind of refusal ("does not fit", "runtime", ...) and its message; "" for none.
    violations
        Limited quantities whose prediction is above its limit, or not known.
    probability
        That all limits are met; None where that is not known.
    front
        `sweep.MARKS`: whether no row of its network is better in everything; "" where one is.
    draw
        What its time is uncertain by: of `twin.pricing.certainty.write_draw`; () is not known.
    """

    inputs: NamedTexts
    model: str = ""
    board: str = ""
    runtime: str = ""
    clock_hz: float | None = None
    voltage_scale: str = ""
    weights: str = ""
    arena: str = ""
    time_us: float | None = None
    time: Interval | None = None
    energy_uj: float | None = None
    energy: Interval | None = None
    overhead_us: float | None = None
    idle_mw: float | None = None
    basis: str = ""
    calibration: str = ""
    grade: str = ""
    accuracy: float | None = None
    accuracy_range: Interval | None = None
    accuracy_by: str = ""
    cell: str = ""
    precision: str = ""
    parameter_bytes: int | None = None
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    ram_room_bytes: int | None = None
    flash_room_bytes: int | None = None
    price_usd: float | None = None
    price_of: str = ""
    kit_usd: float | None = None
    boundary: str = ""
    currents: str = ""
    code: str = ""
    sleep: str = ""
    wake_up_us: float = 0.0
    mean_mw: float | None = None
    wake_mw: float | None = None
    asleep_mw: float | None = None
    mean: Interval | None = None
    life_days: float | None = None
    life: Interval | None = None
    life_basis: str = ""
    variables: NamedNumbers = ()
    failure: str = ""
    reason: str = ""
    violations: tuple[str, ...] = ()
    probability: float | None = None
    front: str = ""
    draw: tuple[float, ...] = field(default=(), repr=False, compare=False)

    @property
    def network(self) -> str:
        """What its model is called."""
        return name_model(self.model)

    def asked(self, axis: str) -> str:
        """Return the value that was asked for on an axis; "" where it does not vary."""
        return dict(self.inputs).get(axis, "")

    @property
    def named_inputs(self) -> dict[str, str]:
        """What varied, by axis; a model as it is called."""
        return {axis: name_model(value) for axis, value in self.inputs}

    @property
    def is_program(self) -> bool:
        """Whether it is a program the user brought: its runtime is its name and (FILE)."""
        return " (" in self.runtime

    @property
    def unknown(self) -> tuple[str, ...]:
        """Limited quantities that are not known."""
        return tuple(name for name in self.violations if getattr(self, name) is None)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.failure or len(self.unknown) < len(self.violations):
            return "no"
        return "may" if self.violations else "yes"

    @property
    def meets(self) -> str:
        """Its verdict, and whether missed limits may be met: that of one is inside its interval."""
        return self.verdict + ", may be within" * (
            self.verdict == "no" and (self.probability or 0.0) >= (1 - LEVEL) / 2)

    @property
    def is_bound(self) -> bool:
        """Whether its mean power is that of inferences alone, for its sleep is not known."""
        return self.sleep == NOT_KNOWN and self.mean_mw is not None

    @property
    def lacks_room(self) -> bool:
        """Whether it was predicted as if memories that are too small were large enough."""
        return (self.ram_bytes or 0) > (self.ram_room_bytes or 0) or (
            self.flash_bytes or 0) > (self.flash_room_bytes or 0)

    @property
    def met(self) -> bool:
        """Whether it was predicted and every limit is met by the prediction."""
        return not self.failure and not self.violations

    @property
    def sure(self) -> bool:
        """Whether it meets its limits with a probability of `SURE`, or by figures known exactly."""
        return self.met and (self.probability is None or self.probability >= SURE)

    def surely_met(self, limits: Limits) -> bool:
        """Whether every limit is met by the whole interval; never without one of time or energy."""
        for name, limit in limits.after(self.wake_up_us).list_limits():
            bounds = self.bounds_of(name)
            if bounds is None or bounds[2] > limit or (
                    name in UNCERTAIN and not self.interval_of(name)):
                return False
        return self.met

    @property
    def placement(self) -> str:
        """Memories of weights and arena, "flash/sram", and of code that moved; "" if it failed."""
        return "/".join(filter(None, (self.weights, self.arena, self.code)))

    @property
    def error(self) -> float | None:
        """Share of wrong answers: what limits and objectives are of, as less is better."""
        return None if self.accuracy is None else 1 - self.accuracy

    def interval_of(self, quantity: str) -> Interval | None:
        """Return the interval of a quantity; None where there is none."""
        if quantity == "error":
            held = self.accuracy_range
            return held and Interval(low=1 - held.high, high=1 - held.low, level=held.level)
        return {"time_us": self.time, "energy_uj": self.energy, "mean_mw": self.mean,
                "life_days": self.life}.get(quantity)

    @property
    def energy_day_j(self) -> float | None:
        """Energy a day of the duty."""
        return None if self.mean_mw is None or self.is_bound else (
            self.mean_mw * SECONDS_A_DAY * 1e-3)

    def compared_as(self, quantity: str) -> str:
        """Return what a quantity compares as: energies of an inference where they are counted."""
        return compare_as(quantity, self.boundary)

    def competes(self, quantity: str, kind: str) -> bool:
        """Whether it meets its limits with a known quantity that compares as `kind`."""
        return (self.met and getattr(self, quantity) is not None
                and self.compared_as(quantity) == kind)

    def bounds_of(self, quantity: str) -> tuple[float, float, float] | None:
        """Return low, predicted and high of a quantity; None where it is not known."""
        point = getattr(self, quantity)
        if point is None:
            return None
        interval = self.interval_of(quantity)
        return (point, point, point) if interval is None else (interval.low, point, interval.high)


Rows = tuple[Row, ...]


def list_known(rows: Iterable[Row], quantity: str) -> list[float]:
    """Return a quantity of those rows that know it."""
    return drop_none(getattr(row, quantity) for row in rows)


def find_row(rows: Iterable[Row], quantity: str) -> Row | None:
    """Return the row with least of a quantity, of those that know it; None: none does."""
    known = [row for row in rows if getattr(row, quantity) is not None]
    return min(known, key=attrgetter(quantity), default=None)


def ratio_of(after: Row | None, before: Row | None, quantity: str) -> float | None:
    """Return after over before of a quantity of two rows; None where it is not known of both."""
    now, then = (getattr(row, quantity, None) for row in (after, before))
    return None if now is None or not then else now / then


def compare_as(quantity: str, boundary: str) -> str:
    """Return what a quantity compares as: energies of an inference where they are counted."""
    return f"{quantity} of a {boundary}" * (quantity == "energy_uj") or quantity


def mixes_boundaries(rows: Iterable[Row]) -> bool:
    """Return whether energies of chips and of boards are among rows."""
    return len({row.boundary for row in rows if row.energy_uj is not None}) > 1


def judge(row: Row, limits: Limits) -> Row:
    """Return a row with what it violates and the probability of meeting every limit."""
    if row.failure:
        return replace(row, violations=(), probability=None)
    row = bound_mean(row, limits)
    limits = limits.after(row.wake_up_us)
    broken = tuple(name for name, limit in limits.list_limits()
                   if (value := getattr(row, name)) is None or value > limit)
    return replace(row, violations=broken, probability=_chance(row, limits, broken))


def bound_mean(row: Row, limits: Limits) -> Row:
    """Return a row whose sleep is not known with the mean power of its inferences, if too much."""
    if row.sleep != NOT_KNOWN:
        return row
    found = find_least_mean(row, limits.every_us or math.inf)
    return found if (found.mean_mw or 0.0) > (limits.max_mean_mw or math.inf) else (
        replace(row, mean_mw=None, mean=None))


def find_least_mean(row: Row, every_us: float) -> Row:
    """Return a row whose sleep is not known with the mean power of its inferences alone."""
    if row.sleep != NOT_KNOWN or row.energy_uj is None:
        return row
    share = 1e3 / every_us
    return replace(row, mean_mw=row.energy_uj * share,
                   mean=row.energy and row.energy.scale(share, share))


def limit_known(row: Row, limits: Limits) -> Limits:
    """Return limits without those of what no change of a deployment makes known.

    Asleep at a current that is not known, the mean power's is one of the energy of an inference.
    """
    if row.failure:
        return limits
    if row.sleep == NOT_KNOWN and limits.max_mean_mw and limits.every_us:
        limits = replace(limits, max_mean_mw=None, max_energy_uj=min(
            limits.max_mean_mw * limits.every_us * 1e-3, limits.max_energy_uj or math.inf))
    return replace(limits, **{
        f"max_{name}": None for name, _ in limits.list_limits()
        if getattr(row, name) is None and (name != "mean_mw" or row.energy_uj is None)})


def _chance(row: Row, limits: Limits, broken: Sequence[str]) -> float | None:
    if not limits or row.time_us is None:
        return None
    exact = [name for name in broken if name not in UNCERTAIN]
    if any(getattr(row, name) is not None for name in exact):
        return 0.0
    if exact:
        return None
    right = probability_within(limits.max_error, row.error, row.interval_of("error"))
    rest = probability_of_all(limits, time_us=row.time_us, energy_uj=row.energy_uj, time=row.time,
                              energy=row.energy, mean_mw=row.mean_mw, mean=row.mean)
    return None if right is None or rest is None else right * rest
