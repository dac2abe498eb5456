"""What each cause of a longer time, or two at once, would do to one number: predicted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.errors import TwinError
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import entity
from hwmodels.isa import load_isa
from twin.attribution.diagnosis.builds import STEPS, list_all, list_libraries
from twin.attribution.diagnosis.fault_effects import Effect, Forecasts, Pattern, join_effects
from twin.attribution.diagnosis.faults import DECLARED, FASTER, JOINED, MOVED, UNIT, UNKNOWN, Fault
from twin.deployment.choice import list_releases
from twin.deployment.deployment import Deployment
from twin.pricing.calibrated import predict_at, predict_calibrated
from twin.pricing.calibration import AUTO, Calibration, choose_calibration
from twin.pricing.prediction import Prediction

TAILED_90 = 1.774
"""Standard deviations from the middle to the ends of a 90 % interval of errors of which one in
twenty has three times the deviation (`twin.attribution.diagnosis.why.RARE`)."""

NO_INTERVAL_SD = 0.35
"""Of log time where a prediction has no interval: stated prices; assumed."""

ANYTHING_SD = 1.2
"""Of the effect of what nobody listed: assumed."""

NOTABLE = math.log(1.1)
"""Logarithm of an effect below which nobody asks: it counts as expected."""

NETWORK_SD = 0.08
"""Of log time, what one network is off by beside another on one board: 13 % in 90 % of cases
(docs/accuracy.md)."""

LOADING_SD = 0.62
"""Of the logarithm of what loading makes of another network's time: it has its own, any of
`ENCLOSED`."""

HALF = 0.5
"""Of what interrupts or another master cost: give or take as much of it (`Fault`)."""

LEAST_EFFECT = 2 / 3
"""Share of the logarithm of what a cause does to another network that it does at least: kernels
that make one network 2.5 times slower do not leave another as it was. Chosen on planted builds of
seed 1 (`tests/made/made_builds.py`)."""

CONTRADICTING = 0.05
"""Share of "another board or network" in which each number is of another build: assumed."""

SELDOM = 0.1
"""Share of a clock that no menu of the chip's software offers, beside those it does: assumed."""

DATA = read_yaml_once(Path(__file__).with_name("causes.yaml"))
CAUSES: Mapping[str, Mapping[str, Any]] = DATA["causes"]
ADDED, FIXED, UNREACHED, KERNELS, HOSTED = (
    {*DATA["sets"][name]} for name in ("added", "fixed", "unreached", "kernels", "hosted"))
Effects = tuple[Effect, ...]
_BY_KIND = {kind: name for name, cause in CAUSES.items() for kind in cause["kinds"]}


@entity
class Hypothesis:
    """One cause or two of certain sizes; none is "as expected".

    Parameters
    ----------
    causes
        Names of `causes.yaml`.
    faults
        One for each cause; one alone where two are predicted together.
    sizes
        Logarithm of each one's factor on the time by itself, at the first clock.
    logs : ndarray of float, (numbers,)
        Logarithm of the factor on the time.
    sd
        How far that may be off, alike for all numbers.
    own_sd : ndarray of float, (numbers,)
        How far it may be off for each number alone.
    share
        Of its causes' prior.
    added : ndarray of float, (numbers,)
        Part of the factor that stays as many microseconds whatever the rest takes (`FIXED`).
    is_released
        Kernels of the library run, so the time is that of one of its releases.
    least : ndarray of float, (numbers,)
        Logarithm of the least it does to another network; 0 where that may be nothing.
    """

    causes: tuple[str, ...]
    faults: tuple[Fault, ...]
    sizes: tuple[float, ...]
    logs: np.ndarray
    sd: float
    share: float
    own_sd: np.ndarray
    added: np.ndarray
    is_released: bool = True
    least: np.ndarray | float = 0.0

    def take_us(self, expected_us: float, base_us: float) -> float:
        """Return what the first number takes, by what is expected and what is predicted of it."""
        return float((math.exp(self.logs[0]) - self.added[0]) * expected_us
                     + self.added[0] * base_us)


@entity
class Outlook:
    """Every hypothesis of a deployment, predicted; good for any number measured of it.

    Parameters
    ----------
    bases
        As asked for, at each clock; of each network.
    sd
        Of the logarithm of their times, by their interval and what is known of the library.
    hypotheses
        "as expected" first.
    releases : mapping of str to ndarray of float, (clocks,)
        Of the library, by identity: logarithm of its time over that of `bases`. One alone where the
        release is stated.
    library
        What was stated of it, as for `foresee`.
    """

    bases: tuple[Prediction, ...]
    sd: float
    hypotheses: tuple[Hypothesis, ...]
    releases: Mapping[str, np.ndarray]
    library: str


def foresee(deployments: Sequence[Deployment], *, library: str = "release",
            clock_hz: float | None = None, calibration: str | Calibration | None = AUTO) -> Outlook:
    """Predict what each cause would do.

    Parameters
    ----------
    deployments
        As asked for, at each clock something was measured at; of further networks too.
    library
        What was stated of the library: "release", "name" or "none".
    clock_hz
        The core's clock as observed: then no other is possible, but on another board.
    calibration
        As for `predict_calibrated`.
    """
    bases = [predict_calibrated(one, calibration=calibration) for one in deployments]
    rows = _foresee_all(bases, library, clock_hz, calibration)
    certainty = bases[0].certainty
    own = NO_INTERVAL_SD if certainty is None else math.log(
        certainty.time_us.high / certainty.time_us.low) / (2 * TAILED_90)
    declared, networks = rows[0][1], [one.deployment.graph.name for one in bases]
    others = np.array([name != networks[0] for name in networks], float)
    singles = [row for row in rows if _matters(*row[:2], declared)]
    sizes = Counter(_name_causes(fault) for fault, *_ in singles)
    explicit = {fault.kind for fault, *_ in singles if JOINED in fault.kind}
    found = [Hypothesis(causes=(), faults=(), sizes=(), logs=0 * others, sd=0.0,
                        own_sd=NETWORK_SD * others, share=1.0, added=0 * others)]
    name = bases[0].deployment.runtime.name
    found += [_suppose(fault, effect, declared, sizes, others, name)
              for fault, effect, _ in singles]
    if len(bases) > 1:
        found += [replace(one, sd=0.0, own_sd=others * 0 + ANYTHING_SD,
                          share=CONTRADICTING)
                  for one in found if one.causes == ("other",)]
    for (one, effect, first), (two, other, second) in combinations(singles, 2):
        kinds = one.kind, two.kind
        if ({UNKNOWN, FASTER}.intersection(kinds) or any(JOINED in kind for kind in kinds)
                or _BY_KIND[one.kind] == _BY_KIND[two.kind] or KERNELS.issuperset(kinds)
                or {JOINED.join(kinds), JOINED.join(kinds[::-1])} & explicit):
            continue
        origin = first if first == second else declared
        logs = _moved(origin, declared) + [
            _join(one, two, *three) for three in zip(effect, other, origin, strict=True)]
        parts = [_suppose(fault, each, declared, sizes, others, name)
                 for fault, each in ((one, effect), (two, other))]
        if min(np.abs(logs - part.logs).max() for part in parts) < NOTABLE:
            continue  # With or without it the other takes as long: it is no second cause.
        rest = sum(part.logs for part in parts if part.faults[0].kind not in FIXED)
        found.append(Hypothesis(
            causes=parts[0].causes + parts[1].causes, faults=(one, two),
            logs=logs, added=(np.exp(logs) - np.exp(rest)) * any(kind in FIXED for kind in kinds),
            sizes=parts[0].sizes + parts[1].sizes, sd=math.hypot(parts[0].sd, parts[1].sd),
            own_sd=np.hypot(parts[0].own_sd, parts[1].own_sd),
            share=parts[0].share * parts[1].share,
            least=np.minimum(parts[0].least + parts[1].least, LEAST_EFFECT * logs),
            is_released=parts[0].is_released and parts[1].is_released))
    if clock_hz is not None:
        is_lower = any("clock" in one.causes for one in found)
        found = [one for one in found  # of another board any clock may be
                 if "other" in one.causes or ("clock" in one.causes) == is_lower]
    return Outlook(bases=tuple(bases), hypotheses=tuple(found), library=library, sd=math.hypot(
        own, DATA["libraries"][library]["sd"]),
        releases=_predict_releases(bases, calibration) if library != "release" else {
            bases[0].deployment.runtime.identity: np.zeros(len(bases))})


def _predict_releases(bases: Sequence[Prediction], calibration: Any) -> dict[str, np.ndarray]:
    """Return by how much longer each release of the library takes, as a logarithm, at each clock.

    A network a release does not run is omitted with it.
    """
    runtime, found = bases[0].deployment.runtime, {}
    for identity in list_releases(runtime.name):
        if "-" not in identity.partition("@")[2] or identity == runtime.identity:
            with suppress(TwinError):
                found[identity] = np.array([math.log(predict_calibrated(
                    base.deployment.replace({"runtime": identity}), calibration=calibration,
                ).time_us / base.time_us) for base in bases])
    return found


def _foresee_all(bases: Sequence[Prediction], library: str, clock_hz: float | None,
                 calibration: Any) -> list[tuple[Fault, Effects, Effects]]:
    """Return faults, what each does to every number, and what its library takes without it.

    Faults of a further number are those of the same name, or of the same size of a range; loading
    of another network is of a middle size, a clock that is the measured one does nothing.
    """
    listed: list[dict[tuple[str, str | int], tuple[Fault, Effect, Effect]]] = []
    for base in bases:
        native = load_isa(base.deployment.board.core.isa).code.native
        kinds, ordinals = {*_BY_KIND} - {*DATA["bare"]} if native else {*_BY_KIND}, dict[str, int]()
        found: dict[tuple[str, str | int], tuple[Fault, Effect, Effect]] = {}
        for source, is_possible in _list_sources(base, library, calibration):
            prices = calibration if not isinstance(calibration, str) else choose_calibration(
                source.deployment, calibration)
            forecasts, pattern = Forecasts(), Pattern(
                quantity="time", layers=(None,), families=("",), instructions=None, misses=None,
                measured=np.array([source.time_us * 1e3]))
            declared, *faults = _list_faults(source, prices, library, clock_hz)
            origin = forecasts.foresee(declared, source, prices, pattern)
            found.setdefault((DECLARED, 1), (declared, origin, origin))
            for fault in faults:
                parts = set(fault.kind.split(JOINED))
                if not (parts <= kinds and is_possible(parts)):
                    continue
                ordinals[fault.kind] = ordinals.get(fault.kind, 0) + 1
                key = fault.kind, fault.name if fault.deployment else ordinals[fault.kind]
                effect = forecasts.foresee(fault, source, _price(fault, prices, calibration),
                                           pattern)
                own = source.deployment.runtime.identity
                found[key] = (fault if source is base else replace(
                    fault, deployment=fault.deployment or source.deployment,
                    name=fault.name if own in fault.name else
                    f"{own}, {source.time_us / base.time_us:.2g} x by itself, {fault.name}"),
                    effect, origin)
        listed.append(found)
    none = [found[DECLARED, 1] for found in listed]
    first, rows = bases[0].deployment.graph.name, []
    for key, (fault, *_) in listed[0].items():
        of_another = ("loading", STEPS // 2 + 1) if fault.kind == "loading" else key
        _, effects, origins = zip(*(
            found.get(key if base.deployment.graph.name == first else of_another, without)
            for base, found, without in zip(bases, listed, none, strict=True)), strict=True)
        rows.append((fault, effects, origins))
    return rows


def _list_sources(base: Prediction, library: str, calibration: Any,
                  ) -> Iterator[tuple[Prediction, Callable[[set[str]], bool]]]:
    """Yield what runs, and which kinds of faults it may have: not each library has all."""
    deployment = base.deployment
    if deployment.accelerated:
        yield base, lambda parts: len(parts) == 1 and parts <= HOSTED
        return
    prebuilt = deployment.runtime.name in DATA["prebuilt"]
    lacked = {*UNREACHED, "float" if library == "none" else "reference kernels"}
    yield base, lambda parts: not (prebuilt and parts & lacked)
    if prebuilt and library == "none" and calibration == AUTO:
        for fault in list_libraries(deployment):
            if fault.deployment and fault.deployment.runtime.name not in DATA["prebuilt"]:
                yield (predict_calibrated(fault.deployment, calibration=calibration),
                       lambda parts: bool(parts & lacked))
                return


def _list_faults(base: Prediction, prices: Calibration | None, library: str,
                 clock_hz: float | None) -> Sequence[Fault]:
    """Return what one number is weighed by, "as declared" first."""
    cold = predict_at(base.deployment, prices, temperature="cold")
    setup_us = cold.setup.cycles(cold.clock) / base.deployment.board.clock(
        cold.clock).frequency_hz * 1e6
    return list_all(base, setup_us, cold.time_us, libraries=library == "none", clock_hz=clock_hz)


def _price(fault: Fault, own: Calibration | None, calibration: Any) -> Calibration | None:
    """Return the prices a fault's own library has there, as a what-if of it would take."""
    if fault.deployment is None or fault.versus is not None or calibration != AUTO:
        return own
    return choose_calibration(fault.deployment, calibration)


def _moved(effect: Sequence[Effect], declared: Sequence[Effect]) -> np.ndarray:
    return np.array([one.logs[0] - none.logs[0]
                     for one, none in zip(effect, declared, strict=True)])


def _matters(fault: Fault, effect: Effects, declared: Sequence[Effect]) -> bool:
    if fault.kind == UNKNOWN:
        return fault.errors is not None and fault.errors.common >= 1.0  # One size of it is enough.
    moved = _moved(effect, declared)
    return fault.kind == UNIT or bool((-moved if fault.kind == FASTER else moved).max() >= NOTABLE)


def _name_causes(fault: Fault) -> tuple[str, ...]:
    return tuple(_BY_KIND[kind] for kind in fault.kind.split(JOINED))


def _suppose(fault: Fault, effect: Sequence[Effect], declared: Sequence[Effect],
             sizes: Mapping[tuple[str, ...], int], others: np.ndarray,
             library: str) -> Hypothesis:
    """Return the hypothesis of a fault, and how far its effect may be off; more elsewhere."""
    moved, errors = _moved(effect, declared), fault.errors or MOVED
    if fault.kind == UNKNOWN:
        return Hypothesis(causes=_name_causes(fault), faults=(fault,), sizes=(0.0,),
                          logs=moved * 0, sd=ANYTHING_SD, own_sd=NETWORK_SD * others, share=1.0,
                          added=moved * 0)
    known = fault.kind in (*ADDED, "clock", UNIT)
    family = LOADING_SD if fault.kind == "loading" else 0.0 if known else errors.family
    share = HALF if fault.wait_cycles or fault.kind == "interrupts" else errors.effect
    sd = 0.0 if known else math.hypot(errors.common, share * float(moved.max()))
    causes = _name_causes(fault)
    return Hypothesis(causes=causes, faults=(fault,), sizes=(float(moved[0]),), logs=moved,
                      sd=math.hypot(sd, fault.slowdown_sd),
                      share=(SELDOM if _is_seldom(fault) else 1.0) / sizes[causes],
                      added=np.expm1(moved) * (fault.kind in FIXED),
                      own_sd=math.hypot(NETWORK_SD, family) * others,
                      least=LEAST_EFFECT * others * np.maximum(moved, 0.0) * (
                          fault.kind != "loading"), is_released=not (
                          fault.deployment and fault.deployment.runtime.name != library))


def _is_seldom(fault: Fault) -> bool:
    """Whether a fault is a clock that no menu of the chip's software offers."""
    board = fault.deployment.board if fault.kind == "clock" and fault.deployment else None
    return board is not None and board.core_clock.frequency_hz < choose(
        CAUSES["clock"]["seldom_below_hz"], board, 0.0)


def choose(values: Mapping[str, Any], board: Board, otherwise: Any, library: str = "") -> Any:
    """Return the value by how the name of library, chip, core or instruction set begins."""
    names = library, board.soc.lower(), board.core.model, board.core.isa
    return next((value for start, value in values.items()
                 if start and any(name.startswith(start) for name in names)),
                values.get("", otherwise))


def _join(one: Fault, two: Fault, effect: Effect, other: Effect, declared: Effect) -> float:
    """Return the logarithm of what two faults at once do to the time."""
    alone = [float(each.logs[0] - declared.logs[0]) for each in (effect, other)]
    if UNIT not in (one.kind, two.kind) and (one.kind in ADDED or two.kind in ADDED):
        return math.log(math.exp(alone[0]) + math.exp(alone[1]) - 1)
    if {"clock", UNIT} & {one.kind, two.kind} or (one.rebuilds and two.rebuilds):
        return sum(alone)
    if two.rebuilds:
        one, effect, other = two, other, effect
    joined = join_effects(effect, other, declared, rebuilt=one.rebuilds)
    return float(joined.logs[0] - declared.logs[0])


def describe_library(runtime: str | None) -> str:
    """Return what a user states of the library: "release", "name" or "none"."""
    return "none" if runtime is None else "release" if "@" in runtime else "name"


def at_clock(deployment: Deployment, hertz: float | None) -> Deployment:
    """Return a deployment at a clock; None is its own."""
    return deployment if hertz is None else deployment.replace(
        {f"clocks.{deployment.board.core.clock}.frequency_hz": hertz,
         "supply.voltage_scale": deployment.board.power.voltage_scale})
