"""What a fault would do to each layer, by cause, and the pattern it is weighed on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import ndarray

from calibration.measurement.counters import ALIASES
from hwmodels.counts import CAUSE_GROUPS, CAUSES
from hwmodels.frozen import entity
from hwmodels.quantities import Ends
from twin.attribution.diagnosis.faults import Fault
from twin.attribution.pairing import pair_parts
from twin.attribution.side import Side
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.calibrated import predict_at
from twin.pricing.calibration import Calibration, choose_calibration
from twin.pricing.prediction import LayerPrediction, Prediction

BUS_EVENTS = ("sram_access", "dcache_read_refill", "dcache_write_refill", "icache_refill",
              "external_wait", "write_through")
"""Each is an access that another master on the bus delays."""

_MEMORY = np.array([cause in CAUSE_GROUPS["memory"] for cause in CAUSES])


@entity
class Effect:
    """A fault, foreseen.

    Parameters
    ----------
    logs
        Shape (layers,): logarithm of what each would take.
    shares
        Shape (layers, causes): of each layer's time, by cause.
    core
        Shape (layers,): share of time a slower core would scale; 0 for other faults.
    waits
        Shape (layers,): share of time that is waiting for another master.
    times
        How often instructions and misses are counted.
    density
        Shape (layers,): logarithm of multiply-accumulates per unit of the quantity.
    exact
        Logarithm of a factor on all layers that is known exactly: another clock's, of times.
    hidden
        Shape (layers,): logarithm of what a prefetch, or a cache's fills, may hide; None: as much
        as declared.
    also
        The same of a second measurement, taken otherwise.
    """

    logs: ndarray
    shares: ndarray
    core: ndarray
    waits: ndarray
    instructions: float
    misses: float
    lookups: float
    density: ndarray
    times: float = 1.0
    exact: float = 0.0
    hidden: ndarray | None = None
    also: Effect | None = None

    def unsure_move(self, declared: Effect) -> ndarray:
        """Return by how much each layer changes, as a logarithm, without the exact factor."""
        return np.asarray(self.logs - declared.logs - self.exact)


@dataclass(slots=True, kw_only=True)
class Forecasts:
    """What was foreseen, each once; good for one deployment at one calibration.

    Parameters
    ----------
    predictions
        By kind and name of the fault.
    effects
        By kind and name of the fault, and the pattern's quantity and layers.
    faults
        Those that are possible, by the clock that was observed, its error, whether it is only
        stated, the runtime as the log says it, the clock of its ticks, and whether it is a log.
    second
        Of the same deployment as second measurements were taken, by what was otherwise.
    """

    predictions: dict[tuple[str, str], Prediction] = field(default_factory=dict)
    effects: dict[tuple[object, ...], Effect] = field(default_factory=dict)
    faults: dict[tuple[object, ...], tuple[Fault, ...]] = field(default_factory=dict)
    second: dict[str, Forecasts] = field(default_factory=dict)

    def predict(self, name: tuple[str, str], deployment: Deployment, prices: Calibration | None,
                temperature: str) -> Prediction:
        """Predict a deployment, or return what was predicted under its name before."""
        if name not in self.predictions:
            self.predictions[name] = predict_at(deployment, prices, temperature=temperature)
        return self.predictions[name]

    def foresee(self, fault: Fault, base: Prediction, prices: Calibration | None,
                pattern: Pattern) -> Effect:
        """Predict what a single fault does to the layers of a pattern."""
        key = name_effect(fault, pattern)
        if key not in self.effects:
            self.effects[key] = self._foresee(fault, base, prices, pattern)
        return self.effects[key]

    def _foresee(self, fault: Fault, base: Prediction, prices: Calibration | None,
                 pattern: Pattern) -> Effect:
        changed = base if fault.deployment is None else self.predict(
            (fault.kind, fault.name), fault.deployment,
            _find_prices(fault.deployment, base, prices), base.temperature)
        versus = base if fault.versus is None else self.predict(
            ("versus", fault.versus.runtime.identity + str(
                [memory.prefetch for memory in fault.versus.board.memories])),
            fault.versus, _find_prices(fault.versus, base, prices), base.temperature)
        amounts, shares = _by_cause(changed, pattern)
        logs = np.log(amounts)
        if versus is not base:
            logs += np.log(_by_cause(base, pattern)[0] / _by_cause(versus, pattern)[0])
        executed = [float(sum(layer.instructions for layer in one.layers))
                    for one in (changed, versus, base)]
        effect = Effect(
            logs=logs, shares=shares, core=np.zeros(len(logs)), waits=np.zeros(len(logs)),
            density=np.log(np.maximum(_macs(changed, pattern), 1.0) / amounts),
            instructions=executed[0] * (executed[2] / executed[1] if executed[1] else 1.0),
            misses=float(sum(layer.misses for layer in changed.layers)),
            lookups=float(sum(layer.accesses for layer in changed.layers)))
        if fault.slowdown:
            of_family = dict(fault.slowdown_of)
            effect = _slow(effect, np.exp([of_family.get(family, fault.slowdown)
                                           for family in pattern.families]))
        if fault.wait_cycles:
            effect = _wait(effect, fault.wait_cycles * _accesses(changed, pattern) / amounts)
        slower = math.log(base.deployment.board.core_clock.frequency_hz
                          / changed.deployment.board.core_clock.frequency_hz)
        return replace(
            effect, logs=effect.logs + fault.stretch + fault.counted,
            times=math.exp(fault.counted) if fault.counts_all else 1.0,
            exact=slower * (fault.shifts_clock and pattern.quantity == "time"))


def expose(effect: Effect, declared: Effect, ahead: Sequence[Effect],
           fills: Sequence[Effect]) -> Effect:
    """Return an effect with what may be hidden under it.

    Parameters
    ----------
    ahead, fills
        What shows where no prefetch, and no fill of a cache, hides anything: beside what is
        declared, and beside this effect.
    """
    hidden = sum((one.logs - declared.logs for one in ahead), 0.0 * effect.logs) + sum(
        np.abs(one.logs - effect.logs) for one in fills)
    return replace(
        effect, hidden=np.asarray(hidden), also=effect.also and declared.also and expose(
            effect.also, declared.also, *([one.also for one in several if one.also]
                                          for several in (ahead, fills))))


def hidden_under(effect: Effect, declared: Effect) -> ndarray:
    """Return the logarithm of what may be hidden in each layer: as many cycles as declared."""
    known = 0.0 * effect.logs if declared.hidden is None else declared.hidden
    return effect.hidden if effect.hidden is not None else np.asarray(
        np.log1p(np.expm1(known) * np.exp(declared.logs - effect.logs)))


def name_effect(fault: Fault, pattern: Pattern) -> tuple[object, ...]:
    """Return what an effect is kept under."""
    return fault.kind, fault.name, pattern.quantity, pattern.layers


def join_effects(first: Effect, second: Effect, declared: Effect, *, rebuilt: bool) -> Effect:
    """Return what two faults do at once, from what each does alone.

    Parameters
    ----------
    first, second, declared
        Each alone, and neither.
    rebuilt
        The first runs other code, so that the second is met by other fetches and accesses.

    Notes
    -----
    Two changes of memories and clocks add, cause by cause. Other code takes its own work, and
    waits as long as the second fault makes each access wait: fetches grow with the work, other
    waits as they grew under the first alone.
    """
    one, two, none = (np.exp(each.logs)[:, None] * each.shares
                      for each in (first, second, declared))
    if rebuilt:
        core = ~_MEMORY
        grown = one[:, core].sum(axis=1) / np.maximum(none[:, core].sum(axis=1), 1.0)
        scale = np.where(none > 0, one / np.maximum(none, 1e-9), 1.0)
        scale[:, CAUSES.index("instruction_fetch")] = grown
        both = np.where(core, one, two * scale)
        # what the second does to the core's own work it does to other work alike
        both[:, core] *= (two[:, core].sum(axis=1) / np.maximum(
            none[:, core].sum(axis=1), 1.0))[:, None]
    else:
        both = np.maximum(one + two - none, 0.0)
    # waits for another master are in no cause
    outside = sum(np.exp(each.logs) * each.waits for each in (first, second))
    total = np.maximum(both.sum(axis=1) + outside, 1.0)
    also = None if not first.also or not second.also or not declared.also else join_effects(
        first.also, second.also, declared.also, rebuilt=rebuilt)
    ratio = (first.instructions * second.instructions / declared.instructions
             if declared.instructions else 0.0)
    return Effect(
        logs=np.log(total), shares=both / total[:, None], waits=outside / total,
        density=declared.density, also=also,
        hidden=first.hidden if second.hidden is None else second.hidden if first.hidden is None
        else np.minimum(first.hidden, second.hidden),
        core=np.maximum(first.core, second.core), instructions=ratio,
        misses=max(first.misses + second.misses - declared.misses, 0.0),
        lookups=max(first.lookups, second.lookups))


def _by_cause(prediction: Prediction, pattern: Pattern) -> tuple[ndarray, ndarray]:
    """Amounts of the pattern's layers, and each one's shares by cause."""
    amounts, shares = [], []
    for layers in _layers(prediction, pattern):
        amounts.append(max(sum(_amount(layer, pattern.quantity) for layer in layers), 1.0))
        own = [(layer.clock, layer.bill.by_cause()) for layer in layers]
        row = np.array([sum(bill.get((clock, cause), 0.0) for clock, bill in own)
                        for cause in CAUSES])
        shares.append(row / max(row.sum(), 1e-9) * (pattern.quantity != "instructions"))
    return np.array(amounts), np.array(shares)


def _layers(prediction: Prediction, pattern: Pattern) -> list[list[LayerPrediction]]:
    if pattern.layers == (None,):
        return [list(prediction.layers)]
    places = {layer.index: layer for layer in prediction.layers}
    return [[places[index]] if index in places else [] for index in pattern.layers
            if index is not None]


def _amount(layer: LayerPrediction, quantity: str) -> float:
    return {"cycles": layer.cycles, "time": layer.time_us * 1e3,
            "instructions": float(layer.instructions)}[quantity]


def _macs(prediction: Prediction, pattern: Pattern) -> ndarray:
    return np.array([sum(layer.macs for layer in layers)
                     for layers in _layers(prediction, pattern)])


def _accesses(prediction: Prediction, pattern: Pattern) -> ndarray:
    """How often each layer goes out on a bus."""
    return np.array([sum(line.occurred for layer in layers for line in layer.bill.lines
                         if line.event in BUS_EVENTS) for layers in _layers(prediction, pattern)])


def _find_prices(deployment: Deployment, base: Prediction,
                 prices: Calibration | None) -> Calibration | None:
    """Return the prices a changed deployment is predicted with: another library has its own."""
    if prices is None or prices.origin != "shipped" or (
            deployment.runtime.identity == base.deployment.runtime.identity):
        return prices
    return choose_calibration(deployment)


def _slow(effect: Effect, factors: ndarray) -> Effect:
    """Make the core's own work take factors longer; what waits for memories does not."""
    weights = np.where(_MEMORY, 1.0, factors[:, None])
    grown = np.where(effect.shares.any(axis=1), (effect.shares * weights).sum(axis=1), factors)
    core = 1 - effect.shares[:, _MEMORY].sum(axis=1)
    return replace(
        effect, logs=effect.logs + np.log(grown), shares=effect.shares * weights / grown[:, None],
        core=core * factors / grown, instructions=effect.instructions * float(np.mean(factors)))


def _wait(effect: Effect, extra: ndarray) -> Effect:
    """Add waits for another master, as shares of what each layer takes."""
    grown = 1 + extra
    return replace(effect, logs=effect.logs + np.log(grown), waits=extra / grown,
                   shares=effect.shares / grown[:, None])


PATTERN_SHARE = 0.99
"""The pattern rests on the layers predicted to make up this share; the rest is noise."""

LARGE_SHARE = 0.02
"""A layer measured to take more of the network than this is in it, however small predicted."""


@entity
class Pattern:
    """What is compared.

    Parameters
    ----------
    quantity
        "cycles", "time" or "instructions".
    layers
        In the model file; None alone is the whole network.
    families
        Of each layer: kernels that are off together.
    measured
        Shape (layers,).
    instructions, misses
        Of the whole network, where they were counted.
    left_out
        Which layers are not in it, and why; "" where all are.
    little
        Of each layer that is not in it, though measured: what is predicted, and what was measured.
    """

    quantity: str
    layers: tuple[int | None, ...]
    families: tuple[str, ...]
    measured: ndarray
    instructions: float | None
    misses: float | None
    left_out: str = ""
    little: tuple[Ends, ...] = ()

    @property
    def counted(self) -> tuple[str, ...]:
        """Counters besides cycles and time that it rests on."""
        return tuple(name for name, value in (("instructions", self.instructions),
                                              ("cache misses", self.misses)) if value is not None)


def has_counts(side: Side) -> bool:
    """Whether instructions or cache misses were counted beside cycles."""
    return any(_count(name, side) is not None for name in ("instructions", "misses"))


def make_pattern(ours: Side, theirs: Side, deployment: Deployment, *,
                 within: tuple[int | None, ...] = ()) -> Pattern:
    """Return the layers and counts both sides have; of the layers named, where some are.

    Raises
    ------
    UsageError
        When they have nothing in common above zero.
    """
    pairing = pair_parts(ours, theirs)
    for quantity in ("cycles", "time", "instructions"):
        if quantity not in theirs.whole.amounts or quantity not in ours.whole.amounts:
            continue
        found = {one.index: other.amounts[quantity] for one, other in pairing.same
                 if one and other and other.amounts.get(quantity, 0) > 0}
        predicted = {part.index: part.amounts[quantity] for part in ours.parts
                     if part.amounts[quantity] > 0}
        layers = tuple(index for index in within if index in found and index in predicted) or \
            _largest([index for index in predicted if index in found], predicted, found)
        measured = [float(found[index]) for index in layers]
        if not layers and theirs.whole.amounts[quantity] > 0:
            layers, measured = (None,), [float(theirs.whole.amounts[quantity])]
        if layers:
            return Pattern(
                quantity=quantity, layers=layers, measured=np.array(measured),
                families=tuple(_family(deployment, index) for index in layers),
                little=tuple((float(part.amounts[quantity]), float(found[part.index]))
                             for part in ours.parts if part.index in found
                             and part.index not in (*layers, None)),
                left_out=(pairing.note and f"({pairing.note})") or _tell_left_out(
                    {part.index: part.amounts[quantity] for part in ours.parts}, found, layers),
                instructions=_count("instructions", theirs),
                misses=_count("misses", theirs))
    raise UsageError(f"{theirs.label}: has {', '.join(theirs.whole.amounts)}; a diagnosis needs "
                     "cycles, time or instructions above zero (twin attribute: --no-diagnose)")


def _largest(indices: Sequence[int | None], amounts: Mapping[int | None, int],
             found: Mapping[int | None, int]) -> tuple[int | None, ...]:
    """Return the fewest parts that make up `PATTERN_SHARE`, and any measured large, in order."""
    whole, so_far = sum(amounts[index] for index in indices), 0
    kept = {index for index in indices if found[index] > LARGE_SHARE * sum(found.values())}
    for index in sorted(indices, key=lambda one: -amounts[one]):
        if so_far >= PATTERN_SHARE * whole:
            break
        kept.add(index)
        so_far += amounts[index]
    return tuple(index for index in indices if index in kept)


def _tell_left_out(ours: Mapping[int | None, int], found: Mapping[int | None, int],
                   layers: Sequence[int | None]) -> str:
    """Say which layers a pattern leaves out: of little, without cycles, and not measured."""
    if tuple(layers) == (None,):
        return ""
    left: dict[str, list[str]] = {}
    share = max(1 - PATTERN_SHARE, sum(amount for index, amount in found.items()
                                       if index not in layers) / max(sum(found.values()), 1))
    for index, amount in ours.items():
        if index in layers:
            continue
        why = ("predicted to take none" if amount <= 0 else "not measured" if index not in found
               else f"under {math.ceil(round(100 * share, 6))} % together")
        left.setdefault(why, []).append("what is outside layers" if index is None else str(index))
    return "; ".join(f"without {', '.join(names)} ({why})" for why, names in left.items())


def _family(deployment: Deployment, index: int | None) -> str:
    if index is None:
        return ""
    layer = next(one for one in deployment.graph.layers if one.index == index)
    pointwise = layer.window is not None and tuple(layer.window.kernel) == (1, 1)
    return f"{layer.op} 1x1" if pointwise else layer.op


def _count(name: str, side: Side) -> float | None:
    return next((side.whole.counts[alias] for alias in ALIASES[name]
                 if alias in side.whole.counts), None)
