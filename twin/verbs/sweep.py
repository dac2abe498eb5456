"""`twin sweep`: every combination of models, boards, runtimes, clocks and what-if paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath

from hwmodels.board.facts import Board
from twin.network.graph import Graph
from twin.pricing.calibration import AUTO
from twin.studies.axes import EACH, OWN, Value, make_space, read_clock
from twin.studies.limits import read_limits
from twin.studies.points import Deployer
from twin.studies.results import Table, check_file, import_arrow, read_objectives
from twin.studies.sweep import Told, sweep_space

Models = str | PathLike[str] | Graph | Iterable[str | PathLike[str] | Graph]
"""A model file, a network of the zoo, a graph, or several."""

Boards = str | PathLike[str] | Board | Iterable[str | PathLike[str] | Board]
"""A board's name or file, a board, or several."""

Words = str | Iterable[str]


def sweep(models: Models, boards: Boards, *, settings: Mapping[str, object] | None = None,
          runtimes: Words = (), clocks: Words = (), sample: str | None = None,
          max_ms: float | str | None = None, max_uj: float | str | None = None,
          max_ram: float | str | None = None, max_flash: float | str | None = None,
          max_usd: float | str | None = None, objectives: Words = ("time", "energy"),
          prices: Mapping[str, float] | None = None,
          temperature: str = "warm", calibration: str | PathLike[str] = AUTO,
          assume_unsupported: str | None = None, on_progress: Told | None = None) -> Table:
    """Predict every combination of models, boards and what else varies; mark the best.

    Parameters
    ----------
    models, boards : str, path, Graph or Board, or several
        Of which every pair is predicted.
    settings : mapping of str to list or text, optional
        What-if path to its values: a list, "a,b,c", "LOW..HIGH:COUNT" or, sampled, "LOW..HIGH".
    runtimes : str or several
        Runtimes, or "best" (known on each board; the default), "measured" there, or "each".
    clocks : str or several
        "80MHz", "own" (the default) or "each": the highest of every voltage scale. A changed clock
        takes its lowest voltage.
    sample : str, optional
        "sobol:500", "lhs:100" or "random:50" points instead of every combination.
    max_ms, max_uj, max_ram, max_flash, max_usd : float or str, optional
        Limits: bare numbers in ms, uJ, bytes and USD, or "100ms", "5mJ", "256KiB".
    objectives : str or several
        What the front is over: time, energy, ram, flash, price.
    prices : mapping of str to float, optional
        Your own prices in US dollars, by board or chip, beside those of the board files.
    temperature, calibration
        As for `predict`.
    assume_unsupported : str, optional
        As for `deploy`.
    on_progress : callable, optional
        Told (points done, points, failures) now and then.

    Returns
    -------
    Table
        A row for every point, in order; what cannot be is a row with its reason.

    Raises
    ------
    UsageError
        For limits, clocks, values or samples that are none.
    BoardError
        For a board that is not known.
    """
    limits = read_limits(max_ms=max_ms, max_uj=max_uj, max_ram=max_ram, max_flash=max_flash,
                         max_usd=max_usd)
    over = read_objectives(list_words(objectives))
    space = make_space(list_values(models), list_values(boards), runtimes=list_words(runtimes),
                       clocks=list_words(clocks), settings=settings, sample=sample)
    deployer = Deployer(calibration=fspath(calibration), temperature=temperature,
                        assume_unsupported=assume_unsupported, prices=prices or {})
    check_named(list_values(boards), list_words(clocks), deployer)
    return sweep_space(space, deployer, limits=limits, objectives=over, on_progress=on_progress)


def check_named(boards: Iterable[Value], clocks: Iterable[str], deployer: Deployer) -> None:
    """Refuse a board or a clock that is none, before anything is predicted."""
    for clock in clocks:
        if clock not in (OWN, EACH):
            read_clock(clock)
    for board in boards:
        deployer.read_board(board)


def list_values(given: Models | Boards) -> tuple[Value, ...]:
    """Return models or boards as values of an axis, one or several."""
    if isinstance(given, (Graph, Board)):
        return (given,)
    if isinstance(given, (str, PathLike)):
        return (fspath(given),)
    return tuple(one if isinstance(one, (Graph, Board)) else fspath(one) for one in given)


def list_words(given: Words) -> tuple[str, ...]:
    """Return words, given as a list or as "a,b"."""
    if isinstance(given, str):
        return tuple(word.strip() for word in given.split(",") if word.strip())
    return tuple(given)


def check_output(path: str) -> None:
    """Refuse a file no table is written as, and one that needs what is not installed."""
    if check_file(path) != ".csv":
        import_arrow()
