"""Limits of a design, how sure it is that a prediction meets them all, and what boards cost.

Limits are written as people write them: "100ms", "5mJ", "256KiB", "12USD". Prices have kind and
source; what nobody listed is not known, and never guessed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

import numpy as np

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import Board
from hwmodels.board.file import list_boards, load_board
from hwmodels.errors import BoardError, did_you_mean
from hwmodels.frozen import NamedNumbers, frozen
from hwmodels.quantities import UNITS, drop_none, read_quantity, suggest_unit
from twin.errors import UsageError
from twin.pricing.requirement import probability_above, sd_towards
from twin.studies.duty import TYPED, Duty, Value, mean_mw_of, stated

UNIT_OF = {"max_ms": ("ns", "ms"), "max_uj": ("pj", "uJ"), "max_ram": ("bytes", "B"),
           "max_flash": ("bytes", "B"), "max_usd": ("", ""), "max_mw": ("mw", "mW"),
           "min_days": ("days", "d")}
"""Dimension of each limit, and the unit of a bare number."""

LEAST_PLAIN_BYTES = 1024
"""A limit of fewer bytes needs its unit: who writes 64 means KiB."""

LARGEST = 1e18
"""Of any limit and figure of a row: 30,000 years in microseconds."""

SHORTEST_US = 1e-6
"""What an inference may take where the wake-up alone outlasts the period: less than any does."""

_STEPS = np.linspace(-8.0, 8.0, 1601)
_DENSITY = np.exp(-_STEPS**2 / 2) / math.sqrt(2 * math.pi) * (_STEPS[1] - _STEPS[0])


@frozen
class Limits:
    """The largest values a design may have; None: any.

    Parameters
    ----------
    max_mean_mw
        Of the duty; what a least life allows is in it.
    max_error
        Share of wrong answers.
    max_parameter_bytes
        Of the network's constants.
    every_us, min_life_days
        The period, which no inference may outlast, and the life that was asked for where it is the
        stricter limit of mean power.
    """

    max_time_us: float | None = None
    max_energy_uj: float | None = None
    max_ram_bytes: float | None = None
    max_flash_bytes: float | None = None
    max_price_usd: float | None = None
    max_mean_mw: float | None = None
    max_error: float | None = None
    max_parameter_bytes: float | None = None
    every_us: float | None = None
    min_life_days: float | None = None

    def __bool__(self) -> bool:
        """Whether any limit is set."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    def list_limits(self) -> NamedNumbers:
        """Return the limits that are set, by the quantity they hold: `results.QUANTITIES`."""
        found = {field.name.removeprefix("max_"): limit for field in fields(self)
                 if field.name.startswith("max_")
                 and (limit := getattr(self, field.name)) is not None}
        if self.every_us is not None:
            found = {"time_us": min(self.every_us, found.pop("time_us", math.inf)), **found}
        return tuple(found.items())

    def after(self, wake_up_us: float) -> Limits:
        """Return the limits of an inference that starts so long after its period."""
        return self if self.every_us is None else replace(
            self, every_us=max(self.every_us - wake_up_us, SHORTEST_US))


Given = float | str | None
"""A limit as a user gives it: a number, or one with its unit; None: none."""


def read_limits(*, min_accuracy: Given = None, duty: Duty | None = None,
                **given: Given) -> Limits:
    """Read limits as people write them.

    Parameters
    ----------
    max_ms, max_uj : float or str, optional
        Longest time and most energy of an inference: a bare number in ms and uJ, or "0.1s", "5mJ".
    max_ram, max_flash : float or str, optional
        Bytes, or "256KiB".
    max_usd : float or str, optional
        US dollars, "12", "12USD" or "$12".
    max_mw, min_days : float or str, optional
        Highest mean power and shortest life of the cell: a bare number in mW and days.
    min_accuracy : float or str, optional
        Least share of right answers: 0.9 or "90%".
    duty
        What mean power and life are of.

    Raises
    ------
    UsageError
        For what is not a number above 0 with a unit it may have, and a limit without its duty.
    """
    found = {name: read_limit(name, limit) for name, limit in given.items() if limit is not None}
    mean_mw, days = found.get("max_mw"), found.get("min_days")
    if duty is None and (mean_mw is not None or days is not None):
        raise UsageError("--max-mw, --min-days: need a period; accepted: --every PERIOD beside "
                         "them, such as --every 1s")
    if days is not None:
        if duty is None or duty.cell is None:
            raise UsageError("--min-days: of no cell; accepted: --cell with it, such as "
                             "--cell 1000mAh@3.7V")
        least = mean_mw_of(duty.cell, days)
        mean_mw, days = (least, days) if mean_mw is None or least < mean_mw else (mean_mw, None)
    return Limits(max_error=None if min_accuracy is None else 1 - read_share(min_accuracy),
                  max_mean_mw=mean_mw, min_life_days=days,
                  every_us=None if duty is None else duty.every_us,
                  max_time_us=1e3 * found["max_ms"] if "max_ms" in found else None,
                  max_energy_uj=found.get("max_uj"), max_ram_bytes=found.get("max_ram"),
                  max_flash_bytes=found.get("max_flash"), max_price_usd=found.get("max_usd"))


def read_share(given: float | str) -> float:
    """Read a share: 0.9 or "90%"; raises `UsageError` for what is none above 0 and below 1."""
    text = str(given).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f"--min-accuracy {text!r} is not a limit; accepted: a share above 0 and "
                         "below 1, such as 0.9 or 90%")
    return share


def read_limit(name: str, given: float | str, option: str = "") -> float:
    """Read one limit in the unit of a bare number.

    Parameters
    ----------
    name
        Key of `UNIT_OF`; anything else is in bytes.
    given : float or str
        As for `read_limits`.
    option
        What a refusal names; "": the option of `name`.

    Raises
    ------
    UsageError
        For what is not a number above 0 with a unit it may have.
    """
    dimension, unit = UNIT_OF.get(name, ("bytes", "B"))
    option = option or "--" + name.replace("_", "-")
    text = str(given)
    if name == "max_usd":
        text = text.strip().removeprefix("$").removesuffix("USD").removesuffix("$")
    number, written = read_quantity(text, dimension) or (0.0, "")
    limit = number / float(UNITS[dimension][unit]) if written else number
    what = "price" if option.startswith("--price") else "limit"
    if dimension == "bytes" and not written and 0 < number < LEAST_PLAIN_BYTES:
        raise UsageError(f"{option} {text!r} is not a limit; accepted: so few bytes with a "
                         f"unit, {number:g}KiB or {number:g}B")
    if not 0 < limit < LARGEST:
        accepted = f"in {unit}, or with one of {', '.join(UNITS[dimension])}" if unit else "in USD"
        raise UsageError(f"{option} {text!r} is not a {what}; accepted: a number above 0 {accepted}"
                         + f", below {LARGEST:g}" * (limit >= LARGEST)
                         + suggest_unit(text, dimension))
    return limit


def probability_within(limit: float | None, point: float | None, interval: Interval | None,
                       ) -> float | None:
    """Return the probability that a quantity meets a limit; None where that is not known.

    Parameters
    ----------
    limit
        None: any value is accepted.
    point
        Predicted; None is not known.
    interval
        None: there is none, and only a point is known.
    """
    if limit is None:
        return 1.0
    if point is None or interval is None:
        return None
    if point <= 0 or interval.low == interval.high:
        return float(point <= limit)
    return 1.0 - probability_above(limit, point, interval)


def probability_both(time: float, energy: float, time_sd: float, energy_sd: float) -> float:
    """Return the probability that time and energy meet their limits together.

    Parameters
    ----------
    time, energy
        Log of limit over prediction.
    time_sd, energy_sd
        Of the logarithms, above 0; the energy's holds that of the time, for it is time x power.

    Notes
    -----
    With z standard normal, log time = z time_sd and log energy = log time + an independent power
    of variance energy_sd^2 - time_sd^2, so

        P = integral over z < time / time_sd of phi(z) Phi((energy - z time_sd) / power_sd).

    Taking both as independent would be too sure of failing, the smaller of the two too sure of
    passing.
    """
    power_sd = math.sqrt(max(energy_sd**2 - time_sd**2, (1e-3 * energy_sd)**2))
    inside = (time / time_sd > _STEPS)
    steps, density = _STEPS[inside], _DENSITY[inside]
    reach = (energy - steps * time_sd) / power_sd
    below = np.array([0.5 * math.erfc(-one / math.sqrt(2.0)) for one in reach])
    return float(min(1.0, density @ below))


def probability_of_all(limits: Limits, *, time_us: float, energy_uj: float | None,
                       time: Interval | None, energy: Interval | None, mean_mw: float | None = None,
                       mean: Interval | None = None, ) -> float | None:
    """Return the probability that time, energy and mean power meet their limits.

    None where that is not known. Energy and mean power share their error: the less probable counts.

    Parameters
    ----------
    limits
        Of which only time and energy are uncertain.
    mean_mw, mean
        Mean power of the duty.
    """
    asked = dict(limits.list_limits())
    max_time_us, max_energy_uj = asked.get("time_us"), asked.get("energy_uj")
    if (max_energy_uj is not None and energy_uj is None) or (
            limits.max_mean_mw is not None and mean_mw is None):
        return None
    chance = probability_within(max_energy_uj, energy_uj, energy)
    of_mean = probability_within(limits.max_mean_mw, mean_mw, mean)
    if limits.max_mean_mw is not None and of_mean is not None and (
            max_energy_uj is None or of_mean < (chance if chance is not None else 1.0)):
        chance, max_energy_uj, energy_uj, energy = of_mean, limits.max_mean_mw, mean_mw, mean
    chances = [probability_within(max_time_us, time_us, time), chance]
    if (max_time_us is None or max_energy_uj is None or time is None
            or energy is None or energy_uj is None or time_us <= 0 or energy_uj <= 0
            or time.low == time.high or energy.low == energy.high):
        return None if None in chances else min(drop_none(chances))
    return probability_both(
        math.log(max_time_us / time_us), math.log(max_energy_uj / energy_uj),
        sd_towards(max_time_us, time_us, time), sd_towards(max_energy_uj, energy_uj, energy))


def price_of(board: Board, own: Mapping[str, float] | None = None) -> tuple[float | None, str]:
    """Return the price of a board's chip in US dollars and what that is; None is not known.

    What a product buys: the price of a kit is not a price of a chip, and never stands in for it.

    Parameters
    ----------
    board
        Its file's `part_price_usd`, where the user states no other.
    own
        The user's prices, by name of board or chip.
    """
    typed = stated(board, own)
    if typed is not None:
        return typed, TYPED
    kind = next((fact.kind for fact in board.facts if fact.path == "board.part_price_usd"), "")
    return board.part_price_usd, "" if board.part_price_usd is None else f"chip, {kind}"


def read_prices(texts: tuple[str, ...] | list[str]) -> dict[str, float]:
    """Read NAME=USD words: the user's prices of boards or chips.

    Raises
    ------
    UsageError
        For a word that is none.
    """
    return {name: read_limit("max_usd", usd, f"--price {name}")
            for name, usd in read_named(texts, "--price", "USD", "13.5").items()}


def read_named(texts: tuple[str, ...] | list[str], option: str, form: str, example: str,
               ) -> dict[str, str]:
    """Read BOARD=VALUE or CHIP=VALUE words."""
    found = dict[str, str]()
    for text in texts:
        name, equals, value = (word.strip() for word in text.partition("="))
        if not (name and equals):
            raise UsageError(f"{option} {text!r}: accepted: BOARD={form} or CHIP={form}, such as "
                             f"nucleo_f401re={example}")
        if name in found:
            raise UsageError(f"{option} {name}: is given twice")
        found[name] = value
    return found


def name_boards(option: str, given: Mapping[str, Value] | None, boards: Iterable[Board],
                ) -> dict[str, Value]:
    """Return what is stated by board or chip; a board by any of its names.

    Raises
    ------
    UsageError
        For a name of no chip and no board, of those asked about or shipped, and one given twice.

    Warns
    -----
    UserWarning
        Of a value no board asked about takes.
    """
    boards = [*boards]
    chips, found = {name for one in boards for name in (one.name, one.soc)}, dict[str, Value]()
    for name, value in (given or {}).items():
        known = name
        if name not in chips:
            try:
                known = load_board(name).name
            except BoardError as error:
                shipped = {load_board(one).soc for one in list_boards()}
                if name not in shipped:
                    raise UsageError(f"{option} {name!r}: is neither a board nor a chip; "
                                     + did_you_mean(name, shipped.union(chips, list_boards()))
                                     ) from error
        if known in found:
            raise UsageError(f"{option} {name}: is given twice")
        found[known] = value
    for name in {*found} - {next((key for key in (one.name, one.soc) if key in found), "")
                            for one in boards}:
        warnings.warn(f"{option} {name}: changes nothing: " + (
            "its board has a value of its own" if name in chips else
            "no board or chip asked about has that name"),
            stacklevel=2)
    return found


def describe_price(board: Board) -> str:
    """Say what a board and its chip alone cost, how well that is known, and after whom."""
    price_texts = [f"{fact.value:g} USD for the {what} ({fact.kind}: {fact.source})"
            for what, key in (("board", "price_usd"), ("chip alone", "part_price_usd"))
            for fact in board.facts if fact.path == f"board.{key}" and fact.value is not None]
    return "; ".join(price_texts) or "not known: no public list of it was found"
