"""What a study asks: its space, its cases, its limits, and what its finding compares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, Field

from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.errors import TwinError
from hwmodels.quantities import read_quantity
from twin.studies.axes import Point, Space, Value, label
from twin.studies.files import AS_LIST, CHECKED, Text, one_of
from twin.studies.limits import Limits
from twin.studies.results import read_objectives

CASE, TEMPERATURE = "case", "temperature"
"""Axes of a study beside those of its points: a named set of changes, and "warm" or "cold"."""

KINDS = ("effect", "clock", "return")
"""Of findings: `Finding` says what each is."""

FIGURE_OF = {"overhead": "overhead_us"}
"""Figures that are compared beside objectives."""

SAMPLERS = ("nsga2", "tpe", "random")
"""Of a search: Optuna's NSGA-II, tree-structured Parzen estimator, and random draws."""


def read_figures(names: Iterable[str]) -> tuple[str, ...]:
    """Return figures a finding compares: objectives, and "overhead"."""
    found = [FIGURE_OF.get(name.strip().lower()) or read_objectives([name])[0] for name in names]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A multi-objective search in place of every point.

    Parameters
    ----------
    trials : int
        Points asked for; one that was asked before is not predicted again.
    sampler : str
        Of `SAMPLERS`.
    batch : int
        Points asked for at a time; the same at any number of workers, so results are the same.
    seed : int
        The same seed asks for the same points.
    """

    __pydantic_config__ = CHECKED

    trials: Annotated[int, Field(ge=1, le=1_000_000)]
    sampler: Annotated[str, one_of(SAMPLERS)] = "nsga2"
    batch: Annotated[int, Field(ge=1, le=4096)] = 16
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the finding of a study compares.

    Parameters
    ----------
    vary : str
        Axis whose values are compared: "runtime", "board", "case", "temperature" or a path.
    baseline : str
        Value the others are set beside; "" is the first.
    figures : tuple of str
        Quantities of `results.QUANTITIES`.
    kind : str
        "effect": ratios to the baseline; "clock": energy and energy-delay product over clocks and
        why; "return": gain by class of effort as well.
    efforts : mapping of str to str
        Class of effort by value, for "return".
    """

    __pydantic_config__ = CHECKED

    vary: str
    baseline: Text = ""
    figures: Annotated[tuple[Text, ...], AS_LIST, Field(min_length=1),
                       AfterValidator(read_figures)] = ("time_us", "energy_uj")
    kind: Annotated[str, one_of(KINDS)] = "effect"
    efforts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study file, read.

    Parameters
    ----------
    name, question : str
        What it is called, and what it answers.
    space : Space
        What varies.
    cases : mapping of str to mapping
        Named changes of every point, paths to values; one may name a runtime or a clock.
    temperatures : tuple of str
        "warm", "cold" or both.
    limits, hard : Limits
        Soft: rows say which they violate. Hard: what violates one is rejected before the front.
    objectives : tuple of str
        Quantities the front is over.
    search : Search or None
        None: every point of the space.
    finding : Finding or None
        None: only the front is told.
    prices : mapping of str to float
        In US dollars, by board or chip.
    calibration : str
        As for `predict`.
    notes : tuple of str
        What a reader should know of it.
    """

    name: str
    space: Space
    question: str = ""
    cases: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    temperatures: tuple[str, ...] = ("warm",)
    limits: Limits = field(default_factory=Limits)
    hard: Limits = field(default_factory=Limits)
    objectives: tuple[str, ...] = ("time_us", "energy_uj")
    search: Search | None = None
    finding: Finding | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    calibration: str = "auto"
    notes: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """What varies, cases and temperatures with it."""
        names = [axis.name for axis in self.space.axes]
        names += [CASE] if self.cases else []
        return (*names, *([TEMPERATURE] if len(self.temperatures) > 1 else []))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One configuration of a study.

    Parameters
    ----------
    point : mapping
        What is deployed.
    temperature : str
        "warm" or "cold".
    labels : tuple of (str, str)
        What it is called in the table: label by axis of the study.
    """

    point: Point
    temperature: str
    labels: tuple[tuple[str, str], ...]


def list_asked(study: Study) -> tuple[Asked, ...]:
    """Return every configuration of a study without a search, in order, none twice."""
    found: dict[tuple[tuple[str, str], ...], Asked] = {}
    for temperature in study.temperatures:
        for point in study.space.list_points():
            for one in vary_cases(study, point, temperature):
                found.setdefault(one.labels, one)
    return tuple(found.values())


def vary_cases(study: Study, point: Point, temperature: str) -> Iterator[Asked]:
    """Yield a point as each case of a study has it."""
    for case, changes in (study.cases or {"": {}}).items():
        labels = [(name, label(value)) for name, value in point.items()]
        labels += [(CASE, case)] if study.cases else []
        labels += [(TEMPERATURE, temperature)] if len(study.temperatures) > 1 else []
        yield Asked(point=settle_clock({**point, **changes}), temperature=temperature,
                    labels=tuple(labels))


def settle_clock(point: Point) -> Point:
    """Return a point whose clock is a frequency where it was a share of the board's own: "50%"."""
    clock = str(point.get("clock", ""))
    if not clock.endswith("%"):
        return point
    share, board = read_quantity(clock[:-1], ""), point["board"]
    if share is None or not 0 < share[0] <= 100:
        return point  # Refused where it is deployed, as a row.
    try:
        own = board if isinstance(board, Board) else load_board(str(board))
    except TwinError:
        return point
    hertz = own.clock(own.core.clock).frequency_hz * share[0] / 100
    return {**point, "clock": f"{hertz / 1e6:.10g}MHz"}

