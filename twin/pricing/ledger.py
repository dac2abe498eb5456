"""The bill in whole cycles, as it is shown, and in one sentence.

Lines sum to layers, layers to the total. By operand (which of weights, input, output and scratch a
line was paid for) cycles are split by largest remainder within each line, so operands sum to lines
exactly; what the core does by itself has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from calibration.fitting.intervals import Interval
from hwmodels.board.power import Idle
from hwmodels.counts import CAUSE_GROUPS, CAUSE_WORK, CAUSES, CORE_EVENTS, Bill
from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from hwmodels.prices import derive_prices
from hwmodels.quantities import apportion, format_time, significant, sum_by_key
from twin.deployment.placement import layer_dtype
from twin.network.graph import Layer
from twin.network.operators import OPERATORS
from twin.pricing.prediction import LayerPrediction, Prediction

Line = tuple[str, ...]
"""(clock, cause), or (clock, cause, operand)."""

Cycles = Mapping[Line, int]
"""Whole cycles by line."""


@frozen
class Ledger:
    """Integer cycles by layer, clock and cause, or operand as well.

    Parameters
    ----------
    layers
        Per layer, (clock, cause) or (clock, cause, operand) -> cycles.
    setup
        The same for set-up, which has no operands.
    """

    layers: tuple[Cycles, ...]
    setup: Cycles

    @property
    def total(self) -> Cycles:
        """Sum over layers, in the order bills are shown."""
        return _add_up(self.layers)


def _add_up(parts: Iterable[Cycles]) -> Cycles:
    """Return sums by key in the order of bills."""
    sums = sum_by_key(line for part in parts for line in part.items())  # of 0, too
    return dict(sorted(sums.items(), key=lambda item: _order(item[0])))


def cycles_by_clock(lines: Cycles) -> dict[str, int]:
    """Sum cycles per clock; cycles of different clocks are never added."""
    return sum_by_key((clock, cycles) for (clock, _), cycles in lines.items())


def make_ledger(prediction: Prediction) -> Ledger:
    """Round a prediction's cycles so that every shown sum holds.

    Parameters
    ----------
    prediction
        With bills in real-valued cycles.

    Returns
    -------
    Ledger
        Integers; per clock the total is the rounded real total.

    Notes
    -----
    Largest remainder, top down: the rounded total is apportioned to layers, each layer's share
    to its lines. Rounding each line by itself would lose the sums.
    """
    bills = [layer.bill for layer in prediction.layers]
    layers: list[dict[Line, int]] = [{} for _ in bills]
    for clock in dict.fromkeys(clock for bill in bills for clock in bill.clocks()):
        shares = apportion([bill.cycles(clock) for bill in bills])
        for lines, bill, share in zip(layers, bills, shares, strict=True):
            lines.update(_share_out_clock(bill, clock, share))
    setup: dict[Line, int] = {}
    for clock in prediction.setup.clocks():
        whole = round(prediction.setup.cycles(clock))
        setup.update(_share_out_clock(prediction.setup, clock, whole))
    return Ledger(layers=tuple(_add_up([lines]) for lines in layers), setup=_add_up([setup]))


def share_out(values: Sequence[float], decimals: int, total: float | None = None) -> list[float]:
    """Round non-negative values to so many decimals such that the shown sum holds.

    Equal values are shown alike where other values can take what rounding leaves.

    Parameters
    ----------
    decimals
        Digits shown after the point.
    total
        The shown sum, already of those decimals; by default the values' rounded sum.

    Returns
    -------
    list of float
        As many as `values`.
    """
    scale = 10**decimals
    whole = None if total is None else round(total * scale)
    return [part / scale for part in apportion([value * scale for value in values], whole,
                                               alike=True)]


def percentages(values: Sequence[float], decimals: int = 0) -> list[float]:
    """Shares in percent that sum to 100 as shown; all zero when the values are."""
    whole = math.fsum(values)
    if whole <= 0:
        return [0.0] * len(values)
    return share_out([100 * value / whole for value in values], decimals, total=100)


def line_time_us(prediction: Prediction, clock: str, cycles: float) -> float:
    """Time of cycles of a clock, in microseconds."""
    return cycles / prediction.board.clock(clock).frequency_hz * 1e6


def bill_time_us(prediction: Prediction, bill: Bill, cause: str | None = None) -> float:
    """Time of a bill, or of one cause of it, across clocks, in microseconds."""
    return math.fsum(line_time_us(prediction, clock, bill.cycles(clock, cause))
                     for clock in bill.clocks())


def line_energy_uj(bill: Bill, clock: str, cause: str) -> float | None:
    """Energy of one cause in one clock, in microjoules; None when a price is not known."""
    return _sum_uj([line.energy_pj for line in bill.lines
                    if line.clock == clock and line.cause == cause])


def _sum_uj(energies_pj: Sequence[float | None]) -> float | None:
    known = [energy for energy in energies_pj if energy is not None]
    return math.fsum(known) * 1e-6 if len(known) == len(energies_pj) else None


def cause_times_us(prediction: Prediction, bill: Bill) -> dict[str, float]:
    """Time of each cause of a bill across clocks, in microseconds."""
    return {cause: bill_time_us(prediction, bill, cause) for cause in bill.causes()}


def cause_energies_uj(bill: Bill) -> dict[str, float]:
    """Energy of each cause across clocks, in microjoules; what has no price counts nothing."""
    return {cause: math.fsum(line_energy_uj(bill, clock, cause) or 0.0 for clock in bill.clocks())
            for cause in bill.causes()}


def _share_out_clock(bill: Bill, clock: str, whole: int) -> Cycles:
    causes = [cause for cause in bill.causes()
              if any(line.cause == cause and line.clock == clock for line in bill.lines)]
    shares = apportion([bill.cycles(clock, cause) for cause in causes], whole)
    return {(clock, cause): share for cause, share in zip(causes, shares, strict=True)}


def _order(key: Line) -> tuple[object, ...]:
    clock, cause, *operands = key
    return (CAUSES.index(cause), clock, *map(_role_order, operands))


_PHRASES = {"memory": "memory-bound", "compute": "compute", "movement": "data movement",
            "overhead": "other"}

_OF_MISSES = ("data_refill", "flash_wait", "write_back")
"""Memory causes that follow misses of the data cache."""


def explain_time(prediction: Prediction) -> str:
    """Say in one sentence where the time goes.

    Parameters
    ----------
    prediction
        Its bill is where every figure comes from.

    Returns
    -------
    str
        "120 ms because 45 % memory-bound (L1 miss rate 12 %), 30 % compute (MAC utilisation
        65 %), 15 % data movement, 10 % other": whole percentages that sum to 100.

    Notes
    -----
    Percentages are the times of the four groups of causes. The miss rate is misses over lines
    looked up in the data cache, which says nothing of an accelerator's streams: where those cost
    most of the memory causes, that cause is named. MAC utilisation is the share of the time of
    the compute causes that `least_mac_us` needs.
    """
    shares = group_percentages(prediction)
    parts = []
    for group in sorted(shares, key=lambda group: (group == "overhead", -shares[group])):
        if shares[group]:
            detail = _detail(prediction, group)
            parts.append(f"{shares[group]} % {_PHRASES[group]}"
                         + (f" ({detail})" if detail else ""))
    time = format_time(prediction.time_us)
    return f"{time} because {', '.join(parts)}" if parts else f"{time}: nothing is on the bill"


def group_percentages(prediction: Prediction) -> dict[str, int]:
    """Share of the time of each group of causes, in whole percent summing to 100."""
    times = [math.fsum(bill_time_us(prediction, prediction.bill, cause) for cause in causes)
             for causes in CAUSE_GROUPS.values()]
    return {group: int(share)
            for group, share in zip(CAUSE_GROUPS, percentages(times), strict=True)}


def miss_rate(prediction: Prediction) -> float | None:
    """Misses per data-cache line looked up, of the whole run, 0 to 1; None without look-ups."""
    accesses = sum(layer.accesses for layer in prediction.layers)
    return sum(layer.misses for layer in prediction.layers) / accesses if accesses else None


def mac_utilisation(prediction: Prediction) -> float | None:
    """Share of the compute causes' time that useful MACs need; None if none are counted.

    On an accelerator, where they hide behind transfers, of what its units could do in its cycles.
    """
    if prediction.tasks:
        from twin.pricing.utilisation import find_utilisation

        used = find_utilisation(prediction.tasks)
        return None if used is None else used.mac_use
    compute = math.fsum(bill_time_us(prediction, prediction.bill, cause)
                        for cause in CAUSE_GROUPS["compute"])
    return min(1.0, least_mac_us(prediction) / compute) or None if compute else None


def least_mac_us(prediction: Prediction) -> float:
    """Time of the core's issue slots of useful MACs, in microseconds; an accelerator's as billed.

    A learnt factor below 1 scales all causes of a kernel, so the bill's `mac` can be less.
    """
    prices = derive_prices(prediction.board)
    return math.fsum(line_time_us(
        prediction, line.clock, line.exposed * prices.price(line.event, line.place).cycles
        if line.event in CORE_EVENTS else line.cycles)
        for line in prediction.bill.lines if line.cause == "mac")


def _detail(prediction: Prediction, group: str) -> str:
    times = {cause: bill_time_us(prediction, prediction.bill, cause)
             for cause in CAUSE_GROUPS[group]}
    largest = max(times, key=lambda cause: times[cause])
    if largest in _OF_MISSES and (rate := miss_rate(prediction)) is not None:
        name = prediction.board.core.dcache or ""
        label = "L1" if name.lower().startswith("l1") else name
        return f"{label} miss rate {significant(100 * rate, 2)} %"
    if group == "compute" and (share := mac_utilisation(prediction)) is not None:
        return f"MAC utilisation {significant(100 * share, 2)} %"
    return "" if group == "movement" else f"mostly {largest}"


class Largest(NamedTuple):
    """The cause most time goes to, and the operators that carry most of it."""

    cause: str
    share: float
    """Of the time, 0 to 1."""
    operators: tuple[str, ...]
    text: str
    """"requantisation and addresses of 1x1 convolutions"."""


def find_largest(prediction: Prediction) -> Largest | None:
    """Find the largest cause, and the one or two kinds of operator that carry most of it.

    Returns
    -------
    Largest or None
        None where nothing takes time.
    """
    times = cause_times_us(prediction, prediction.bill)
    cause = max(times, key=lambda each: times[each], default="")
    if not times.get(cause):
        return None
    deployment = prediction.deployment
    graph = None if deployment.target.executes else deployment.executed
    drawn = {} if graph is None else {layer.index: layer for layer in graph.layers}
    carried: Counter[str] = Counter()
    requantised = 0.0
    for layer in prediction.layers:
        time_us = bill_time_us(prediction, layer.bill, cause)
        own = drawn.get(layer.index)
        carried[_name_operator(layer, own)] += time_us  # type: ignore[assignment]
        if own is not None and graph is not None and layer.macs and layer_dtype(
                graph, own) != "float32":
            requantised += time_us
    first, *others = carried.most_common(2)
    operators = (first[0], *(kind for kind, time_us in others if 2 * first[1] <= times[cause]))
    work = ("requantisation and addresses" if cause == "alu" and 2 * requantised > times[cause]
            else CAUSE_WORK[cause])
    return Largest(cause, times[cause] / prediction.time_us, operators,
                   f"{work} of {' and '.join(operators)}")


def _name_operator(layer: LayerPrediction, drawn: Layer | None) -> str:
    """Return a layer's operator in the plural; a program's function by its name."""
    plural = OPERATORS[layer.op].plural if OPERATORS.is_ours(layer.op) else ""
    kind = plural or (layer.name if layer.called else f"{layer.op} layers")
    if drawn is None or drawn.window is None or drawn.groups > 1 or not layer.macs:
        return kind
    return "{}x{} ".format(*drawn.window.kernel) + kind


ROLES = ("weights", "bias", "parameters", "input", "output", "scratch", "state", "")
"""Order operands are shown in; "" is the core itself."""


def make_operand_ledger(prediction: Prediction) -> Ledger:
    """Split the lines of a prediction's ledger by operand; parts sum to them exactly."""
    ledger = make_ledger(prediction)
    return Ledger(setup=ledger.setup, layers=tuple(
        _split(layer.bill, lines)
        for layer, lines in zip(prediction.layers, ledger.layers, strict=True)))


def split_document(document: JsonObject, prediction: Prediction) -> JsonObject:
    """Return a prediction's document with every line of its bills split by operand.

    Parameters
    ----------
    document
        From `to_document`; not changed.

    Returns
    -------
    dict
        Its lines have "operand": a role, or null for what the core does by itself.
    """
    ledger = make_operand_ledger(prediction)
    layers = [{**layer, "bill": _lines(prediction, bill, parts)} for layer, bill, parts in zip(
        document["layers"], (layer.bill for layer in prediction.layers), ledger.layers,
        strict=True)]
    setup = {**document["setup"],
             "bill": [{**line, "operand": None} for line in document["setup"]["bill"]]}
    total = {**document["total"], "bill": _lines(prediction, prediction.bill, ledger.total)}
    return {**document, "layers": layers, "setup": setup, "total": total}


def _split(bill: Bill, lines: Cycles) -> Cycles:
    parts: dict[Line, int] = {}
    for (clock, cause), cycles in lines.items():
        real = sum_by_key((line.operand, line.cycles) for line in bill.lines
                          if (line.clock, line.cause) == (clock, cause))
        roles = sorted(real, key=_role_order)
        for role, share in zip(roles, apportion([real[role] for role in roles], cycles),
                               strict=True):
            parts[clock, cause, role] = share
    return parts


def _lines(prediction: Prediction, bill: Bill, parts: Cycles) -> list[JsonObject]:
    shown = []
    for (clock, cause, operand), cycles in parts.items():
        mine = [line for line in bill.lines
                if (line.clock, line.cause, line.operand) == (clock, cause, operand)]
        shown.append({
            "cause": cause, "clock": clock, "operand": operand or None, "cycles": cycles,
            "time_us": line_time_us(prediction, clock, math.fsum(line.cycles for line in mine)),
            "energy_uj": _sum_uj([line.energy_pj for line in mine])})
    return shown


def _role_order(operand: str) -> tuple[int, str]:
    place = ROLES.index(operand) if operand in ROLES else len(ROLES) - 1
    return place, operand


def name_energies(prediction: Prediction) -> dict[str, tuple[float | None, Interval | None]]:
    """Return the energy of an inference and its interval by name; limits hold the last.

    Of a board whose idle draw is stated apart: above idle, and with idle.
    """
    idle, above_uj = prediction.board.idle(), prediction.energy_uj
    interval = prediction.energy_interval
    return {"energy": (above_uj, interval)} if idle is None or above_uj is None else {
        "energy above idle": (above_uj, interval), "energy with idle": whole_energy(
            idle, above_uj, prediction.time_us, interval, prediction.time_interval)}


def whole_energy(idle: Idle, energy_uj: float, time_us: float, energy: Interval | None = None,
                 time: Interval | None = None) -> tuple[float, Interval | None]:
    """Return an energy above idle with what the idle board draws meanwhile, and its interval.

    Notes
    -----
    energy + idle x time; lower and upper ends are those of energy, draw and time together, for a
    network that takes longer takes more of both. Ignores how well the draw was measured.
    """
    return energy_uj + idle.mw * time_us * 1e-3, None if energy is None or (
        time is None) else replace(energy, low=energy.low + idle.low_mw * time.low * 1e-3,
                                   high=energy.high + idle.high_mw * time.high * 1e-3)
