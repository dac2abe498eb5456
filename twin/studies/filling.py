"""Rows filled: what was asked, what a batch predicts, and what a duty draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import Board
from hwmodels.counts import CAUSES
from hwmodels.frozen import NamedTexts
from hwmodels.paths.timing import Floats
from twin.deployment.deployment import Deployment
from twin.deployment.memories import choose_memory
from twin.network.graph import Graph
from twin.network.operators import name_precision, parameter_bytes
from twin.pricing.batch import Batch
from twin.pricing.draw import write_draw
from twin.pricing.grade import lower_grade
from twin.pricing.ledger import whole_energy
from twin.pricing.variables import CAUSE, relate_to_time
from twin.studies.axes import Point, label
from twin.studies.duty import (
    CELL_V,
    TYPED,
    Duty,
    Sleeps,
    find_rest,
    idle_power_mw,
    life_days,
    mean_power_mw,
    spread_mean,
)
from twin.studies.limits import price_of
from twin.studies.rows import Row

_OVERHEAD = [CAUSES.index("kernel_call"), CAUSES.index("launch")]


def describe_row(point: Point, deployment: Deployment, prices: tuple[str, str, str],
                 own: Mapping[str, float]) -> Row:
    """Return the row of a deployment, without what is predicted of it.

    Parameters
    ----------
    prices
        Calibration, what its intervals rest on, and its grade.
    own
        The user's prices of boards and chips, in US dollars.
    """
    board = deployment.board
    price_usd, what = price_of(board, own)
    return Row(
        inputs=name_inputs(point), model=label(point.get("model", deployment.graph.name)),
        board=board.name, runtime=deployment.runtime.identity,
        clock_hz=board.core_clock.frequency_hz,
        voltage_scale=board.power.voltage_scale, weights=deployment.weights_named,
        arena=deployment.arena_named, calibration=prices[0], basis=prices[1], grade=prices[2],
        ram_room_bytes=deployment.ram_room_bytes, flash_room_bytes=deployment.flash_room_bytes,
        price_usd=price_usd, price_of=what, kit_usd=board.price_usd, boundary=board.power.boundary,
        cell=name_cell(deployment, prices[0]), currents=TYPED if board.power.of_networks else "",
        code=deployment.code if deployment.code != choose_memory(
            board, dict(board.placement)["code"]).name else "")


def weigh(row: Row, graph: Graph) -> Row:
    """Return a row with the precision and the bytes of the parameters of its network."""
    return replace(row, precision=name_precision(graph),
                   parameter_bytes=parameter_bytes(graph, graph.layers))


def name_cell(deployment: Deployment, calibration: str) -> str:
    """Return how well the code of a deployment is known: a key of `results.CELLS`.

    Parameters
    ----------
    deployment
        Whose runtime is looked at.
    calibration
        As `Calibration.description` says it.
    """
    runtime = deployment.runtime
    if runtime.is_compiled or deployment.target.executes or runtime.learnt is not None:
        return "built"
    if runtime.counted is not None:
        return "counted"
    if runtime.structure == "open" and not runtime.tile_outputs:
        return "lowered"
    own = f"{deployment.board.name}, {runtime.identity}, learnt from "
    return "measured" if own in calibration and not runtime.tile_outputs else "assumed"


def fill_row(row: Row, batch: Batch, number: int, board: Board) -> Row:
    """Return a row with the figures of a row of a batch, and what its idle board draws."""
    time = _interval(batch.time_low_us, batch.time_high_us, number, batch.level)
    cycles = float(batch.time_us[number]) * (row.clock_hz or math.nan) * 1e-6
    causes = {f"{CAUSE}.{cause}": float(us) for cause, us in zip(
        CAUSES, batch.cause_us[number], strict=True) if us}
    filled = replace(
        row, grade=lower_grade(row.grade, extrapolates=bool(batch.extrapolates[number])),
        time_us=float(batch.time_us[number]), time=time, basis=row.basis if time else "",
        energy_uj=_known(batch.energy_uj[number]),
        energy=_interval(batch.energy_low_uj, batch.energy_high_uj, number, batch.level),
        ram_bytes=int(batch.ram_bytes[number]), flash_bytes=int(batch.flash_bytes[number]),
        draw=() if batch.draws is None or not (draw := batch.draws[number]) else write_draw(draw),
        overhead_us=_known(batch.cause_us[number, _OVERHEAD].sum()),
        variables=tuple(sorted({**relate_to_time(dict(row.variables), cycles),
                                **causes}.items())))
    idle = board.idle(row.clock_hz)
    if idle is None or filled.energy_uj is None:
        return filled
    energy_uj, energy = whole_energy(idle, filled.energy_uj, batch.time_us[number].item(),
                                     filled.energy, time)
    return replace(filled, idle_mw=idle.mw, energy=energy, energy_uj=energy_uj)


def add_duty(row: Row, board: Board, duty: Duty | None, sleep: Sleeps) -> Row:
    """Return a row with its mean power, energy a day and battery life; as it is without a duty.

    Notes
    -----
    Ends of the mean power: what the inference adds at both ends of the intervals of time and
    energy, as `twin scenario` plays them, and what sleep adds at the ends of its current
    (`spread_mean`).
    """
    if duty is None:
        return row
    rest = find_rest(board, sleep, row.clock_hz)
    row = replace(row, sleep="not known" if rest is None else rest.state,
                  wake_up_us=0.0 if rest is None else rest.wake_up_us)
    idle = None if row.clock_hz is None else idle_power_mw(board, row.clock_hz)
    if rest is None or idle is None or row.time_us is None or row.energy_uj is None:
        return row
    mean_mw = mean_power_mw(duty.every_us, row.time_us, row.energy_uj, rest, idle)
    if mean_mw is None:
        return row
    mean = None
    if row.time is not None and row.energy is not None:
        asleep = 1 - (row.time_us + rest.wake_up_us) / duty.every_us
        least, most = (mean_power_mw(
            duty.every_us, min(time_us, duty.every_us - rest.wake_up_us), energy_uj, rest, idle)
            or mean_mw for time_us, energy_uj in (
                (row.time.low, row.energy.low), (row.time.high, row.energy.high)))
        low, high = spread_mean(mean_mw, (least, most), asleep * rest.sleep_mw, rest.rel_sd,
                                asleep * rest.half_mw)
        mean = Interval(low=low, high=high, level=row.energy.level)
    days = life_days(duty.cell, mean_mw)
    life = None if mean is None or days is None else Interval(
        low=life_days(duty.cell, mean.high) or 0.0, high=life_days(duty.cell, mean.low) or 0.0,
        level=mean.level)
    taken = () if days is None else (
        f"a cell in mAh without @VOLTS has {CELL_V:g} V (assumed)" * duty.assumes_volts, rest.basis)
    wake_mw = idle * rest.wake_up_us / duty.every_us
    return replace(
        row, mean_mw=mean_mw, mean=mean, life_days=days, life=life, wake_mw=wake_mw,
        life_basis="; ".join(filter(None, taken)),
        asleep_mw=mean_mw - wake_mw - row.energy_uj * 1e3 / duty.every_us)


def name_inputs(point: Point) -> NamedTexts:
    """Return the values of a point by axis, as they are written."""
    return tuple((name, label(value)) for name, value in point.items())


def _interval(low: Floats, high: Floats, number: int, level: float) -> Interval | None:
    ends = float(low[number]), float(high[number])
    return None if math.isnan(ends[0]) else Interval(low=ends[0], high=ends[1], level=level)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
