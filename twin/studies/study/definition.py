"""What a study asks: axes, searches, hypotheses, limits, and its configurations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from hwmodels.board.facts import Board
from hwmodels.board.file import find_board
from hwmodels.frozen import NamedTexts, frozen
from hwmodels.quantities import read_quantity
from twin.pricing.variables import COLD_START, SETUP
from twin.studies.axes import Brought, Point, Space, Value, label
from twin.studies.files import AS_LIST, CHECKED, Text, one_of
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.results import is_variable, read_objectives
from twin.studies.rows import QUANTITIES

CASE, TEMPERATURE = "case", "temperature"
"""Axes of a study beside those of its points: a named set of changes, and "warm" or "cold"."""

KINDS = ("effect", "clock", "return")
"""Of findings: `Finding` says what each is."""

SUMS = (SETUP, COLD_START, "misses", "miss_rate", "traffic", "bandwidth", "stalls")
"""Figures over all caches, memories or causes of a row, and its set-up."""

FIGURE_OF = {"overhead": "overhead_us", "setup": SETUP, "cold_start": COLD_START, "p50": "time_us",
             **{name: name for name in SUMS}}
"""Figures that are compared beside objectives and those of single caches, memories and causes."""

SAMPLERS = ("nsga2", "tpe", "random")
"""Of a search: Optuna's NSGA-II, tree-structured Parzen estimator, and random draws."""


def read_figures(names: Iterable[str]) -> tuple[str, ...]:
    """Return figures a finding compares: objectives, `FIGURE_OF`, and names of variables."""
    found = [name if is_variable(name) else FIGURE_OF.get(name.strip().lower())
             or read_objectives([name])[0] for name in names]
    return tuple(dict.fromkeys(found))


@frozen
class Search:
    """A multi-objective search in place of every point.

    Parameters
    ----------
    trials
        Points asked for; one that was asked before is not predicted again.
    sampler
        Of `SAMPLERS`.
    batch
        Points asked for at a time; the same at any number of workers, so results are the same.
    seed
        The same seed asks for the same points.
    """

    __pydantic_config__ = CHECKED

    trials: Annotated[int, Field(ge=1, le=1_000_000)]
    sampler: Annotated[str, one_of(SAMPLERS)] = "nsga2"
    batch: Annotated[int, Field(ge=1, le=4096)] = 16
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


def read_figure(name: str) -> str:
    """Return the one figure of a name."""
    return read_figures([name])[0]


@frozen
class Claim:
    """A hypothesis: a figure of a value is at most so much of the baseline's.

    Parameters
    ----------
    by
        "ratio": so many times the baseline's; "difference": so much above it, as of error rates.
    """

    __pydantic_config__ = CHECKED

    value: Text
    figure: Annotated[Text, AfterValidator(read_figure)]
    at_most: Annotated[float, Field(gt=0)]
    by: Annotated[str, one_of(("ratio", "difference"))] = "ratio"


@frozen
class Finding:
    """What the finding of a study compares.

    Parameters
    ----------
    vary
        Axis whose values are compared: "runtime", "board", "case", "temperature" or a path.
    baseline
        Value the others are set beside; "" is the first.
    figures
        Quantities of `results.QUANTITIES`.
    kind
        "effect": ratios to the baseline; "clock": energy and energy-delay product over clocks and
        why; "return": gain by class of effort as well.
    efforts
        Class of effort by value, for "return".
    claims
        Hypotheses that are tested.
    within
        Another axis, for each value of which the value with least of the first figure beside
        quantities is found; "" for none.
    cells
        Whether it says how well the code behind each row is known (`results.CELLS`), and compares
        no row of which that is assumed.
    """

    __pydantic_config__ = CHECKED

    vary: str
    baseline: Text = ""
    figures: Annotated[tuple[Text, ...], AS_LIST, Field(min_length=1),
                       AfterValidator(read_figures)] = ("time_us", "energy_uj")
    kind: Annotated[str, one_of(KINDS)] = "effect"
    efforts: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    within: Text = ""
    cells: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """Its figures that are no quantities of a row: of caches, memories, causes, set-up."""
        return tuple(name for name in self.figures
                     if name not in (*QUANTITIES, *FIGURE_OF.values()) or name in SUMS)


class Budget(NamedTuple):
    """A soft limit of several of one quantity, and the column that says whether it is violated."""

    column: str
    quantity: str
    limit: float


@frozen
class Study:
    """A study file, read.

    Parameters
    ----------
    name, question
        What it is called, and what it answers.
    cases
        Named changes of every point, paths to values; one may name a runtime or a clock.
    temperatures
        "warm", "cold" or both.
    limits, hard
        Soft: rows say which they violate. Hard: what violates one is rejected before the front.
    objectives
        Quantities the front is over.
    search
        None: every point of the space.
    finding
        None: only the front is reported.
    deployer
        Prices, calibration and duty of every point; of a warm inference.
    notes
        What a reader should know of it.
    brought
        Programs the user brings: a configuration each, beside those of the space.
    budgets
        Lists of soft limits, and of memory budgets; each is a column of its own.
    postprocess
        Steps of the user's that its rows go through, as `functions.load_step` takes them.
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
    deployer: Deployer = field(default_factory=Deployer)
    notes: tuple[str, ...] = ()
    brought: tuple[Brought, ...] = ()
    budgets: tuple[Budget, ...] = ()
    postprocess: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """What varies, cases and temperatures with it."""
        names = [axis.name for axis in self.space.axes]
        names += [CASE] if self.cases else []
        return (*names, *([TEMPERATURE] if len(self.temperatures) > 1 else []))


@frozen
class Asked:
    """One configuration of a study.

    Parameters
    ----------
    temperature
        "warm" or "cold".
    labels : tuple of (str, str)
        What it is called in the table: label by axis of the study.
    """

    point: Point
    temperature: str
    labels: NamedTexts


def list_asked(study: Study) -> tuple[Asked, ...]:
    """Return every configuration of a study without a search, in order, none twice."""
    found: dict[NamedTexts, Asked] = {}
    for temperature in study.temperatures:
        for point in study.space.list_points():
            for one in vary_cases(study, point, temperature):
                found.setdefault(one.labels, one)
    return (*found.values(), *(_ask_brought(study, one, temperature)
                               for temperature in study.temperatures for one in study.brought))


def _ask_brought(study: Study, brought: Brought, temperature: str) -> Asked:
    """Return a program as a configuration: its name stands for a library, or a case."""
    assert study.finding is not None, "programs are taken where something is compared"
    values = {"model": brought.model, "board": brought.board}
    runtimes = [label(value) for axis in study.space.axes if axis.name == "runtime"
                for value in axis.values]
    labels = {"runtime": runtimes[0]} if runtimes else {}
    labels |= {**values, TEMPERATURE: temperature, study.finding.vary: brought.name}
    return Asked(point={**values, "program": brought}, temperature=temperature,
                 labels=tuple((name, labels[name]) for name in study.axes))


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
    own = board if isinstance(board, Board) else find_board(str(board))
    if own is None:
        return point
    hertz = own.core_clock.frequency_hz * share[0] / 100
    return {**point, "clock": f"{hertz / 1e6:.10g}MHz"}
