"""A duty: an inference every period from a cell, asleep in between, in closed form.

    P = (E + P_idle t_wake + P_sleep (T - t - t_wake)) / T

with E and t of an inference and T the period; `twin scenario` simulates the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import Field

from calibration.fitting.bands import NORMAL_REACH
from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from hwmodels.prices import clock_tree_pj, leakage_pj
from hwmodels.quantities import UNITS, Ends, Settings, read_quantity, suggest_unit
from twin.errors import UsageError
from twin.studies.files import CHECKED

DAYS_A_YEAR = 365.25
SECONDS_A_DAY = 86_400
J_PER_MWH = 3.6
LONGEST_US = 1e14

LEAST_MA_PER_MHZ, MOST_MA_PER_MHZ, MOST_SLEEP_MA = 1e-3, 100.0, 1e3
"""Of what a user may state: more is a slip of the unit."""

CELL_V = 3.0
"""Of a cell given in mAh alone (assumed): two alkaline cells, a lithium coin."""

TREE_SHARE = 0.3
"""Of a stated run current: the clock tree's; of the rest, what a waiting cycle draws (assumed)."""

TYPED, IDLE = "as stated", "idle"
"""Names of a sleep state whose current the user states, and of none: the board idles."""

STATED = "sleep current as stated, without a spread"
"""Basis of the spread of a sleep current the user states."""

Positive = Annotated[float, Field(ge=1e-9, le=1e9)]
Share = Annotated[float, Field(gt=0, le=1)]
Value = TypeVar("Value")

Sleeps = Mapping[str, tuple[float, float | None]]
"""The user's, by board or chip: current in mA, and wake-up in us where it is stated."""


@frozen
class Battery:
    """What feeds it.

    Parameters
    ----------
    usable
        Share of the capacity that can be had.
    regulator_efficiency
        Between battery and rail, 0 to 1.
    self_discharge_per_year
        Share of the capacity lost in a year by itself.
    """

    __pydantic_config__ = CHECKED

    capacity_mah: Positive
    voltage_v: Positive
    usable: Share = 1.0
    regulator_efficiency: Share = 1.0
    self_discharge_per_year: Annotated[float, Field(ge=0, lt=1)] = 0.0


@frozen
class Duty:
    """An inference every `every_us`, from a cell where there is one, of a voltage given or not."""

    every_us: float
    cell: Battery | None = None
    assumes_volts: bool = False


SLEEP_SD = 0.3
"""Of the logarithm of a typical sleep current, where its board's file states none: assumed. Maxima
at 25 °C of 17 states that keep RAM are 1.2 to 2.5 times typical in 15, 1.75 in the middle, and are
taken as three deviations, the widest of them (TI MSP430FR5969, FR5724, G2744, F6720, F123
datasheets: LPM3, LPM4). What a warmer part draws, twice as much at 60 °C, is not in it."""


@frozen
class Rest:
    """What a board draws between inferences; `rel_sd` of the sleep current, and its basis.

    Parameters
    ----------
    half_mw
        Half of what clocks leave open of an idle board's draw.
    """

    state: str
    sleep_mw: float
    wake_up_us: float = 0.0
    rel_sd: float = 0.0
    half_mw: float = 0.0
    basis: str = STATED


def life_days(battery: Battery | None, mean_mw: float) -> float | None:
    """Return the days a battery lasts at a mean power.

    Notes
    -----
    Energy = capacity x voltage x usable share; what the rail draws is divided by the regulator's
    efficiency; self-discharge draws its share of the capacity evenly. The sag of the voltage and
    the capacity's dependence on current are ignored.
    """
    if battery is None:
        return None
    return _energy_mwh(battery) / (mean_mw / battery.regulator_efficiency + _lost_mw(battery)) / 24


def mean_mw_of(battery: Battery, days: float) -> float:
    """Return the mean power at which a battery lasts so many days: `life_days` inverted."""
    return (_energy_mwh(battery) / (24 * days) - _lost_mw(battery)) * battery.regulator_efficiency


def _energy_mwh(battery: Battery) -> float:
    return battery.capacity_mah * battery.voltage_v * battery.usable


def _lost_mw(battery: Battery) -> float:
    return (battery.capacity_mah * battery.voltage_v * battery.self_discharge_per_year
            / (DAYS_A_YEAR * 24))


def idle_power_mw(board: Board, clock_hz: float) -> float | None:
    """Return what a board draws with its clock on: clock tree, leakage, what idles beside them."""
    tree, leak = clock_tree_pj(board.power), leakage_pj(board.power)
    if tree is None or leak is None:
        return None
    return tree * clock_hz * 1e-9 + leak + idle_mw(board, clock_hz)  # pJ a ns is mW.


def idle_mw(board: Board, clock_hz: float) -> float:
    """Return what a board draws idle that its currents leave out."""
    idle = board.idle(clock_hz)
    return 0.0 if idle is None else idle.mw


def mean_power_mw(every_us: float, time_us: float, energy_uj: float, rest: Rest,
                  idle_mw: float) -> float | None:
    """Return the mean power of a duty; None where inference and wake-up outlast the period."""
    asleep_us = every_us - time_us - rest.wake_up_us
    return None if asleep_us < 0 else (
        energy_uj * 1e3 + idle_mw * rest.wake_up_us + rest.sleep_mw * asleep_us) / every_us


def find_rest(board: Board, sleep: Sleeps, clock_hz: float | None = None) -> Rest | None:
    """Return the sleep of least current that keeps RAM and whose wake-up is known; None: none is.

    Parameters
    ----------
    board
        With its states; one of which only the idle draw of the whole board is known idles.
    sleep
        The user's.
    """
    own = stated(board, sleep)
    known = [state for state in board.sleep if state.keeps_ram and state.current_ma is not None
             and state.wake_up_ns is not None]
    least = min(known, key=lambda state: state.current_ma or 0.0, default=None)
    wake_up_us = (own or (0.0, None))[1] or (
        0.0 if least is None else (least.wake_up_ns or 0.0) / 1e3)
    if own is not None:
        volts = board.power.counted_v
        return Rest(state=f"{TYPED} at {volts:g} V", sleep_mw=own[0] * volts, wake_up_us=wake_up_us)
    if least is None:
        idle = board.idle(clock_hz)
        return None if idle is None else Rest(
            state=IDLE, sleep_mw=idle.mw, half_mw=idle.high_mw - idle.mw, basis="",
            rel_sd=rel_sd_of(board, "power.idle_mw"))
    rel_sd, basis = find_spread(board, least.name)
    return Rest(state=least.name, wake_up_us=wake_up_us, rel_sd=rel_sd, basis=basis,
                sleep_mw=(least.current_ma or 0.0) * (least.voltage_v or board.power.counted_v))


def find_spread(board: Board, state: str) -> tuple[float, str]:
    """Return the relative deviation of the current of a board's sleep state, and its basis."""
    for fact in board.facts:
        if fact.path == f"sleep.{state}.current_ma" and (sd := fact.rel_sd):
            return sd, f"sleep current {fact.kind}, unsure by {sd:.0%} (one deviation)"
    return SLEEP_SD, f"sleep currents at 25 °C, {SLEEP_SD:.0%} apart between parts (assumed)"


def spread_mean(mean_mw: float, awake_mw: Ends, asleep_mw: float, rel_sd: float,
                half_mw: float = 0.0) -> Ends:
    """Return both ends of a mean power's 90 % interval.

    Parameters
    ----------
    awake_mw
        Mean power at the low and the high end of the inference's intervals.
    asleep_mw
        Part of the mean that is sleep, of relative deviation `rel_sd`, and give or take `half_mw`;
        independent of the inference (the root of the sum of squares).
    """
    low, high = (mean_mw + side * math.hypot(end - mean_mw, asleep_mw * math.expm1(
        side * NORMAL_REACH * rel_sd) + side * half_mw) for side, end in zip(
            (-1, 1), awake_mw, strict=True))
    return low, high


def rel_sd_of(board: Board, path: str) -> float:
    """Return the relative deviation a board's file states of a fact; 0 where it states none."""
    return next((fact.rel_sd or 0.0 for fact in board.facts if fact.path == path), 0.0)


def stated(board: Board, values: Mapping[str, Value] | None) -> Value | None:
    """Return what the user states of a board, by its name or its chip's; None: nothing."""
    return next((values[name] for name in (board.name, board.soc) if values and name in values),
                None)


def current_paths(board: Board, ma_per_mhz: float) -> Settings:
    """Return what-if paths that give a board a run current in place of its file's currents.

    It is drawn as typed, in every cycle, whether the core works or waits.
    """
    power = board.power
    tree, activity = power.clock_tree_ma_per_mhz, power.activity_ma_per_mhz
    share = tree / (tree + activity) if tree and activity else TREE_SHARE
    scales = {fact.path.rpartition(".")[2] for fact in board.facts
              if fact.path.startswith("power.clock_tree_ma_per_mhz.")} or {"default"}
    paths: dict[str, object] = {
        "power.reference_voltage_v": power.voltage_v, "power.reference_regulator": power.regulator,
        "power.of_networks": True, "power.reference_ipc": power.reference_ipc or 1.0,
        "power.stall_share": power.stall_share or 0.0}
    for scale in sorted(scales):
        paths |= {f"power.leakage_ma.{scale}": 0.0,
                  f"power.clock_tree_ma_per_mhz.{scale}": share * ma_per_mhz,
                  f"power.activity_ma_per_mhz.{scale}": (1 - share) * ma_per_mhz}
    return paths


def assumed_paths(board: Board) -> Settings:
    """Return what-if paths that leave out run and sleep currents and prices that are assumed."""
    return {fact.path: None for fact in board.facts
            if fact.kind == "assumed" and fact.value is not None and (
                fact.path.endswith(("price_usd", ".current_ma"))
                or fact.path.startswith("power.activity_ma_per_mhz"))}


def read_duty(every: str | None, cell: str | None) -> Duty | None:
    """Read a period, "1s", and a cell, "1000mAh@3.7V" or "3.7Wh"; None without a period.

    Raises
    ------
    UsageError
        For what is none, and a cell without a period.
    """
    if every is None:
        if cell is not None:
            raise UsageError("--cell: how long it lasts depends on how often; accepted: --every "
                             "PERIOD with it, such as --every 1s")
        return None
    every_us = _read(str(every), "period", "--every", 1e-3)[0]
    if every_us > LONGEST_US:
        raise UsageError(f"--every {every!r}: accepted: up to {LONGEST_US / 8.64e10:,.0f}d")
    if cell is None:
        return Duty(every_us=every_us)
    found = _read_cell(str(cell))
    return Duty(every_us=every_us, cell=found, assumes_volts="@" not in str(cell)
                and found.voltage_v == CELL_V)


def _read_cell(text: str) -> Battery:
    charge, at, volts = text.partition("@")
    if not at and (read_quantity(charge, "j") or ("", ""))[1]:
        capacity, voltage = _read(charge, "j", "--cell")[0] / J_PER_MWH, 1.0
    else:
        more = " with @VOLTS; or " + ", ".join(UNITS["j"])
        capacity = _read(charge, "mah", "--cell", more=more)[0]
        voltage = _read(volts, "v", "--cell")[0] if at else CELL_V
    if not (1e-9 <= capacity <= 1e9 and 1e-3 <= voltage <= 1e3):
        raise UsageError(f"--cell {text!r}: is not a cell; accepted: a capacity such as "
                         "1000mAh@3.7V or 3.7Wh")
    return Battery(capacity_mah=capacity, voltage_v=voltage)


def read_currents(given: Mapping[str, float | str]) -> dict[str, float]:
    """Read run currents by board or chip, "52uA/MHz"; mA/MHz."""
    return {name: read_current(str(value), f"--currents {name}") for name, value in given.items()}


def read_current(text: str, option: str) -> float:
    """Read a run current; mA/MHz."""
    return _read(text, "ma_per_mhz", option, least=LEAST_MA_PER_MHZ, most=MOST_MA_PER_MHZ)[0]


def read_sleep(given: Mapping[str, float | str]) -> Sleeps:
    """Read sleep currents by board or chip, "1.2uA" or "1.2uA,10us" with the wake-up; mA and us."""
    found: dict[str, tuple[float, float | None]] = {}
    for name, value in given.items():
        current, comma, wake_up = str(value).partition(",")
        option = f"--sleep {name}"
        found[name] = (_read(current, "ma", option, most=MOST_SLEEP_MA)[0],
                       _read(wake_up, "ns", option)[0] / 1e3 if comma else None)
    return found


def _read(text: str, dimension: str, option: str, factor: float = 1.0, more: str = "",
          least: float = 0.0, most: float = math.inf) -> tuple[float, str]:
    number, unit = read_quantity(text, dimension) or (0.0, "")
    if not unit or not 0 < number < math.inf or not least <= number <= most:
        end = f"above the largest accepted, {most:g}" if number > most else (
            f"below the least accepted, {least:g}")
        raise UsageError(f"{option} {text!r} is " + (
            f"{end} {next(iter(UNITS[dimension]))}" if unit and 0 < number < math.inf else
            "not understood; accepted: a number above zero with "
            f"one of {', '.join(UNITS[dimension])}{more}{suggest_unit(text, dimension)}"))
    return number * factor, unit
