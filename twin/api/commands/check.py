"""`twin check`: does it fit, and does it meet the limits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING

from hwmodels.frozen import frozen
from hwmodels.quantities import NOT_KNOWN
from twin.api.commands.predict import describe_numbers
from twin.api.commands.sweep import limits_of, make_deployer
from twin.api.requests import prediction as request
from twin.api.requests import takes
from twin.errors import UsageError
from twin.pricing import calibrated
from twin.pricing.inference import say_above_idle
from twin.pricing.ledger import name_energies
from twin.pricing.prediction import Prediction
from twin.pricing.requirement import Requirement
from twin.studies.limits import Limits, price_of, read_limit
from twin.studies.rows import Row, bound_mean, find_least_mean, judge

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from twin.deployment.deployment import Deployment
    from twin.program.regions import Region


PERIOD = "within its period"
"""Name of the limit that wake-up and inference end before the next begins."""


@frozen
class Check:
    """A prediction held to limits.

    Parameters
    ----------
    requirements : tuple of Requirement
        Its memories, and the limits that were asked.
    sure : bool
        Whether the whole interval has to meet them.
    row : Row or None
        With what its duty takes, where one was asked.
    probability : float or None
        That all limits are met together, as rows of `sweep` have it; None where no more than one
        is uncertain, or it is not known.
    notes : tuple of str
        What an arena lacks or could save, and what a program leaves of its memories.
    """

    prediction: Prediction
    requirements: tuple[Requirement, ...]
    sure: bool = False
    row: Row | None = None
    probability: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether every requirement is met."""
        return all(one.surely_met if self.sure else one.met for one in self.requirements)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to warn of."""
        doubtful = (one for one in self.requirements if one.met and not one.surely_met)
        idle = self.prediction.board.idle()
        replaced = {} if idle is None or all(one.unit != "uJ" for one
                                                in self.requirements) else {
            say_above_idle(idle): "energy is held to its limit with idle: with the "
            f"{idle} the idle board draws meanwhile; predict says what is above it"}
        return (*self.notes, *(replaced.get(one, one) for one in self.prediction.warnings),
                *(f"--sure: {one.name} may exceed its limit" for one in doubtful if self.sure))


@takes(request.Check)
def check(asked: request.Check) -> Check:
    """Say whether a model fits a board and meets limits.

    Requirements and whether they are `met`; a price that is not known meets no limit.

    Raises
    ------
    UsageError
        For a limit that is none, or when to be sure of what has no interval.
    """
    limits = limits_of(asked)
    if asked.prices and asked.max_usd is None:
        warnings.warn("--price: changes nothing without --max-usd USD", stacklevel=2)
    arena_bytes = None if (given := asked.arena_bytes) is None else int(read_limit(
        "arena_bytes", given if isinstance(given, str) else f"{given}B"))
    deployer = make_deployer(asked, [asked.deployment.board])
    deployment = deployer.state(asked.deployment)
    prediction = calibrated.predict_calibrated(deployment, temperature=asked.temperature,
                                               calibration=fspath(asked.calibration))
    spare, arena, remarks = _check_arena(asked.deployment, arena_bytes)
    requirements = _list_requirements(prediction, spare, limits)
    row = probability = None
    if limits.every_us is not None or (limits.max_time_us and limits.max_energy_uj):
        row, = deployer.predict_changed(deployment, [{}])
        probability = judge(row, replace(limits, max_price_usd=None)).probability
        row = bound_mean(row, limits) if limits.every_us else None
        requirements += _list_duty_requirements(row, limits) if row else ()
    if limits.max_price_usd is not None:
        requirements += (Requirement(
            name="price", unit="USD", decimals=2,
            predicted=price_of(prediction.board, deployer.prices)[0],
            limit=limits.max_price_usd),)
    if asked.sure:
        _require_intervals(requirements)
    requirements += arena
    if asked.map_file is not None:
        from twin.program.regions import read_regions

        regions = read_regions(asked.map_file, asked.deployment.board)
        found, notes = _check_regions(asked.deployment, regions, arena_bytes or 0)
        requirements += found
        remarks += notes + tuple(map(_say_region, regions))
    several = sum(one.chance_above is not None for one in requirements) > 1
    return Check(prediction=prediction, requirements=requirements, sure=asked.sure, row=row,
                 probability=probability if several else None,
                 notes=(*remarks, *describe_numbers(deployment, asked.calibration,
                                                    asked.temperature)))


def _list_duty_requirements(row: Row, limits: Limits) -> tuple[Requirement, ...]:
    """Return that wake-up and inference end within their period, and the limit of mean power."""
    wake_up_us = row.wake_up_us
    period = Requirement(name=PERIOD, unit="ms", limit=(limits.every_us or 0.0) / 1e3,
                         predicted=((row.time_us or 0.0) + wake_up_us) / 1e3, decimals=3,
                         interval=_in_ms(row.time, wake_up_us))
    days = "" if limits.min_life_days is None else f" for {limits.min_life_days:,.4g} days"
    row = find_least_mean(row, limits.every_us or math.inf)
    bound = row.sleep == NOT_KNOWN and row.mean_mw is not None
    days += ", at least" * bound
    return (period,) if limits.max_mean_mw is None else (period, Requirement(
        name=f"mean power{days}", unit="mW", limit=limits.max_mean_mw, predicted=row.mean_mw,
        decimals=3, interval=row.mean, at_least=bound))


def _in_ms(time_us: Interval | None, more_us: float = 0.0) -> Interval | None:
    return time_us and replace(time_us, low=(time_us.low + more_us) / 1e3,
                               high=(time_us.high + more_us) / 1e3)


MUCH = 0.1
"""Share of an arena that may be more than is needed before it is worth a word."""


def _check_arena(deployment: Deployment, stated: int | None,
                 ) -> tuple[int, tuple[Requirement, ...], tuple[str, ...]]:
    """Return the RAM a stated arena takes beyond its need, its size as a limit, and a note."""
    buffer = deployment.buffer
    if stated is None:
        return 0, (), ()
    if buffer is None:
        raise UsageError(f"--arena-bytes: {deployment.runtime.identity} is given no arena; "
                         "accepted with TFLite Micro, X-CUBE-AI and ExecuTorch")
    more = "".join(f", and more for {what}" for what in buffer.unknown)
    spare = stated - buffer.needed_bytes
    needed = f"{buffer.name}: {buffer.needed_bytes:,} bytes are needed{more}"
    notes: tuple[str, ...] = ()
    if spare < 0:
        notes = (f"{needed}; {-spare:,} {'is' if spare == -1 else 'are'} lacking",)
    elif spare > MUCH * buffer.needed_bytes:
        notes = (f"{needed}; {spare:,} could be saved",)
    return max(0, spare), (Requirement(name=f"fits {buffer.name}", unit="bytes", limit=stated,
                                       predicted=buffer.needed_bytes),), notes


def _say_region(region: Region) -> str:
    """Say what a program leaves of a region, or by how much it overflows it."""
    left = (f"{region.left_bytes:,} of {region.size_bytes:,} bytes left beside the program's "
            f"{region.used_bytes:,}" if region.left_bytes >= 0 else
            f"the program's {region.used_bytes:,} bytes are {-region.left_bytes:,} more than its "
            f"{region.size_bytes:,}")
    arena = f", {region.arena_bytes:,} of which are an arena" if region.arena_bytes else ""
    beyond = "" if region.stated_bytes == region.size_bytes else (
        f"; its length is stated as {region.stated_bytes:,}, the rest of which is not memory of "
        "the board")
    return f"{region.name}: {left}{arena}{beyond}"


def _check_regions(deployment: Deployment, regions: Sequence[Region], stated: int,
                   ) -> tuple[tuple[Requirement, ...], tuple[str, ...]]:
    """Return whether arena and weights have room in the region of their memory, and notes.

    An arena the program has already gives way to the new one; weights it has are not asked for.
    """
    found, notes = [], []
    buffer = deployment.buffer
    arena_bytes = max(stated, deployment.working_ram_bytes if buffer is None
                      else buffer.needed_bytes)
    for what, memory, needed in (("arena", deployment.arena, arena_bytes),
                                 ("weights", deployment.weights, deployment.linked_bytes)):
        spans = deployment.board.memory(memory).spans
        inside = [one for one in regions if any(
            low < one.start + one.size_bytes and one.start < high for low, high in spans)]
        if not inside:
            raise UsageError(f"--map: no region in {memory} of {deployment.board.name}, the "
                             f"memory of the {what}; its regions: " + ", ".join(
                                 f"{one.name} at {one.start:#x}" for one in regions))
        own = range(*spans[0])  # as data are addressed, where code has another window on it
        region = max(inside, key=lambda one: (one.start in own, one.left_bytes + one.arena_bytes))
        held = max(one.weights_bytes for one in inside)
        if what == "weights" and held >= deployment.placement.weights_bytes:
            notes.append(f"weights: the program has variables of {held:,} bytes named as a model, "
                         f"taken to be them; {needed:,} are needed")
            continue
        if what == "arena" and not region.arena_bytes:
            notes.append(f"arena: no variable named ...arena... in {region.name}, so the new one "
                         "is beside what there is; where the program has one, give the linked "
                         "ELF, or a map of GNU ld of code built with -fdata-sections")
        found.append(Requirement(
            name=f"{what} in {region.name}", unit="bytes", predicted=needed,
            limit=max(0, region.left_bytes + (region.arena_bytes if what == "arena" else 0))))
    return tuple(found), tuple(notes)


def _require_intervals(requirements: Sequence[Requirement]) -> None:
    """Refuse to be sure of a time or an energy that is a point."""
    for one in requirements:
        if one.unit in ("ms", "uJ", "mW") and one.predicted is not None and one.interval is None:
            raise UsageError(f"--sure: no interval of {one.name} is known, for no measurement "
                             "stands behind it; accepted: a board, runtime or --calibration "
                             f"with one of {one.name}")


def _require_energy(prediction: Prediction, max_uj: float) -> Requirement:
    """Return the limit of energy, held to the idle board's too where that is separate."""
    *_, (name, (energy_uj, interval)) = name_energies(prediction).items()
    return Requirement(name=name, unit="uJ", limit=max_uj, decimals=1, predicted=energy_uj,
                       interval=interval)


def _list_requirements(prediction: Prediction, spare: int, limits: Limits,
                       ) -> tuple[Requirement, ...]:
    """Return what a deployment must meet: its memories, and the limits; `spare` RAM is taken."""
    ram = prediction.deployment.plan.filled or {
        "RAM": (prediction.ram_bytes + spare, prediction.ram_available_bytes)}
    requirements = [
        *(Requirement(name=f"fits {name}", unit="bytes", predicted=used, limit=size)
          for name, (used, size) in ram.items()),
        Requirement(name=f"fits {prediction.deployment.store_name}", unit="bytes",
                    predicted=prediction.flash_bytes, limit=prediction.flash_available_bytes),
    ]
    if limits.max_time_us is not None:
        requirements.append(Requirement(
            name="time", unit="ms", limit=limits.max_time_us / 1e3, decimals=3,
            predicted=prediction.time_us / 1e3, interval=_in_ms(prediction.time_interval)))
    if limits.max_energy_uj is not None:
        requirements.append(_require_energy(prediction, limits.max_energy_uj))
    if limits.max_ram_bytes is not None:
        requirements.append(Requirement(name="RAM", unit="bytes", limit=limits.max_ram_bytes,
                                        predicted=prediction.ram_bytes + spare))
    if limits.max_flash_bytes is not None:
        requirements.append(Requirement(name="flash", unit="bytes", limit=limits.max_flash_bytes,
                                        predicted=prediction.flash_bytes))
    return tuple(requirements)
