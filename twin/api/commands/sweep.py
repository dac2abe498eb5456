"""`twin sweep`, `select` and `advise`: many configurations of networks and boards, and the best."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.board.file import list_boards, load_board
from hwmodels.isa import load_isa
from twin.api.commands.predict import runtime_of
from twin.api.requests import takes
from twin.api.requests.advice import Advise, check_efforts
from twin.api.requests.prediction import Accepted, Check, Duty
from twin.api.requests.studies import Compared, Select, Sweep
from twin.api.requests.values import split_words
from twin.errors import UsageError
from twin.network.graph import Graph
from twin.network.rewrites.rewrite import check_value
from twin.studies.advice import Advice, give_advice
from twin.studies.axes import EACH, OWN, Space, Value, check_runtimes, make_space, read_clock
from twin.studies.duty import read_currents, read_duty, read_sleep
from twin.studies.judge import make_judge
from twin.studies.limits import UNIT_OF, Limits, name_boards, read_limits
from twin.studies.points import Deployer
from twin.studies.results import Table, check_file, import_arrow, read_objectives
from twin.studies.selection import Selection, select_hardware
from twin.studies.sweep import sweep_space


@takes(Sweep)
def sweep(asked: Sweep) -> Table:
    """Predict every combination of models, boards and what else varies; mark the best.

    A row for every point, in order; an infeasible point is a row with its reason.

    Raises
    ------
    UsageError
        For limits, clocks, values or samples that are none.
    BoardError, RuntimeRefusedError
        For a board or a runtime that is not known.
    """
    limits, over = limits_of(asked), read_over(asked)
    runtimes = split_words(asked.runtimes)
    if not runtimes and "runtime" not in (asked.settings or {}):  # As `predict` of one board does.
        runtimes = tuple(filter(None, [runtime_of(fspath(asked.calibration))]))
    space = make_space(list_values(asked.models), list_values(asked.boards), runtimes=runtimes,
                       clocks=split_words(asked.clocks), settings=asked.settings,
                       sample=asked.sample)
    deployer = make_deployer(asked, list_values(asked.boards),
                             assume_unsupported=asked.assume_unsupported)
    check_named(space, list_values(asked.boards), split_words(asked.clocks), deployer)
    return sweep_space(space, deployer, limits=limits, objectives=over,
                       on_progress=asked.on_progress)


def limits_of(asked: Compared | Advise | Accepted) -> Limits:
    """Return the limits a request names."""
    min_accuracy = getattr(asked, "min_accuracy", None)
    if min_accuracy is not None and getattr(asked, "accuracy", None) is None:
        raise UsageError("--min-accuracy: needs answers to count; accepted: --accuracy DATA beside "
                         "it, such as --accuracy data.npz")
    return read_limits(min_accuracy=min_accuracy, duty=read_duty(asked.every, asked.cell), **{
        name: limit for name, limit in vars(asked).items() if name in UNIT_OF})


def read_over(asked: Sweep | Select) -> tuple[str, ...]:
    """Return what the front is over; by default of a duty its mean power in place of energy."""
    need_duty(asked, "--over", split_words(asked.objectives))
    usual = (*(("time", "energy") if asked.every is None else ("days", "time")),
             *(("price",) if isinstance(asked, Select) else ()),
             *(("accuracy",) if asked.accuracy is not None else ()))
    return read_objectives(split_words(asked.objectives) or usual)


def need_duty(asked: Compared, option: str, words: Iterable[str]) -> None:
    """Refuse to rank by mean power where no duty is asked for."""
    if asked.every is None and "mean_mw" in read_objectives(words):
        raise UsageError(f"{option} days, power: are of a duty; accepted: --every PERIOD with "
                         "it, such as --every 1s")


def make_deployer(asked: Compared | Advise | Check | Duty, boards: Iterable[Value], **more: Any,
                  ) -> Deployer:
    """Return what deploys and prices the points of a request, on boards or names of them."""
    if asked.sleep and asked.every is None:
        warnings.warn("--sleep: changes nothing without --every PERIOD", stacklevel=2)
    named = [one if isinstance(one, Board) else load_board(str(one)) for one in boards]
    return Deployer(calibration=fspath(asked.calibration), temperature=asked.temperature,
                    judge=make_judge(getattr(asked, "accuracy", None)),
                    duty=read_duty(asked.every, asked.cell), known_only=asked.known_only,
                    prices=name_boards("--price", getattr(asked, "prices", None), named),
                    currents=read_currents(name_boards("--currents", asked.currents, named)),
                    sleep=read_sleep(name_boards("--sleep", asked.sleep, named)), **more)


def check_named(space: Space, boards: Iterable[Value], clocks: Iterable[str],
                deployer: Deployer) -> None:
    """Refuse a runtime, clock, change or board that is none, before anything is predicted."""
    check_runtimes(space)
    for clock in clocks:
        if clock not in (OWN, EACH):
            read_clock(clock)
    for axis in space.axes:
        for value in axis.values:
            check_value(axis.name, value)
    named = {axis.name for axis in space.axes}
    for board in boards:
        own = f"clocks.{deployer.read_board(board).core.clock}.frequency_hz"
        if named >= {"clock", own}:
            raise UsageError(f"--clock and --set {own} set the same; accepted: one of them")


def list_values(given: Any) -> tuple[Value, ...]:
    """Return models or boards as values of an axis, one or several."""
    several = (given,) if isinstance(given, (Graph, Board, str, PathLike)) else given
    return tuple(one if isinstance(one, (Graph, Board)) else fspath(one) for one in several)


def check_output(path: str) -> None:
    """Refuse a file no table is written as, and one that needs what is not installed."""
    if check_file(path) != ".csv":
        import_arrow()


MODEL = "fvp"
"""The emulator of boards that are a model of one alone."""


def list_hardware() -> list[str]:
    """List the boards there are to choose: no model of hardware, nor this machine."""
    return [board.name for board in map(load_board, list_boards())
            if not load_isa(board.core.isa).code.native and MODEL not in dict(board.virtual)]


@takes(Select)
def select(asked: Select) -> Selection:
    """Rank boards, libraries and accelerators for networks, with a score and what would help.

    A choice for every network and board, best first; the whole table beside it.
    """
    limits, over = limits_of(asked), read_over(asked)
    boards = list_values(list_hardware() if asked.boards is None else asked.boards)
    runtimes = split_words(asked.runtimes)
    if "runtime" in (asked.settings or {}) and runtimes == (EACH,):
        runtimes = ()  # nobody's wish but the option's default
    space = make_space(list_values(asked.models), boards, runtimes=runtimes,
                       clocks=split_words(asked.clocks), settings=asked.settings)
    need_duty(asked, "--by", split_words(asked.by))
    deployer = make_deployer(asked, boards)
    check_named(space, boards, split_words(asked.clocks), deployer)
    for model in list_values(asked.models):
        deployer.read_graph(model)  # one that is refused is, before anything is predicted
    return select_hardware(space, limits, deployer, objectives=over, advise=asked.advise,
                           by=read_objectives(split_words(asked.by)), on_progress=asked.on_progress)


@takes(Advise)
def advise(asked: Advise) -> Advice:
    """Find the cheapest change of a deployment, then pair of changes, that meets limits.

    Changes, best first, each predicted, with gain, probability, effort and cost.

    Raises
    ------
    UsageError
        Without a limit, or for an effort that is none.
    """
    limits, deployer = limits_of(asked), make_deployer(asked, [asked.deployment.board])
    return give_advice(deployer.state(asked.deployment), limits, deployer,
                       efforts=check_efforts(asked.efforts), pairs=asked.pairs,
                       thorough=asked.thorough, on_progress=asked.on_progress)
